package luabind

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The kinds of failures of servers, beside those of std that say why a command
// did not start.
const (
	mcpLate      = "timeout"   // no answer in time
	mcpClosed    = "closed"    // the server has ended, or the client is closed
	mcpTransport = "transport" // HTTP brought no answer
	mcpRefused   = "server"    // the server answered with an error, or what cannot be read
	mcpAuth      = "auth"      // the server wants other credentials
	mcpInvalid   = "invalid"   // what answers is no MCP server, or takes no such request
)

// mcpError is what went wrong with a server.
type mcpError struct {
	kind, text string
	cause      error
}

// Error answers the text.
func (e *mcpError) Error() string { return e.text }

// Unwrap answers what is behind it.
func (e *mcpError) Unwrap() error { return e.cause }

// toolFailure is what a tool said of its failure. It is raised as text alone:
// the model reads what the tool said, and no line of a script before it.
type toolFailure string

// Error answers the text.
func (e toolFailure) Error() string { return string(e) }

// errMCPLate is the cause of a deadline that is the client's own.
var errMCPLate = errors.New("the server did not answer in time")

// mcpHandshake is the protocol that a client asks for first. Servers that are
// older or home-made know its initialize, and one that knows only what came
// later answers it with an error, upon which the latest is tried.
const mcpHandshake = "2025-11-25"

// mcpDial says how to reach a server.
type mcpDial struct {
	label   string // "npx", "tools.example.org"
	version string // of knl
	start   time.Duration
	call    time.Duration
	idle    func() // ends kept-alive connections, nil over stdio
	hide    Masker // the query of the URL, which no error repeats
	left    string // what of servers that did not come up could not be ended, and why
	// open makes the transport; over stdio it starts the server.
	open func(*mcpClient, *mcpWire) (mcp.Transport, error)
}

// mcpClient is a connection to one server. Its methods may be called by any
// goroutine.
type mcpClient struct {
	label  string
	call   time.Duration // what a call may take
	server *mcpServer    // nil over HTTP
	idle   func()        // ends kept-alive connections, nil over stdio
	hide   *Masker       // what no error repeats
	begin  func(context.Context) (*mcpSession, error)
	turn   chan struct{}      // held by who begins a session anew
	life   context.Context    // done once the client is closed
	end    context.CancelFunc // ends life

	mu       sync.Mutex
	session  *mcpSession
	over     bool           // nobody may ask any more
	dropped  bool           // the script closed it
	calls    sync.WaitGroup // goroutines that ask
	tokens   int64
	progress map[string]chan mcpProgress

	ending, breaking sync.Once
	reason           string // why it broke
}

// connect opens a session with the server, in the time that d gives.
func (d *mcpDial) connect(ctx context.Context) (*mcpClient, error) {
	within, stop := context.WithTimeoutCause(ctx, d.start, errMCPLate)
	defer stop()
	c, err := d.attempt(within, mcpHandshake)
	if refusalIn(err) != nil {
		if again, err2 := d.attempt(within, ""); err2 == nil {
			return again, nil
		}
	}
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return c, err
}

func (d *mcpDial) attempt(ctx context.Context, protocol string) (*mcpClient, error) {
	c := &mcpClient{label: d.label, call: d.call, idle: d.idle, hide: &d.hide, progress: map[string]chan mcpProgress{}, turn: make(chan struct{}, 1)}
	c.life, c.end = context.WithCancel(context.Background())
	c.begin = func(ctx context.Context) (*mcpSession, error) { return d.begin(ctx, c, protocol) }
	session, err := c.begin(ctx)
	if err != nil {
		c.finish()
		d.left = cmp.Or(c.left(), d.left)
		return nil, c.startFault(err, d.start)
	}
	c.session = session
	return c, nil
}

