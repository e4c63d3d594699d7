package luabind

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	lua "github.com/yuin/gopher-lua"
)

// mcpWeb sends the requests of a session over HTTP with the headers of the
// script. A whole answer is read before it is handed on, and one that is of no
// use becomes an error of its request, so that neither ends the connection.
type mcpWeb struct {
	base     http.RoundTripper
	headers  http.Header
	protocol atomic.Pointer[string] // that initialize came to
	gone     atomic.Bool            // the server knows the session no more
}

// mcpWebFault is why an answer over HTTP is of no use.
type mcpWebFault struct {
	kind, text string
	forgotten  bool // the server knows no such session, and has taken nothing
}

// Error answers the text.
func (e *mcpWebFault) Error() string { return e.text }

const (
	mcpSessionHeader = "Mcp-Session-Id"
	mcpStream        = "text/event-stream"
	// mcpWebLeave is how long a server may take to hear that a session is over.
	mcpWebLeave = time.Second
)

// RoundTrip sends one request.
func (w *mcpWeb) RoundTrip(req *http.Request) (*http.Response, error) {
	if w.gone.Load() {
		return nil, &mcpWebFault{kind: mcpTransport, text: "the server knows the session no more", forgotten: true}
	}
	call, err := callIn(req)
	if err != nil {
		return nil, err
	}
	req = req.Clone(req.Context())
	for name, values := range w.headers {
		req.Header[name] = values
	}
	if p := w.protocol.Load(); p != nil && req.Header.Get("Mcp-Protocol-Version") == "" {
		req.Header.Set("Mcp-Protocol-Version", *p)
	}
	if req.Method == http.MethodDelete {
		return w.leave(req)
	}
	resp, err := w.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if mediaType(resp) == mcpStream {
		resp.Body = newSSELines(resp.Body)
	}
	if asItIs(resp, call) {
		return resp, nil
	}
	return w.whole(req, resp, call)
}

// leave ends the session at the server, whose answer changes nothing.
func (w *mcpWeb) leave(req *http.Request) (*http.Response, error) {
	ctx, stop := context.WithTimeout(req.Context(), mcpWebLeave)
	defer stop()
	resp, err := w.base.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	resp.Body.Close()
	resp.Body = http.NoBody
	return resp, nil
}

// asItIs says whether an answer is handed on while it arrives: a stream, a
// redirection, and what is no answer to a request.
func asItIs(resp *http.Response, call *jsonrpc.Request) bool {
	if resp.StatusCode >= 300 {
		return resp.StatusCode < 400 && resp.Header.Get("Location") != ""
	}
	return call == nil || mediaType(resp) == mcpStream
}

// whole reads an answer to its end.
func (w *mcpWeb) whole(req *http.Request, resp *http.Response, call *jsonrpc.Request) (*http.Response, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, mcpFrameLimit+1))
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	if len(body) > mcpFrameLimit {
		return nil, &mcpWebFault{kind: mcpInvalid, text: fmt.Sprintf("an answer above %d MiB", mcpFrameLimit>>20)}
	}
	if fault := webFault(resp, call, body); fault != nil {
		if fault.forgotten {
			w.gone.Store(true)
		}
		return nil, fault
	}
	resp.StatusCode = http.StatusOK // an answer is one whatever its status
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// mcpNoSession finds what servers say of a session that they do not know, when
// they do not say it by 404.
var mcpNoSession = regexp.MustCompile(`(?i)\b(no|not|invalid|unknown|expired|missing)\b[^.]*\bsession|` +
	`session[^.]*\b(not|invalid|unknown|expired|missing|terminated|closed)\b|not initialized`)

// isForgotten says whether a server has refused a request because it does not
// know the session.
func isForgotten(resp *http.Response, body []byte) bool {
	if resp.Request.Header.Get(mcpSessionHeader) == "" {
		return false
	}
	return resp.StatusCode == http.StatusNotFound ||
		resp.StatusCode == http.StatusBadRequest && mcpNoSession.Match(body[:min(len(body), 1000)])
}

