package cassette

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/internal/change"
)

// Name is what the port is called.
const Name = "cassette"

// Options say what a Cassette records and where.
type Options struct {
	Dir    string       // the folder that Path stays in
	Path   string       // of the file, from Dir; its folder is made when it is not there
	Port   port.Port    // what is recorded; nil: the cassette only plays
	Record *bool        // true: record in any case; false: never; nil: when there is no file
	Mask   Mask         // nil: nothing is hidden
	Note   func(string) // told of what a user should know; nil: nobody
}

// Mask hides secrets in the texts of valid JSON, and says whether there were any.
type Mask func(json.RawMessage) (json.RawMessage, bool)

// Cassette is a port that records another one, or plays what was recorded. It is
// safe for concurrent use.
type Cassette struct {
	path  string
	inner port.Port // nil while it plays
	mask  Mask

	mu   sync.Mutex
	tape *tape
	file file
}

var _ port.Port = (*Cassette)(nil)

// New reads the file, or makes ready to record it.
func New(o Options) (*Cassette, error) {
	c := &Cassette{path: o.Path, mask: o.Mask, tape: newTape(), file: file{dir: o.Dir, path: o.Path}}
	text, err := c.file.load()
	there := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, c.fault(err)
	}
	forced := o.Record != nil && *o.Record
	switch {
	case there && !forced:
		return c, c.play(text, o.Note)
	case o.Record != nil && !*o.Record:
		return nil, c.faultf("not there, and record = false: record it first")
	case o.Port == nil:
		return nil, c.faultf("not there, and no port is given to record it from")
	}
	c.inner, c.file.replace = o.Port, forced
	return c, nil
}

func (c *Cassette) play(text []byte, note func(string)) error {
	t, torn, err := readTape(text)
	if err != nil {
		return c.fault(err)
	}
	if len(text) == 0 {
		return c.faultf("the file is empty: delete it to record it anew")
	}
	if torn > 0 && note != nil {
		note(fmt.Sprintf("cassette %q: its last %d bytes are a line that was not written whole: left out, with %d calls before it", c.path, torn, len(t.calls)))
	}
	c.tape = t
	return nil
}

func (c *Cassette) fault(err error) error { return fmt.Errorf("cassette %q: %w", c.path, err) }

func (c *Cassette) faultf(format string, args ...any) error {
	return c.fault(fmt.Errorf(format, args...))
}

// Recording says whether the other port is asked.
func (c *Cassette) Recording() bool { return c.inner != nil }

// Open answers the recorded model, or the other port's, recorded as it goes.
func (c *Cassette) Open(conf port.Conf) (kernel.LLM, error) {
	if c.inner == nil {
		return &model{c: c, name: conf.Model}, nil
	}
	llm, err := c.inner.Open(conf)
	if err != nil {
		return nil, err
	}
	return &model{c: c, name: conf.Model, inner: llm}, nil
}

// Count answers what the other port counted for the request.
func (c *Cassette) Count(ctx context.Context, req *kernel.Request, conf port.Conf) (int64, error) {
	same := c.neutral(req)
	key := counted{conf.Model, hashOf(same)}
	c.mu.Lock()
	n, known := c.tape.counts[key]
	c.mu.Unlock()
	if known {
		return n, nil
	}
	if c.inner == nil {
		return 0, c.strange("count", conf.Model, same)
	}
	n, err := c.inner.Count(ctx, req, conf)
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tape.counts[key] = n
	return n, c.add(countLine(key, n))
}

// Profile answers what the other port said of the model.
func (c *Cassette) Profile(ctx context.Context, conf port.Conf) (port.Profile, error) {
	key := sizesOf(conf)
	c.mu.Lock()
	p, known := c.tape.profiles[key]
	c.mu.Unlock()
	if known {
		return p, nil
	}
	if c.inner == nil {
		return p, c.faultf("no profile is recorded of model %q with context_window %d, max_tokens %d: record it again", conf.Model, key.window, key.maxToken)
	}
	p, err := c.inner.Profile(ctx, conf)
	if err != nil {
		return p, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tape.profiles[key] = p
	return p, c.add(profileLine(key, p))
}

// Health answers that of the other port; what plays is always there.
func (c *Cassette) Health(ctx context.Context, conf port.Conf) error {
	if c.inner == nil {
		return nil
	}
	return c.inner.Health(ctx, conf)
}

// add writes a line; c.mu is held.
func (c *Cassette) add(line json.RawMessage) error {
	err := error(nil)
	if !jsontext.Value(line).IsValid() {
		err = errors.New("the request is no sound JSON")
	} else {
		err = c.file.add(line)
	}
	if err != nil {
		return c.faultf("what was answered cannot be recorded: %w", err)
	}
	return nil
}

// model is an opened model of a Cassette.
type model struct {
	c     *Cassette
	name  string
	inner kernel.LLM // nil while it plays
}

// Call implements kernel.LLM.
func (m *model) Call(ctx context.Context, req *kernel.Request, opts kernel.CallOptions) (*kernel.Answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, port.ClassifyError(err)
	}
	if m.inner == nil {
		return m.play(req, opts)
	}
	return m.record(ctx, req, opts)
}

