package luabind

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpReply is what came from a server to one question, which may be several
// requests: a list has pages. What the SDK decodes loses the digits of large
// numbers, and its errors do not tell an answer that it cannot read from a
// connection that has broken.
type mcpReply struct {
	mu      sync.Mutex // an answer may come when nobody waits for it any more
	answers int
	result  json.RawMessage // the latest, as it came
	error   *jsonrpc.Error  // that the server sent
}

// arrived says whether the server has answered, so that whatever went wrong
// after it is the answer's fault.
func (r *mcpReply) arrived() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answers > 0
}

// last answers the latest result.
func (r *mcpReply) last() json.RawMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.result
}

// refusal answers the error that the server sent, or nil.
func (r *mcpReply) refusal() *jsonrpc.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.error
}

func (r *mcpReply) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers, r.result, r.error = 0, nil, nil
}

func (r *mcpReply) take(answer *jsonrpc.Response) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if answer.Error != nil { // of the SDK itself, when it is of another type
		errors.As(answer.Error, &r.error)
		return
	}
	r.answers++
	r.result = answer.Result
}

type mcpReplyKey struct{}

// withReply answers a context whose requests leave in r what comes back.
func withReply(ctx context.Context, r *mcpReply) context.Context {
	return context.WithValue(ctx, mcpReplyKey{}, r)
}

// replyTo answers what has come back to the requests of ctx.
func replyTo(ctx context.Context) *mcpReply { return ctx.Value(mcpReplyKey{}).(*mcpReply) }

// mcpWire carries the messages of one session and hands each answer to the
// question that it is for, before the SDK reads it.
type mcpWire struct {
	mcp.Connection
	agreed func(protocol string) // hears what initialize came to; may be nil

	mu    sync.Mutex
	asked map[jsonrpc.ID]*asked
	cause error // why nothing goes through any more, when it was not Close
	over  bool
}

type asked struct {
	method string
	reply  *mcpReply
}

// mcpWired is a transport whose connection is the wire.
type mcpWired struct {
	mcp.Transport
	wire *mcpWire
}

// Connect opens the connection.
func (t *mcpWired) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	t.wire.Connection, t.wire.asked = conn, map[jsonrpc.ID]*asked{}
	return t.wire, nil
}

// Write sends a message and remembers who asks.
func (w *mcpWire) Write(ctx context.Context, msg jsonrpc.Message) error {
	req, isRequest := msg.(*jsonrpc.Request)
	if reply, known := ctx.Value(mcpReplyKey{}).(*mcpReply); known && isRequest && req.IsCall() {
		w.mu.Lock()
		w.asked[req.ID] = &asked{req.Method, reply}
		w.mu.Unlock()
		context.AfterFunc(ctx, func() { w.take(req.ID) })
	}
	err := w.Connection.Write(ctx, msg)
	if err != nil && ctx.Err() == nil {
		w.broke(err)
	}
	return err
}

// Read answers the next message.
func (w *mcpWire) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := w.Connection.Read(ctx)
	if err != nil {
		w.broke(err)
		return nil, err
	}
	if answer, ok := msg.(*jsonrpc.Response); ok {
		w.hear(answer)
	}
	return msg, nil
}

// Close ends the connection.
func (w *mcpWire) Close() error {
	w.broke(nil)
	return w.Connection.Close()
}

// broke keeps why the connection ended: what came first is the cause of the rest.
func (w *mcpWire) broke(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.over, w.cause = true, err
	}
}

// broken answers why the connection ended when it did by itself, or nil.
func (w *mcpWire) broken() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cause
}

func (w *mcpWire) take(id jsonrpc.ID) *asked {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.asked[id]
	delete(w.asked, id)
	return a
}

func (w *mcpWire) hear(answer *jsonrpc.Response) {
	a := w.take(answer.ID)
	if a == nil {
		return
	}
	a.reply.take(answer)
	answer.Result = mcpTidied(a.method, answer.Result)
	var agreed struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if a.method == "initialize" && w.agreed != nil && json.Unmarshal(answer.Result, &agreed) == nil {
		w.agreed(agreed.ProtocolVersion)
	}
}
