package main

import (
	"encoding/json"
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

func (a *app) newHost() *host {
	h := &host{app: a, stores: stores{dir: a.flags.store, note: a.ui.note}, known: map[string]bool{}}
	// The keys are known before a port reads one, so that no output, no command
	// and no record has it before the first call.
	h.mask = keyMask(os.LookupEnv, func(text string) { a.ui.note("knl: %s", text) })
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

// maskedJSON answers raw with the secrets in it hidden.
func (h *host) maskedJSON(raw json.RawMessage) json.RawMessage { return h.mask.MaskResult(raw) }

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
	return append(mods, luabind.Std(luabind.StdOptions{Log: h.app.ui.err, Mask: h.mask, Store: h.stores.open, StoreDirs: h.storeDirs(), Terminal: h.terminal})...)
}

// usualStore is the folder of the store where --store names none.
const usualStore = ".knl"

// storeDirs answers the folders that are stores, or may become some: that of the
// run, and the one that runs without --store have.
func (h *host) storeDirs() []string {
	if h.stores.dir == memory {
		return []string{usualStore}
	}
	return []string{usualStore, h.stores.dir}
}