func (m *model) play(req *kernel.Request, opts kernel.CallOptions) (*kernel.Answer, error) {
	same := m.c.neutral(req)
	found := m.c.next(m.name, same)
	switch {
	case found == nil:
		return nil, &kernel.CallError{Kind: kernel.InvalidRequest, Message: m.c.strange("call", m.name, same).Error()}
	case opts.OnDelta != nil:
		for _, d := range found.deltas {
			opts.OnDelta(d)
		}
	}
	if found.err != nil {
		e := *found.err
		return nil, &e
	}
	a := *found.answer
	return &a, nil
}

// next takes the first answer for the two that was not played yet.
func (c *Cassette) next(model string, req *kernel.Request) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	want := hashOf(req)
	for _, e := range c.tape.calls {
		if !e.played && e.model == model && e.hash == want {
			e.played = true
			return e
		}
	}
	return nil
}

// looked is how many calls are held against a request that was not recorded.
const looked = 64

// strange says why a request has no recorded answer.
func (c *Cassette) strange(what, model string, req *kernel.Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	number, nearest, least, left, want := 0, (*call)(nil), 0, 0, hashOf(req)
	for i, e := range c.tape.calls {
		if e.hash == want && e.model == model {
			return c.faultf("this %s was recorded, and all of its answers are played: record it again", what)
		}
		if e.played {
			continue
		}
		if left++; left > looked {
			continue
		}
		if n := change.Between(req, e.request); nearest == nil || n < least {
			number, nearest, least = i+1, e, n
		}
	}
	if nearest == nil {
		return c.faultf("all of its %d calls are played, this %s is not among them: record it again", len(c.tape.calls), what)
	}
	lines := change.Requests(req, nearest.request)
	if nearest.model != model {
		lines = append([]string{fmt.Sprintf("model: got %q, want %q", model, nearest.model)}, lines...)
	}
	return c.faultf("this %s was not recorded; against call %d: %s", what, number, strings.Join(lines, "; "))
}

// record asks the other model and writes down what it answers. What cannot be
// written fails the call: a recording with a hole plays nothing.
func (m *model) record(ctx context.Context, req *kernel.Request, opts kernel.CallOptions) (*kernel.Answer, error) {
	e := &call{model: m.name, request: m.c.neutral(req)}
	e.hash = hashOf(e.request)
	show := opts.OnDelta
	opts.OnDelta = func(d kernel.Delta) {
		e.deltas = append(e.deltas, d)
		if show != nil {
			show(d)
		}
	}
	a, err := m.inner.Call(ctx, req, opts)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err != nil:
		e.err = m.c.failure(err)
		if e.err.Kind == kernel.Cancelled {
			return nil, err
		}
	case a == nil:
		return nil, nil
	default:
		own := *a
		own.Content, own.RefusalDetail = m.c.clean(a.Content), m.c.maskText(a.RefusalDetail)
		e.answer = &own
	}
	e.deltas = m.c.maskDeltas(e.deltas)
	if werr := m.c.keep(e); werr != nil {
		return nil, &kernel.CallError{Kind: kernel.Unknown, Message: werr.Error()}
	}
	return a, err
}

func (c *Cassette) failure(err error) *kernel.CallError {
	e := &kernel.CallError{Kind: kernel.Unknown, Message: err.Error()}
	var call *kernel.CallError
	if errors.As(err, &call) {
		*e = *call
	}
	e.Message = c.maskText(e.Message)
	return e
}

func (c *Cassette) keep(e *call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.add(e.line(c.tape.calls)); err != nil {
		return err
	}
	c.tape.calls = append(c.tape.calls, e)
	return nil
}
