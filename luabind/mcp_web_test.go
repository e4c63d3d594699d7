package luabind

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

// webServer is an MCP server over HTTP that does what the argument k of a call
// says, written out by hand: no library would.
type webServer struct {
	mu       sync.Mutex
	sessions int
	ended    map[string]bool
	says400  string   // to an ended session; "": it is a 404
	taken    []string // "k in session"
	versions map[string]bool
}

type webCall struct {
	ID     json.RawMessage
	Method string
	Params struct {
		ProtocolVersion string
		Arguments       struct{ K string }
	}
}

func (s *webServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	var m webCall
	if r.Method != http.MethodPost || json.Unmarshal(body, &m) != nil {
		http.Error(w, "no", http.StatusMethodNotAllowed)
		return
	}
	session := r.Header.Get("Mcp-Session-Id")
	if m.Method != "initialize" {
		s.versions[r.Header.Get("Mcp-Protocol-Version")] = true
	}
	answer := func(kind, text string) {
		w.Header().Set("Content-Type", kind)
		fmt.Fprint(w, text)
	}
	result := func(text string) {
		answer("application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, text))
	}
	switch {
	case m.Method == "initialize":
		s.sessions++
		w.Header().Set("Mcp-Session-Id", fmt.Sprintf("s%d", s.sessions))
		result(fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`, m.Params.ProtocolVersion))
	case s.ended[session] && s.says400 != "":
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, s.says400)
	case s.ended[session]:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`)
	case len(m.ID) == 0:
		w.WriteHeader(http.StatusAccepted)
	case m.Method == "tools/list":
		result(`{"tools":[{"name":"do","inputSchema":{"type":"object"}}]}`)
	default:
		s.do(&m, session, w, answer, result)
	}
}

func (s *webServer) do(m *webCall, session string, w http.ResponseWriter, answer func(kind, text string), result func(string)) {
	k := m.Params.Arguments.K
	s.taken = append(s.taken, k+" in "+session)
	switch k {
	case "end":
		s.ended[session] = true
		result(`{"content":[{"type":"text","text":"ended"}]}`)
	case "nowhere":
		w.WriteHeader(http.StatusNotFound)
	case "denied":
		http.Error(w, "expired", http.StatusUnauthorized)
	case "busy":
		w.WriteHeader(http.StatusServiceUnavailable)
	case "page":
		answer("text/html", "<html>log in</html>")
	case "other":
		answer("application/json", `{"jsonrpc":"2.0","id":777,"result":{}}`)
	case "odd":
		result(`{"content":[{"type":"video"}]}`)
	case "code":
		answer("application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32004,"message":"no"}}`, m.ID))
	case "cr", "crlf", "mark", "bare":
		stream := fmt.Sprintf("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\ndata: \"result\":{\"content\":[{\"type\":\"text\",\"text\":\"%s\"}]}}\n\n", m.ID, k)
		answer("text/event-stream", map[string]string{
			"cr": strings.ReplaceAll(stream, "\n", "\r"), "crlf": strings.ReplaceAll(stream, "\n", "\r\n"),
			"mark": "\xEF\xBB\xBF" + stream, "bare": "retry\n" + stream,
		}[k])
	case "stream":
		answer("text/event-stream", "data: {oops\n\n")
	default:
		result(fmt.Sprintf(`{"content":[{"type":"text","text":"in %s"}]}`, session))
	}
}

// TestMCPSessionsOverHTTP proves that whatever a server answers to one call, the
// next one goes through: in the same session where that lives, in a new one
// where it does not. No call that was taken is sent twice.
func TestMCPSessionsOverHTTP(t *testing.T) {
	for k, want := range map[string]struct{ kind, text, retryable, next string }{
		"end":     {"", "ended", "", "in s2"},
		"nowhere": {"transport", `404 Not Found`, "true", "in s3"},
		"denied":  {"auth", `401 Unauthorized: "expired": want credentials in headers`, "false", "in s1"},
		"busy":    {"transport", "503 Service Unavailable", "true", "in s1"},
		"page":    {"invalid", `got 200 OK of type "text/html", want the endpoint of an MCP server`, "false", "in s1"},
		"other":   {"invalid", "answers another request", "false", "in s1"},
		"odd":     {"", `[a block that cannot be read: {"type":"video"}]`, "", "in s1"},
		"code":    {"server", "no (code -32004)", "false", "in s1"},
		"cr":      {"", "cr", "", "in s1"},
		"crlf":    {"", "crlf", "", "in s1"},
		"mark":    {"", "mark", "", "in s1"},
		"bare":    {"", "bare", "", "in s1"},
		"stream":  {"transport", "failed to decode event", "true", "in s2"},
	} {
		t.Run(k, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			s := &webServer{ended: map[string]bool{}, versions: map[string]bool{}}
			web := httptest.NewServer(s)
			h := newMCPHost(t, true)
			assert.NoError(t, h.run(context.Background(), fmt.Sprintf(`
				local client = require("mcp").http{ url = %q, call_timeout = 90 }
				local call = client:tools()["do"].handler
				local ok, err = pcall(call, { k = %q })
				local e = ok and { message = err } or require("knl").error(err)
				assert((e.kind or "") == %q and e.message:find(%q, 1, true), tostring(e.kind) .. ": " .. e.message)
				assert(ok or tostring(e.retryable or false) == %q, tostring(e.retryable))
				local said = call{ k = "next" }
				assert(said == %q, said)`, web.URL, k, want.kind, want.text, want.retryable, want.next)))
			h.end()
			web.Close()
			times := strings.Count(strings.Join(s.taken, "\n"), k+" in ")
			if k == "nowhere" { // answered 404 in two sessions: it has taken neither
				assert.Equal(t, 2, times)
			} else {
				assert.Equal(t, 1, times, "%q", s.taken)
			}
			assert.Equal(t, map[string]bool{mcpHandshake: true}, s.versions)
		})
	}
}

// The line ends and marks that the standard of server-sent events allows, however
// the bytes come.
func TestSSELines(t *testing.T) {
	for stream, want := range map[string]string{
		"":                           "",
		"data: a\r\rdata: b\r\n\r\n": "data: a\n\ndata: b\n\n",
		"a:\n\r\nb:\r\n\rc:\r":       "a:\n\nb:\n\nc:\n",
		"\xEF\xBB\xBFdata: a\n\n":    "data: a\n\n",
		"a: \xEF\xBB\xBF\n":          "a: \xEF\xBB\xBF\n",
		"\xEF\xBB":                   "\xEF\xBB",
		"data\ndata: x: y\r:c\rid\r": "data:\ndata: x: y\n:c\nid:\n",
		"data: cut":                  "data: cut",
	} {
		for _, in := range []io.Reader{strings.NewReader(stream), iotest.OneByteReader(strings.NewReader(stream)), iotest.DataErrReader(strings.NewReader(stream))} {
			got, err := io.ReadAll(newSSELines(io.NopCloser(in)))
			assert.NoError(t, err)
			assert.Equal(t, want, string(got), "%q", stream)
		}
	}
}

// What has come is handed on at once: the end of a line is no reason to wait.
func TestSSELinesDoNotWait(t *testing.T) {
	in, out := io.Pipe()
	lines := newSSELines(in)
	for _, part := range []string{"data: a\r", "\rdata: b", "\n\n"} {
		go io.WriteString(out, part)
		got := make([]byte, len(part))
		_, err := io.ReadFull(lines, got)
		assert.NoError(t, err)
		assert.Equal(t, strings.ReplaceAll(part, "\r", "\n"), string(got))
	}
	lines.Close()
}

func TestMCPTakesNoUpgrade(t *testing.T) {
	ended := make(chan error, 1)
	web := httptest.NewServer(switches(t, ended))
	defer web.Close()
	h := newMCPHost(t, true)
	defer h.end()
	assert.NoError(t, h.run(context.Background(), fmt.Sprintf(`
		local ok, err = pcall(require("mcp").http, { url = %q, start_timeout = 9 })
		local e = require("knl").error(err)
		assert(not ok and e.kind == "transport", tostring(e.kind))
		assert(e.message:find("switches to another protocol (101)", 1, true), e.message)`, web.URL)))
	assert.ErrorIs(t, <-ended, io.EOF)
}

// A server that does not answer the end of a session holds nobody up.
func TestMCPLeavesASilentServer(t *testing.T) {
	s := &webServer{ended: map[string]bool{}, versions: map[string]bool{}}
	left := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			close(left)
			<-r.Context().Done()
			return
		}
		s.ServeHTTP(w, r)
	}))
	defer web.Close()
	h := newMCPHost(t, true)
	defer h.end()
	assert.NoError(t, h.run(context.Background(), fmt.Sprintf(`
		local client = require("mcp").http{ url = %q }
		client:tools()
		local std = require("std")
		local began = std.time.monotonic()
		client:close()
		local took = std.time.monotonic() - began
		assert(took < 3, took)`, web.URL)))
	<-left
}