// webFault answers why a whole answer to call is of no use, or nil.
func webFault(resp *http.Response, call *jsonrpc.Request, body []byte) *mcpWebFault {
	text := strings.TrimSpace(fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
	if said := endOf(string(body[:min(len(body), 200)]), 200); said != "" && mediaType(resp) != "text/html" {
		text = fmt.Sprintf("%s: %q", text, said)
	}
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return &mcpWebFault{kind: mcpAuth, text: text + ": want credentials in headers that the server takes"}
	case code == http.StatusRequestTimeout || code == http.StatusTooManyRequests || code >= 500:
		return &mcpWebFault{kind: mcpTransport, text: text}
	case isForgotten(resp, body):
		return &mcpWebFault{kind: mcpTransport, text: text, forgotten: true}
	}
	msg, err := jsonrpc.DecodeMessage(body)
	answer, isAnswer := msg.(*jsonrpc.Response)
	switch {
	case mediaType(resp) == "application/json" && isAnswer && call != nil && answer.ID == call.ID:
		return nil
	case resp.StatusCode >= 300:
		return &mcpWebFault{kind: mcpInvalid, text: text}
	case mediaType(resp) != "application/json":
		return &mcpWebFault{kind: mcpInvalid, text: fmt.Sprintf("got %s of type %q, want the endpoint of an MCP server", text, mediaType(resp))}
	case err != nil:
		return &mcpWebFault{kind: mcpInvalid, text: fmt.Sprintf("%s is no JSON-RPC message: %s", text, err)}
	}
	return &mcpWebFault{kind: mcpInvalid, text: text + " answers another request"}
}

// callIn answers the JSON-RPC request in a POST that awaits an answer, or nil.
func callIn(req *http.Request) (*jsonrpc.Request, error) {
	if req.Method != http.MethodPost || req.GetBody == nil {
		return nil, nil
	}
	in, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	body, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	msg, err := jsonrpc.DecodeMessage(body)
	if call, ok := msg.(*jsonrpc.Request); ok && call.IsCall() {
		return call, err
	}
	return nil, err
}

func mediaType(resp *http.Response) string {
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

// webTransport answers what opens a connection to the endpoint.
func webTransport(base *http.Transport, endpoint *url.URL, headers http.Header) func(*mcpClient, *mcpWire) (mcp.Transport, error) {
	return func(_ *mcpClient, wire *mcpWire) (mcp.Transport, error) {
		web := &mcpWeb{base: unupgraded{base}, headers: headers}
		wire.agreed = func(protocol string) { web.protocol.Store(&protocol) }
		return &mcp.StreamableClientTransport{
			Endpoint:   endpoint.String(),
			HTTPClient: &http.Client{Transport: web, CheckRedirect: mcpSameHost},
			MaxRetries: 1, // of reading on where a stream was cut; no request is sent twice
			// Nothing that a server says unasked is listened to.
			DisableStandaloneSSE: true,
			MaxEventSize:         mcpFrameLimit,
		}, nil
	}
}

// mcpSameHost keeps the headers, which may hold a key, with the host that they are
// for.
func mcpSameHost(req *http.Request, via []*http.Request) error {
	if first := via[0].URL; req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
		return &mcpWebFault{kind: mcpInvalid, text: fmt.Sprintf("it redirects to %s://%s, want an endpoint that answers itself", req.URL.Scheme, req.URL.Host)}
	}
	if len(via) > 5 {
		return &mcpWebFault{kind: mcpInvalid, text: "it redirects in a circle"}
	}
	return nil
}

// endpoint reads the option url.
func (m *MCP) endpoint(c *Call, text string) (*url.URL, error) {
	u, why := webURL(text, m.Mask)
	switch {
	case why != "":
		return nil, c.Mistake("option %q: %s, want http:// or https:// with a host", "url", why)
	case u.User != nil:
		return nil, c.Mistake("option %q: holds a user or password, want it in headers", "url")
	}
	return u, nil
}

var mcpHeaderName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// mcpOwnHeaders are what the protocol sets itself.
var mcpOwnHeaders = regexp.MustCompile(`(?i)^(accept|content-type|content-length|host|last-event-id|mcp-.*)$`)

// mcpHeaders reads the option headers.
func mcpHeaders(c *Call, t *lua.LTable) (http.Header, error) {
	out := http.Header{}
	if t == nil {
		return out, nil
	}
	var wrong error
	t.ForEach(func(k, v lua.LValue) {
		name, isText := k.(lua.LString)
		value, isValue := v.(lua.LString)
		switch {
		case !isText || !mcpHeaderName.MatchString(string(name)):
			wrong = c.Mistake("option %q: got %s as a name, want the name of a header", "headers", show(k))
		case mcpOwnHeaders.MatchString(string(name)):
			wrong = c.Mistake("option %q: %s is set by the protocol, leave it out", "headers", name)
		case !isValue || strings.ContainsFunc(string(value), func(r rune) bool { return (r < ' ' && r != '\t') || r == 0x7f }):
			wrong = c.Mistake("option %q: %s: got %s, want a string on one line", "headers", name, masked)
		default:
			out.Set(string(name), string(value))
		}
	})
	return out, wrong
}
