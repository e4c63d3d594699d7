package luabind

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	lua "github.com/yuin/gopher-lua"
)

// mcpWeb sends the requests of a client over HTTP with the headers of the
// script. A whole answer is read before it is handed on, so that a request that
// is cancelled while its answer arrives ends alone and not the connection.
type mcpWeb struct {
	base    *http.Transport
	headers http.Header
}

// RoundTrip sends one request.
func (w *mcpWeb) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	for name, values := range w.headers {
		req.Header[name] = values
	}
	resp, err := w.base.RoundTrip(req)
	if err != nil || strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return resp, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, mcpFrameLimit+1))
	resp.Body.Close()
	if err == nil && len(body) > mcpFrameLimit {
		err = fmt.Errorf("an answer above %d MiB", mcpFrameLimit>>20)
	}
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// webTransport answers what opens a connection to the endpoint.
func webTransport(endpoint *url.URL, headers http.Header) func(*mcpClient) (mcp.Transport, error) {
	return func(c *mcpClient) (mcp.Transport, error) {
		web := &mcpWeb{base: http.DefaultTransport.(*http.Transport).Clone(), headers: headers}
		c.idle = web.base.CloseIdleConnections
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
		return fmt.Errorf("it redirects to %s://%s, want an endpoint that answers itself", req.URL.Scheme, req.URL.Host)
	}
	if len(via) > 5 {
		return fmt.Errorf("it redirects in a circle")
	}
	return nil
}

// mcpEndpoint reads the option url.
func mcpEndpoint(c *Call, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return nil, c.Mistake("option %q: got %q, want http:// or https:// with a host", "url", text)
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
