package luabind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The kinds of failures of servers, beside those of std that say why a command
// did not start.
const (
	mcpLate      = "timeout"   // no answer in time
	mcpClosed    = "closed"    // the server has ended, or the client is closed
	mcpTransport = "transport" // HTTP brought no answer
	mcpRefused   = "server"    // the server answered with an error
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
	// open makes the transport; over stdio it starts the server.
	open func(*mcpClient) (mcp.Transport, error)
}

// mcpClient is a connection to one server. Its methods may be called by any
// goroutine.
type mcpClient struct {
	label   string
	call    time.Duration // what a call may take
	session *mcp.ClientSession
	server  *mcpServer         // nil over HTTP
	idle    func()             // ends kept-alive connections, nil over stdio
	life    context.Context    // done once the client is closed
	end     context.CancelFunc // ends life

	mu       sync.Mutex
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
	if serverError(err) != nil {
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
	c := &mcpClient{label: d.label, call: d.call, progress: map[string]chan mcpProgress{}}
	c.life, c.end = context.WithCancel(context.Background())
	transport, err := d.open(c)
	if err != nil {
		c.end()
		return nil, err
	}
	sdk := mcp.NewClient(&mcp.Implementation{Name: "knl", Version: d.version}, &mcp.ClientOptions{
		Capabilities:                &mcp.ClientCapabilities{},
		ProgressNotificationHandler: c.hearProgress,
	})
	session, err := mcpAsk(ctx, c, question{act: "initialize"}, func(ctx context.Context) (*mcp.ClientSession, error) {
		s, err := sdk.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: protocol})
		if err == nil && ctx.Err() != nil { // nobody waits for it any more
			s.Close()
			return nil, ctx.Err()
		}
		return s, err
	})
	if err != nil {
		c.finish()
		return nil, c.startFault(err, d.start)
	}
	c.session = session
	return c, nil
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
		words = c.server.words()
	}
	return c.says(mcpLate, nil, "no answer to initialize within %s%s", start, words)
}

// question is one request to a server.
type question struct {
	act      string             // as errors name it
	limit    time.Duration      // 0: the context's
	progress <-chan mcpProgress // nil: none is awaited
	heard    func(context.Context, mcpProgress) error
}

// mcpAsk runs fn, which asks the server, and answers no later than the limit, the
// context and the client allow, whatever fn does. Progress is told by the asking
// goroutine, which may go back into Lua.
func mcpAsk[T any](ctx context.Context, c *mcpClient, q question, fn func(context.Context) (T, error)) (T, error) {
	var none T
	within, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if q.limit > 0 {
		var done context.CancelFunc
		within, done = context.WithTimeoutCause(within, q.limit, errMCPLate)
		defer done()
	}
	defer context.AfterFunc(c.life, func() { stop(mcp.ErrConnectionClosed) })()
	got := make(chan mcpAnswer[T], 1)
	if !c.begin(func() { got <- mcpRun(within, fn) }) {
		return none, c.fault(ctx, within, q, mcp.ErrConnectionClosed)
	}
	for {
		select {
		case a := <-got:
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

// begin runs fn on a goroutine of its own, unless the client is closed.
func (c *mcpClient) begin(fn func()) bool {
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
	answered := serverError(err)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && context.Cause(ctx) != errMCPLate:
		return ctx.Err()
	case errors.Is(context.Cause(within), errMCPLate):
		return c.says(mcpLate, err, "no answer to %s within %s%s", q.act, q.limit, c.noise())
	case errors.As(err, &bug):
		return bug
	case answered != nil:
		return c.says(mcpRefused, err, "%s: %s (code %d)", q.act, answered.Message, answered.Code)
	case c.isDropped():
		return c.says(mcpClosed, err, "%s: the client is closed", q.act)
	case c.server == nil:
		return c.says(mcpTransport, err, "%s: %s", q.act, strings.ReplaceAll(err.Error(), "rejected by transport: ", ""))
	}
	c.breaking.Do(func() { c.reason = c.wreck(err) })
	return c.says(mcpClosed, err, "%s: %s", q.act, c.reason)
}

// serverError answers the error that a server sent, or nil. Three codes are of
// the SDK itself: the connection is closing, on either side, or a request did
// not go out.
func serverError(err error) *jsonrpc.Error {
	var answered *jsonrpc.Error
	if !errors.As(err, &answered) || (answered.Code <= -32003 && answered.Code >= -32005) {
		return nil
	}
	return answered
}

// noise answers what a server printed beside its messages.
func (c *mcpClient) noise() string {
	if c.server == nil {
		return ""
	}
	return c.server.noise()
}

// wreck ends a server that cannot be spoken to any more and says what became of
// it.
func (c *mcpClient) wreck(err error) string {
	alone := ended(c.server.exited, drainGrace)
	go c.finish() // it waits for those who ask, and this is one
	<-c.server.gone
	if alone {
		return c.server.end() + c.server.words()
	}
	why := err
	if ended(c.server.frames.eof, drainGrace) && !errors.Is(c.server.frames.why, io.EOF) {
		why = c.server.frames.why
	}
	return fmt.Sprintf("it closed its stdout or sent what cannot be read, and was ended (%s)%s", why, c.server.words())
}

func (c *mcpClient) says(kind string, cause error, format string, args ...any) error {
	return &mcpError{kind: kind, text: fmt.Sprintf("mcp server %q: ", c.label) + fmt.Sprintf(format, args...), cause: cause}
}

// close ends the connection and, over stdio, the server, and waits until both
// are gone. Requests under way end with an error.
func (c *mcpClient) close() {
	c.mu.Lock()
	c.dropped = true
	c.mu.Unlock()
	c.finish()
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
		if c.session != nil {
			_ = c.session.Close() // the pipes are closed, or the DELETE was a courtesy
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

// follow answers a token for the progress of one call, and what it tells. A
// call that is not listened to in time loses progress, not its answer.
func (c *mcpClient) follow() (token string, told chan mcpProgress) {
	told = make(chan mcpProgress, 64)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens++
	token = strconv.FormatInt(c.tokens, 10)
	c.progress[token] = told
	return token, told
}

func (c *mcpClient) unfollow(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.progress, token)
}

func (c *mcpClient) hearProgress(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
	c.mu.Lock()
	told := c.progress[fmt.Sprint(req.Params.ProgressToken)]
	c.mu.Unlock()
	if told == nil {
		return
	}
	select {
	case told <- mcpProgress{Progress: req.Params.Progress, Total: req.Params.Total, Message: req.Params.Message}:
	default:
	}
}