// TestMCPSessionRefusedBy400 proves that a 400 that says that the session is not
// known is a 404, and any other is not.
func TestMCPSessionRefusedBy400(t *testing.T) {
	const refusal = `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":%q}}`
	for says, next := range map[string]string{
		fmt.Sprintf(refusal, "null", "Bad Request: No valid session ID provided"):         "in s2",
		fmt.Sprintf(refusal, `"server-error"`, "Bad Request: Invalid or expired session"): "in s2",
		fmt.Sprintf(refusal, "null", "Bad Request: Server not initialized"):               "in s2",
		"Session 12 is not known":                   "in s2",
		"unknown Mcp-Session-Id":                    "in s2",
		"session_id does no harm, the arguments do": "invalid",
		fmt.Sprintf(refusal, "null", "Bad Request: want a session of your own. Not this size"): "invalid",
		"too long": "invalid",
	} {
		t.Run(says, func(t *testing.T) {
			s := &webServer{ended: map[string]bool{}, versions: map[string]bool{}, says400: says}
			web := httptest.NewServer(s)
			defer web.Close()
			h := newMCPHost(t, true)
			assert.NoError(t, h.run(context.Background(), fmt.Sprintf(`
				local client = require("mcp").http{ url = %q, call_timeout = 90 }
				local call = client:tools()["do"].handler
				call{ k = "end" }
				local ok, said = pcall(call, { k = "next" })
				said = ok and said or require("knl").error(said).kind
				assert(said == %q, said)`, web.URL, next)))
			h.end()
		})
	}
}

