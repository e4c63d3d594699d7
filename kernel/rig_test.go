package kernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/store"
)

// Everything in this package's tests stands on one clock that ticks a
// millisecond a reading and on ids that count, so that a run can be compared
// with another byte for byte.

func ticking() func() time.Time {
	var n atomic.Int64
	return func() time.Time { return time.UnixMilli(1_700_000_000_000 + n.Add(1)) }
}

func counting(prefix string) func() string {
	var n atomic.Int64
	return func() string { return fmt.Sprintf("%s%d", prefix, n.Add(1)) }
}

func newKernel(st store.Store) *kernel.Kernel {
	return kernel.New(st, kernel.Options{Now: ticking(), Mint: counting("i")})
}

// newMem answers a kernel on a store of its own.
func newMem(t testing.TB) (*kernel.Kernel, *store.Mem) {
	st := store.NewMem()
	t.Cleanup(func() { _ = st.Close() })
	return newKernel(st), st
}

func raw(text string) json.RawMessage { return json.RawMessage(text) }

func rawf(format string, args ...any) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(format, args...))
}

func jsonOf(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("BUG: test value does not encode: " + err.Error())
	}
	return b
}

func userSays(text string) kernel.Draft {
	return kernel.Draft{Kind: kernel.MsgUser, Data: rawf(`{"content":%s}`, jsonOf(text))}
}

// answers is a model that gives its replies in turn: an *Answer, an error, or a
// function of the call.
type answers struct {
	mu    sync.Mutex
	list  []any
	asked []*kernel.Request
}

func replies(list ...any) *answers { return &answers{list: list} }

type callFunc func(context.Context, *kernel.Request, kernel.CallOptions) (*kernel.Answer, error)

func (a *answers) Call(ctx context.Context, req *kernel.Request, o kernel.CallOptions) (*kernel.Answer, error) {
	a.mu.Lock()
	n := len(a.asked)
	a.asked = append(a.asked, req)
	a.mu.Unlock()
	if n >= len(a.list) {
		return nil, fmt.Errorf("call %d: the script has %d replies", n+1, len(a.list))
	}
	switch v := a.list[n].(type) {
	case *kernel.Answer:
		return v, nil
	case error:
		return nil, v
	case callFunc:
		return v(ctx, req, o)
	}
	panic("BUG: a reply is an *Answer, an error or a callFunc")
}

// says is a plain reply.
func says(text string) *kernel.Answer {
	return &kernel.Answer{Content: rawf(`[{"text":%s,"type":"text"}]`, jsonOf(text)), StopReason: "end_turn",
		Usage: kernel.Usage{Input: 10, Output: 2}}
}

// use is one tool_use block.
func use(id, name, args string) string {
	b := `{`
	if id != "" {
		b += `"id":` + string(jsonOf(id)) + `,`
	}
	if args != "" {
		b += `"input":` + args + `,`
	}
	return b + `"name":` + string(jsonOf(name)) + `,"type":"tool_use"}`
}

// calls is a reply of tool_use blocks.
func calls(blocks ...string) *kernel.Answer {
	b := ""
	for i, s := range blocks {
		if i > 0 {
			b += ","
		}
		b += s
	}
	return &kernel.Answer{Content: rawf("[%s]", b), StopReason: "tool_use", Usage: kernel.Usage{Input: 10, Output: 5}}
}

func device(t testing.TB, c kernel.Config) *kernel.Device {
	t.Helper()
	d, err := kernel.NewDevice(c)
	require.NoError(t, err)
	return d
}

func gives(result string) kernel.Handler {
	return func(context.Context, json.RawMessage, kernel.ToolContext) (json.RawMessage, error) {
		return json.RawMessage(result), nil
	}
}

// toolbox is the tools that most tests use.
func toolbox() map[string]kernel.Tool {
	return map[string]kernel.Tool{
		"look": {Description: "Looks.", Effects: kernel.Read, Handler: gives(`"seen"`)},
		"send": {Description: "Sends.", Handler: gives(`{"sent":true}`)},
		"put":  {Description: "Puts.", Effects: kernel.Write, Idempotent: true, Handler: gives(`"put"`)},
		"fail": {Effects: kernel.Read, Handler: func(context.Context, json.RawMessage, kernel.ToolContext) (json.RawMessage, error) {
			return nil, errors.New("no such file")
		}},
		"panic": {Effects: kernel.Read, Handler: func(context.Context, json.RawMessage, kernel.ToolContext) (json.RawMessage, error) { panic("boom") }},
		"nil":   {Effects: kernel.Read, Handler: gives("")},
		"par": {Effects: kernel.Read, Parallel: true, Handler: func(_ context.Context, args json.RawMessage, _ kernel.ToolContext) (json.RawMessage, error) {
			return args, nil
		}},
		"strict": {Effects: kernel.Read, Strict: true, Handler: gives(`"valid"`),
			InputSchema: raw(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)},
	}
}

// only answers the tools of the box with some names.
func only(names ...string) map[string]kernel.Tool {
	box, out := toolbox(), map[string]kernel.Tool{}
	for _, name := range names {
		out[name] = box[name]
	}
	return out
}

// logOf answers every event of a session.
func logOf(t testing.TB, s *kernel.Session) []*kernel.Event {
	t.Helper()
	evs, err := s.Events(context.Background(), 1)
	require.NoError(t, err)
	return evs
}

func kinds(evs []*kernel.Event) []string {
	out := make([]string, len(evs))
	for i, ev := range evs {
		out[i] = ev.Kind
	}
	return out
}

// requireSound holds every session of k against the kernel's invariants.
func requireSound(t require.TestingT, k *kernel.Kernel) {
	var found []string
	_, _, err := k.Check(context.Background(), func(p kernel.Problem) { found = append(found, p.String()) })
	require.NoError(t, err)
	require.Empty(t, found)
}

// field answers one member of an event's data.
func field(ev *kernel.Event, name string) string {
	var m map[string]json.RawMessage
	_ = json.Unmarshal(ev.Data, &m)
	return string(m[name])
}