// begin opens a connection and a session on it.
func (d *mcpDial) begin(ctx context.Context, c *mcpClient, protocol string) (*mcpSession, error) {
	wire := &mcpWire{}
	transport, err := d.open(c, wire)
	if err != nil {
		return nil, err
	}
	sdk := mcp.NewClient(&mcp.Implementation{Name: "knl", Version: d.version}, &mcp.ClientOptions{
		Capabilities:                &mcp.ClientCapabilities{},
		ProgressNotificationHandler: c.hearProgress,
	})
	q := question{act: "initialize", wire: wire}
	return mcpAwait(ctx, c, q, func(ctx context.Context) (*mcpSession, error) {
		s, err := sdk.Connect(ctx, &mcpWired{transport, wire}, &mcp.ClientSessionOptions{ProtocolVersion: protocol})
		if err == nil && ctx.Err() != nil { // nobody waits for it any more
			s.Close()
			return nil, ctx.Err()
		}
		return &mcpSession{s, wire}, err
	})
}

// startFault says what a server did that was not there in time: the words it
// left are known once it is gone.
func (c *mcpClient) startFault(err error, start time.Duration) error {
	var late *mcpError
	if !errors.As(err, &late) || late.kind != mcpLate {
		return err
	}
	words := ""
	if c.server != nil {
		words = c.server.words(0)
	}
	return c.says(mcpLate, nil, "no answer to initialize within %s%s", start, words)
}

// question is one request to a server.
type question struct {
	act      string             // as errors name it
	limit    time.Duration      // 0: the context's
	progress <-chan mcpProgress // nil: none is awaited
	heard    func(context.Context, mcpProgress) error

	wire  *mcpWire  // of the first session, while there is none
	reply *mcpReply // what came, once it was waited for
	since int64     // what the server had printed beside its messages before
}

// mcpAsk asks the server in the session of the client. fn may be called a second
// time, in another session, when the first has not taken the question.
func mcpAsk[T any](ctx context.Context, c *mcpClient, q question, fn func(context.Context, *mcpSession) (T, error)) (T, error) {
	return mcpAwait(ctx, c, q, func(ctx context.Context) (answer T, err error) {
		s, err := c.current(ctx, nil)
		if err != nil {
			return answer, err
		}
		if answer, err = fn(ctx, s); !c.untaken(ctx, err) {
			return answer, err
		}
		if s, err = c.current(ctx, s); err != nil {
			return answer, err
		}
		replyTo(ctx).reset()
		return fn(ctx, s)
	})
}

// mcpAwait runs fn, which asks the server, and answers no later than the limit,
// the context and the client allow, whatever fn does. Progress is told by the
// asking goroutine, which may go back into Lua.
func mcpAwait[T any](ctx context.Context, c *mcpClient, q question, fn func(context.Context) (T, error)) (T, error) {
	var none T
	within, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if q.limit > 0 {
		var done context.CancelFunc
		within, done = context.WithTimeoutCause(within, q.limit, errMCPLate)
		defer done()
	}
	defer context.AfterFunc(c.life, func() { stop(mcp.ErrConnectionClosed) })()
	q.since = c.printed()
	reply := &mcpReply{}
	q.reply = &mcpReply{} // until somebody has waited for it
	got := make(chan mcpAnswer[T], 1)
	if !c.run(func() { got <- mcpRun(withReply(within, reply), fn) }) {
		return none, c.fault(ctx, within, q, mcp.ErrConnectionClosed)
	}
	for {
		select {
		case a := <-got:
			q.reply = reply
			return a.value, c.fault(ctx, within, q, a.err)
		case <-within.Done():
			return none, c.fault(ctx, within, q, within.Err())
		case p := <-q.progress:
			if err := q.heard(within, p); err != nil {
				return none, err
			}
		}
	}
}

type mcpAnswer[T any] struct {
	value T
	err   error
}

// mcpRun runs fn; its panic is an error, for nothing above it on this
// goroutine could take it.
func mcpRun[T any](ctx context.Context, fn func(context.Context) (T, error)) (a mcpAnswer[T]) {
	defer func() {
		if p := recover(); p != nil {
			a.err = &PanicError{Panic: p, Stack: string(debug.Stack())}
		}
	}()
	a.value, a.err = fn(ctx)
	return a
}

// run runs fn on a goroutine of its own, unless the client is closed.
func (c *mcpClient) run(fn func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return false
	}
	c.calls.Go(fn)
	return true
}

