package script

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/internal/field"
)

// Name is what the port is called in a registry and in the blocks it writes.
const Name = "script"

// Script is the port of a scripted model. It is safe for concurrent use.
type Script struct {
	next func(context.Context, *kernel.Request, kernel.CallOptions) (Reply, error)
}

var _ port.Port = (*Script)(nil)

// New scripts a model that answers the n-th call of a session with the n-th of
// replies. A call past the last one fails, naming its beat.
func New(replies []Reply) *Script {
	return Func(func(_ context.Context, _ *kernel.Request, opts kernel.CallOptions) (Reply, error) {
		if opts.Call < 0 || opts.Call >= len(replies) {
			return Reply{}, fmt.Errorf("script: beat %s: call %d of the session, want at most %d: the script has no more replies", opts.Beat, opts.Call+1, len(replies))
		}
		return replies[opts.Call], nil
	})
}

// Func scripts a model that asks fn for each reply. An error of fn fails the
// call, with its own kind when it is a *kernel.CallError. fn may be called from
// several goroutines, as sessions do; what it answers should follow from its
// arguments, or a resumed run goes on differently.
func Func(fn func(context.Context, *kernel.Request, kernel.CallOptions) (Reply, error)) *Script {
	return &Script{next: fn}
}

// Open answers the scripted model. Its conf decides nothing but the model that
// its thinking blocks name.
func (s *Script) Open(conf port.Conf) (kernel.LLM, error) {
	return &model{script: s, name: modelName(conf)}, nil
}

// Count answers [port.Estimate].
func (s *Script) Count(_ context.Context, req *kernel.Request, _ port.Conf) (int64, error) {
	return port.Estimate(req), nil
}

// Profile answers the sizes that conf declares, 200,000 and 8,192 tokens where
// it does not; the completion never takes more than a quarter of the window
// unless conf says so.
func (s *Script) Profile(_ context.Context, conf port.Conf) (port.Profile, error) {
	p := port.Profile{ContextWindow: conf.ContextWindow, MaxOutput: conf.MaxTokens}
	if p.ContextWindow == 0 {
		p.ContextWindow = 200_000
	}
	if p.MaxOutput == 0 {
		p.MaxOutput = min(8192, p.ContextWindow/4)
	}
	return p, nil
}

// Health answers nil: a script is always there.
func (s *Script) Health(context.Context, port.Conf) error { return nil }

func modelName(conf port.Conf) string {
	if conf.Model == "" {
		return Name
	}
	return conf.Model
}

// model is an opened Script.
type model struct {
	script *Script
	name   string
}

// Call implements kernel.LLM.
func (m *model) Call(ctx context.Context, req *kernel.Request, opts kernel.CallOptions) (*kernel.Answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, port.ClassifyError(err)
	}
	r, err := m.script.next(ctx, req, opts)
	if err != nil {
		return nil, unscripted(err)
	}
	if err := wait(ctx, r.Delay, opts.Deadline); err != nil {
		return nil, port.ClassifyError(err)
	}
	if r.Fail != nil {
		return nil, r.Fail.err()
	}
	r.stream(opts.OnDelta)
	return m.answer(r, req, opts.Call), nil
}

// unscripted is of a kind that nobody repeats: the script is at fault.
func unscripted(err error) error {
	if call, ok := err.(*kernel.CallError); ok {
		return call
	}
	return &kernel.CallError{Kind: kernel.Unknown, Message: err.Error()}
}

// wait sleeps for d, or until the call ends or its deadline passes.
func wait(ctx context.Context, d time.Duration, deadline time.Time) error {
	if !deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *Fail) err() error {
	message := f.Message
	if message == "" {
		message = "the script fails this call"
	}
	return &kernel.CallError{Kind: f.Kind, Message: message, RetryAfter: f.RetryAfter, Status: f.Status}
}

func (r *Reply) stream(on func(kernel.Delta)) {
	if on == nil {
		return
	}
	for _, d := range []kernel.Delta{{Kind: "thinking", Text: r.Thinking}, {Kind: "text", Text: r.Text}} {
		if d.Text != "" {
			on(d)
		}
	}
}

func (m *model) answer(r Reply, req *kernel.Request, call int) *kernel.Answer {
	a := &kernel.Answer{Content: r.Content, StopReason: r.stop()}
	if a.Content == nil {
		a.Content = m.blocks(r, call)
	}
	if r.Refuse != "" {
		a.Refused, a.RefusalKind, a.RefusalDetail = true, "model", r.Refuse
	}
	if r.Usage != nil {
		a.Usage = *r.Usage
		return a
	}
	thinking := tokens(len(r.Thinking))
	a.Usage = kernel.Usage{Input: port.Estimate(req), Output: max(thinking, tokens(len(a.Content))), Thinking: thinking}
	return a
}

func tokens(bytes int) int64 { return int64(bytes+3) / 4 }

func (r *Reply) stop() string {
	switch {
	case r.Stop != nil:
		return *r.Stop
	case r.Truncated:
		return "max_tokens"
	case r.Refuse != "":
		return "refusal"
	case len(r.Calls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

// blocks answers the content of r: thinking, text, calls.
func (m *model) blocks(r Reply, call int) json.RawMessage {
	var out []json.RawMessage
	if r.Thinking != "" {
		bag := field.Map{"model": field.Quoted(m.name), "port": field.Quoted(Name)}
		out = append(out, field.Map{"provider": bag.JSON(), "thinking": field.Quoted(r.Thinking), "type": field.Quoted("thinking")}.JSON())
	}
	if r.Text != "" {
		out = append(out, field.Map{"text": field.Quoted(r.Text), "type": field.Quoted("text")}.JSON())
	}
	for i, c := range r.Calls {
		out = append(out, c.block(fmt.Sprintf("call_%d_%d", call+1, i+1)))
	}
	return field.Array(out)
}

// block answers the tool_use block of c. What c leaves out on purpose is left
// out, not empty.
func (c *Call) block(minted string) json.RawMessage {
	id := minted
	if c.ID != nil {
		id = *c.ID
	}
	args := c.Args
	if args == nil {
		args = json.RawMessage(`{}`)
	}
	b := field.Map{"input": args, "type": field.Quoted("tool_use")}
	if id != "" {
		b["id"] = field.Quoted(id)
	}
	if c.Name != "" {
		b["name"] = field.Quoted(c.Name)
	}
	return b.JSON()
}