// TestMCPErrorsHoldNoQuery proves that a URL's query, which may be a key, is in no
// error, also when the server repeats it.
func TestMCPErrorsHoldNoQuery(t *testing.T) {
	const query = "token=plain-canary-77777"
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "cannot "+r.Method+" "+r.URL.String(), http.StatusNotFound)
	}))
	defer web.Close()
	for url, want := range map[string]string{
		web.URL + "/mcp?" + query:                  `404 Not Found: "cannot POST /mcp?***"`,
		"http://127.0.0.1:1/mcp?" + query:          "initialize: dial tcp 127.0.0.1:1: ",
		"http://u:plain-canary 77777@127.0.0.1:1/": "got a space or control character in it, want http:// or https:// with a host",
		"http://u:plain-canary%zz@127.0.0.1:1/":    "got text that is no URL, want http:// or https:// with a host",
		"http://u:plain-canary@127.0.0.1:1/":       "holds a user or password, want it in headers",
		"plain-canary":                             `got the scheme "", want http:// or https:// with a host`,
	} {
		h := newMCPHost(t, true)
		assert.NoError(t, h.run(context.Background(), fmt.Sprintf(`
			local text = failure(require("mcp").http, { url = %q })
			assert(text:find(%q, 1, true) and not text:find("canary"), text)`, url, want)))
		h.end()
	}
}

func TestMCPEnvironment(t *testing.T) {
	t.Setenv("OWN_API_KEY", "k-own")
	t.Setenv("PLAIN_WORD", "seen")
	inBothModes(t, `
		local text = failure(server, "env", { env = { KNL_TEST_MCP_ROLE = "env", PASSED_TOKEN = "given", PLAIN_WORD = "x" } })
		assert(text:find("exit code 0", 1, true), text)
		assert(not text:find("k-own", 1, true), text)
		assert(text:find("PASSED_TOKEN=given", 1, true) or #text > 300, text)`)
}