// fault says what became of a request. A connection that has broken is closed
// here, so that a server that cannot be spoken to does not stay.
func (c *mcpClient) fault(ctx, within context.Context, q question, err error) error {
	var bug *PanicError
	var said *mcpError
	var web *mcpWebFault
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && context.Cause(ctx) != errMCPLate:
		return ctx.Err()
	case errors.Is(context.Cause(within), errMCPLate):
		return c.says(mcpLate, err, "no answer to %s within %s%s", q.act, q.limit, c.noise(q.since))
	case errors.As(err, &bug):
		return bug
	case errors.As(err, &said): // of a session that did not begin anew
		return said
	case q.reply.refusal() != nil:
		no := q.reply.refusal()
		return c.says(mcpRefused, no, "%s: %s%s", q.act, no.Message, codeOf(no))
	case q.reply.arrived():
		return c.says(mcpRefused, err, "%s: the answer cannot be used: %s", q.act, unreadable(err))
	case c.isDropped():
		return c.says(mcpClosed, err, "%s: the client is closed", q.act)
	case errors.As(err, &web):
		return c.says(web.kind, err, "%s: %s", q.act, web.text)
	case c.server == nil:
		return c.says(mcpTransport, err, "%s: %s", q.act, broughtNothing(err))
	}
	c.breaking.Do(func() { c.reason = c.wreck(q, err) })
	return c.says(mcpClosed, err, "%s: %s", q.act, c.reason)
}

// printed answers how much the server has printed beside its messages.
func (c *mcpClient) printed() int64 {
	if c.server == nil {
		return 0
	}
	return c.server.frames.printed()
}

// noise answers what a server printed beside its messages since then.
func (c *mcpClient) noise(since int64) string {
	if c.server == nil {
		return ""
	}
	return c.server.noise(since)
}

// wreck ends a server that cannot be spoken to any more and says what became of
// it: by itself, or through us, and then why.
func (c *mcpClient) wreck(q question, err error) string {
	wire := q.wire
	if s := c.joined(); s != nil {
		wire = s.wire
	}
	cause := wire.broken()
	itself := errors.Is(cause, io.EOF) || errors.Is(cause, syscall.EPIPE) || errors.Is(cause, os.ErrClosed) // closed once it had ended
	alone := itself && ended(c.server.exited, drainGrace)
	go c.finish() // it waits for those who ask, and this is one
	<-c.server.cleared
	switch {
	case alone:
		return c.server.end() + c.server.words(q.since)
	case itself:
		return "it closed its stdout, and was ended" + c.server.words(q.since)
	case cause == nil:
		cause = err
	}
	return fmt.Sprintf("it sent what cannot be read, and was ended: %s%s", cause, c.server.words(q.since))
}

func (c *mcpClient) says(kind string, cause error, format string, args ...any) error {
	text := c.hide.Mask(fmt.Sprintf(format, args...)) // a server may repeat what it was asked
	return &mcpError{kind: kind, text: fmt.Sprintf("mcp server %q: ", c.label) + text, cause: cause}
}

// close ends the connection and, over stdio, the server, and waits until both
// are gone. Requests under way end with an error.
func (c *mcpClient) close() {
	c.mu.Lock()
	c.dropped = true
	c.mu.Unlock()
	c.finish()
}

// left answers what of the server of a closed client could not be ended, and why,
// or "".
func (c *mcpClient) left() string {
	if c.server == nil {
		return ""
	}
	return c.server.left
}

func (c *mcpClient) isDropped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dropped
}

func (c *mcpClient) finish() {
	c.ending.Do(func() {
		c.mu.Lock()
		c.over = true
		c.mu.Unlock()
		c.end()
		if c.server != nil {
			c.server.stop()
		}
		c.calls.Wait()
		if s := c.joined(); s != nil {
			_ = s.Close() // the pipes are closed, or the DELETE was a courtesy
		}
		if c.idle != nil {
			c.idle()
		}
	})
}

// mcpProgress is what a server tells of a call under way.
type mcpProgress struct {
	Tool     string
	Progress float64
	Total    float64
	Message  string
}
