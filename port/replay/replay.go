package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/internal/change"
)

// Name is what the port is called.
const Name = "replay"

// Replay is the port that plays a recorded session and its children. It is safe
// for concurrent use.
type Replay struct {
	kernel *kernel.Kernel
	root   string

	mu     sync.Mutex
	tree   []*source          // parents first; nil: not read yet
	played map[string]*source // by the session of the new run
	first  *Difference
}

var _ port.Port = (*Replay)(nil)

// Difference is where the new run first left the recorded one.
type Difference struct {
	Session string   `json:"session"` // the recorded one
	Call    int      `json:"call"`    // from 1
	Beat    string   `json:"beat,omitempty"`
	Changes []string `json:"changes"` // one line a place
}

// New answers the port that plays a session of k's store.
func New(k *kernel.Kernel, session string) *Replay {
	return &Replay{kernel: k, root: session, played: map[string]*source{}}
}

// Open answers the recorded model, whatever conf names.
func (r *Replay) Open(port.Conf) (kernel.LLM, error) { return kernel.LLMFunc(r.call), nil }

// Health answers nil when the recorded session can be read.
func (r *Replay) Health(ctx context.Context, _ port.Conf) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.load(ctx)
}

func (r *Replay) call(ctx context.Context, req *kernel.Request, opts kernel.CallOptions) (*kernel.Answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, port.ClassifyError(err)
	}
	c, err := r.find(ctx, req, opts)
	if err != nil {
		return nil, err
	}
	return c.outcome(opts.OnDelta)
}

// find answers the recorded call that this one has to be.
func (r *Replay) find(ctx context.Context, req *kernel.Request, opts kernel.CallOptions) (*call, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.load(ctx); err != nil {
		return nil, unknown("replay: %s", err)
	}
	if opts.Session == "" {
		return nil, unknown("replay: a call outside of a session has no recorded answer: call the model in a beat, or hand its ctx on")
	}
	hash := fmt.Sprintf("%x", req.Hash())
	s := r.sourceOf(opts, hash)
	if opts.Call >= len(s.calls) {
		return nil, r.past(s, opts.Call)
	}
	c := s.calls[opts.Call]
	if c.hash != hash {
		return nil, r.differs(ctx, s, opts.Call, req)
	}
	c.play(s, req)
	return c, nil
}

func unknown(format string, args ...any) error {
	return &kernel.CallError{Kind: kernel.Unknown, Message: fmt.Sprintf(format, args...)}
}

// sourceOf answers the recorded session that a new one plays, and gives it one
// at its first call.
func (r *Replay) sourceOf(opts kernel.CallOptions, hash string) *source {
	if s := r.played[opts.Session]; s != nil {
		return s
	}
	s := r.choose(opts.Call, hash)
	s.taken, r.played[opts.Session] = true, s
	return s
}

func (r *Replay) choose(n int, hash string) *source {
	for _, taken := range []bool{false, true} {
		for _, s := range r.tree {
			if s.taken == taken && n < len(s.calls) && s.calls[n].hash == hash {
				return s
			}
		}
	}
	for _, s := range r.tree { // none asked the same: the first that could have
		if !s.taken && n < len(s.calls) {
			return s
		}
	}
	return r.tree[0]
}

// past says that nothing is recorded behind the last call.
func (r *Replay) past(s *source, n int) error {
	text := fmt.Sprintf("call %d, and %d are recorded", n+1, len(s.calls))
	if s.open {
		text += ", with one more that its driver did not live to end"
	}
	r.note(&Difference{Session: s.id, Call: n + 1, Changes: []string{text}})
	return unknown("replay: session %s: %s: nothing answers it", s.id, text)
}

func (r *Replay) differs(ctx context.Context, s *source, n int, req *kernel.Request) error {
	c := s.calls[n]
	d := &Difference{Session: s.id, Call: n + 1, Beat: c.beat}
	switch was, err := s.request(ctx, c); {
	case c.hash == "":
		d.Changes = []string{"a caller recorded this answer itself, no request stands before it"}
	case err != nil:
		d.Changes = []string{"the recorded request cannot be read: " + err.Error()}
	default:
		d.Changes = append(change.Requests(req, was), c.sizes.caveat()...)
	}
	r.note(d)
	return &kernel.CallError{Kind: kernel.InvalidRequest, Message: "replay: " + d.String()}
}

func (r *Replay) note(d *Difference) {
	if r.first == nil {
		r.first = d
	}
}

// String answers "call 3 of session … asks something else: …".
func (d *Difference) String() string {
	at := fmt.Sprintf("call %d of session %s", d.Call, d.Session)
	if d.Beat != "" {
		at += " (beat " + d.Beat + ")"
	}
	return at + " asks something else: " + strings.Join(d.Changes, "; ")
}

// First answers the first difference, nil when there was none.
func (r *Replay) First() *Difference {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.first
}

// Tool answers what the recorded call of a tool came to, for a session of the
// new run that has played its reply. A failed result is a *kernel.ToolError.
func (r *Replay) Tool(session, callID string) (json.RawMessage, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.played[session]
	if s == nil || s.results[callID] == nil {
		return nil, fmt.Errorf("replay: no result of the call %q is recorded", callID)
	}
	return toolOutcome(s.results[callID])
}

// Left answers how many recorded calls were played, and the first one that was
// not.
func (r *Replay) Left(ctx context.Context) (played int, left *Difference, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.load(ctx); err != nil {
		return 0, nil, err
	}
	for _, s := range r.tree {
		for i, c := range s.calls {
			switch {
			case c.played:
				played++
			case left == nil && c.hash != "":
				left = &Difference{Session: s.id, Call: i + 1, Beat: c.beat,
					Changes: []string{fmt.Sprintf("nobody asked it, and %d were recorded", len(s.calls))}}
			}
		}
	}
	return played, left, nil
}
