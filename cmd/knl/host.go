package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/luabind"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/anthropic"
	"github.com/knl-run/knl/port/openai"
)

// host is what the scripts of one command share: the stores, the secrets, and
// what is known of the sessions they drive.
type host struct {
	app    *app
	stores stores
	mask   *luabind.Masker
	ports  port.Registry

	playing *playing // of knl replay

	terminal func() (io.ReadCloser, error) // where scripts may ask the human; nil: nowhere

	mu     sync.Mutex
	driven []*drive
	known  map[string]bool // sessions in driven
}

// drive is a session that the run opened or resumed.
type drive struct {
	session *kernel.Session
	from    int64 // the first seq that may be the run's
}

func (a *app) newHost() *host {
	h := &host{app: a, stores: stores{dir: a.flags.store, note: a.ui.note}, mask: &luabind.Masker{}, known: map[string]bool{}}
	h.ports = registry(port.Host{Env: os.LookupEnv, Secret: h.mask.Add, Warn: func(text string) { a.ui.note("knl: %s", text) }})
	return h
}

// providers are the ports that --model and ports.from may choose, for commands
// that run no script.
var providers = registry(port.Host{Env: os.LookupEnv})

// registry names the ports that h serves: each provider, and each kind of server
// that resembles one.
func registry(h port.Host) port.Registry {
	r := port.Registry{anthropic.Name: anthropic.New(h), openai.Name: openai.New(h)}
	for _, dialect := range openai.Dialects {
		if r[dialect] == nil {
			r[dialect] = openai.As(dialect, h)
		}
	}
	return r
}

// masked answers w with the secrets that scripts read hidden.
func (h *host) masked(w io.Writer) io.Writer { return h.mask.Writer(w) }

// maskedJSON answers raw with the secrets in its texts hidden.
func (h *host) maskedJSON(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		panic("BUG: a result is no JSON: " + err.Error())
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(h.maskedValue(v)); err != nil {
		panic("BUG: a result does not encode: " + err.Error())
	}
	return bytes.TrimSpace(b.Bytes())
}

func (h *host) maskedValue(v any) any {
	switch v := v.(type) {
	case string:
		return h.mask.Mask(v)
	case json.Number:
		if text := h.mask.Mask(v.String()); text != v.String() {
			return text
		}
	case []any:
		for i := range v {
			v[i] = h.maskedValue(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[h.mask.Mask(k)] = h.maskedValue(x)
		}
		return out
	}
	return v
}

// modelFault answers why --model names no model, or nil.
func modelFault(model string) error {
	if model == "" {
		return nil
	}
	_, _, err := providers.From(model, port.Conf{})
	if err != nil {
		return misuse("", "--model: %s", err)
	}
	return nil
}

// modules answers the host modules of one VM.
func (h *host) modules() []*luabind.Module {
	mods := luabind.KnlModules(h.playing.kernel(&luabind.Kernel{
		Open:    h.stores.open,
		Options: kernel.Options{Strict: h.app.flags.durability == "strict", Mask: h.mask.MaskJSON},
		Version: version(),
		Session: h.drives,
	}))
	mods = append(mods, luabind.PortsModule(h.playing.ports(&luabind.Ports{Registry: h.ports, Model: h.app.flags.model, Mask: h.mask})))
	mods = append(mods, luabind.MCPModule(&luabind.MCP{Version: version(), Mask: h.mask}))
	return append(mods, luabind.Std(luabind.StdOptions{Log: h.app.ui.err, Mask: h.mask, Store: h.stores.open, Terminal: h.terminal})...)
}

// drives notes a session that a script opened or resumed.
func (h *host) drives(s *kernel.Session, resumed bool) {
	d := &drive{session: s, from: 1}
	if resumed { // what a resume itself recorded is no beat
		if n, err := s.Len(context.Background()); err == nil {
			d.from = n + 1
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.known[s.ID()] {
		h.known[s.ID()] = true
		h.driven = append(h.driven, d)
	}
}

// tally sums what the run recorded.
type tally struct {
	sessions []string
	beats    int64
	in, out  int64    // tokens
	left     []string // balances of the sessions without a parent
}

// tally counts what a store can still say: a run may end because of it.
func (h *host) tally(ctx context.Context) tally {
	t := tally{sessions: []string{}}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range h.driven {
		t.sessions = append(t.sessions, d.session.ID())
		t.add(ctx, d)
	}
	return t
}

func (t *tally) add(ctx context.Context, d *drive) {
	calls := kernel.Where{From: d.from, Kinds: []string{kernel.LLMRequest, kernel.LLMResponse}}
	rows, _, err := d.session.Scan(ctx, calls)
	if err != nil {
		return
	}
	for _, r := range rows {
		if r.Event.Kind == kernel.LLMRequest {
			t.beats++
			continue
		}
		var data struct{ Usage kernel.UsageRow }
		_ = json.Unmarshal(r.Event.Data, &data) // a counter of another type counts 0
		u := data.Usage
		t.in, t.out = t.in+u.Input+u.CacheRead+u.CacheWrite, t.out+u.Output
	}
	n, granted, err := d.session.Remaining(ctx)
	if err == nil && granted && d.session.Parent() == "" && len(t.left) < 4 {
		t.left = append(t.left, fmt.Sprint(n))
	}
}
