package luabind

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
	"go.uber.org/goleak"
)

// webHost is a std host beside a server on this machine.
type webHost struct {
	*stdHost
	*httptest.Server
}

func newWebHost(t *testing.T, routes map[string]http.HandlerFunc) *webHost {
	t.Helper()
	mux := http.NewServeMux()
	for pattern, handle := range routes {
		mux.HandleFunc(pattern, handle)
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	h := &webHost{newStdHost(t), server}
	h.SetGlobal("base", lua.LString(server.URL))
	h.SetGlobal("host", lua.LString(server.Listener.Addr().String()))
	return h
}

// raised runs a chunk that must raise and answers the error's kind and text.
func (h *webHost) raised(t *testing.T, call string) (kind, text string) {
	t.Helper()
	values, err := h.RunString(context.Background(), "chunk", `
		local ok, e = pcall(function() return `+call+` end)
		assert(not ok, "want an error")
		return type(e) == "userdata" and e.kind or "mistake", tostring(e)`)
	require.NoError(t, err, call)
	return values[0].String(), values[1].String()
}

func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header()["X-Two"] = []string{"a", "b"}
	w.Header()["Set-Cookie"] = []string{"a=1, x", "b=2"}
	w.WriteHeader(http.StatusTeapot)
	fmt.Fprintf(w, "%s %s %s|%s|%s", r.Method, r.URL.RequestURI(), r.Header.Get("X-Key"), r.Header.Get("User-Agent"), body)
}

func TestHTTPAnswers(t *testing.T) {
	h := newWebHost(t, map[string]http.HandlerFunc{
		"/echo": echo,
		"/raw":  func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "a\xff\x00b") },
		"/long": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "aé"+strings.Repeat("x", 1<<20)) },
		"/zip": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			io.WriteString(z, strings.Repeat("z", 10<<20))
			z.Close()
		},
		"/to":   func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/raw", http.StatusFound) },
		"/none": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
	})
	require.NoError(t, h.run(`
		local r = std.http.request{ method = "POST", url = base .. "/echo?a=1#part", headers = { ["x-key"] = "k" }, body = "b\0\255" }
		assert(r.status == 418 and r.body == "POST /echo?a=1 k|knl|b\0\255", r.body)
		assert(r.headers["x-two"] == "a, b" and r.headers["set-cookie"] == "a=1, x\nb=2")
		assert(r.url == base .. "/echo?a=1" and r.truncated == nil)
		r = std.http.request{ url = base .. "/raw" }
		assert(r.body == "a\255\0b" and r.status == 200)
		r = std.http.request{ url = base .. "/to" }
		assert(r.body == "a\255\0b" and r.url == base .. "/raw")
		r = std.http.request{ url = base .. "/to", redirects = 0 }
		assert(r.status == 302 and r.headers.location == "/raw")
		r = std.http.request{ url = base .. "/long", max_bytes = 2 }
		assert(r.body == "a" and r.truncated == true, "cut between characters")
		r = std.http.request{ url = base .. "/long", max_bytes = 2^20 + 3 }
		assert(#r.body == 2^20 + 3 and r.truncated == nil)
		r = std.http.request{ url = base .. "/zip", max_bytes = 100 }
		assert(r.body == ("z"):rep(100) and r.truncated)
		r = std.http.request{ url = base .. "/none", method = "DELETE" }
		assert(r.status == 204 and r.body == "")
		assert(std.http.request{ url = base .. "/raw", method = "HEAD" }.body == "")`))
}

func TestHTTPFaults(t *testing.T) {
	stop := make(chan struct{})
	h := newWebHost(t, map[string]http.HandlerFunc{
		"/slow": func(w http.ResponseWriter, r *http.Request) { hold(r, stop) },
		"/drip": func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "begun")
			w.(http.Flusher).Flush()
			hold(r, stop)
		},
		"/cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "half")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
		"/loop": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) },
		"/file": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		},
		"/bad": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://%zz/")
			w.WriteHeader(302)
		},
		"/huge": func(w http.ResponseWriter, r *http.Request) {
			chunk := make([]byte, 1<<20)
			for r.Context().Err() == nil {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		},
	})
	defer close(stop)
	for call, want := range map[string][2]string{
		`{ url = base .. "/slow?key=hidden", timeout = 0.05 }`: {"timeout", "GET " + h.URL + "/slow: no whole answer within 50ms"},
		`{ url = base .. "/drip", timeout = 0.05 }`:            {"timeout", "no whole answer"},
		`{ url = base .. "/cut" }`:                             {"transport", "unexpected EOF"},
		`{ url = base .. "/loop", redirects = 3 }`:             {"transport", "redirected more than 3 times"},
		`{ url = base .. "/loop" }`:                            {"transport", "redirected more than 10 times"},
		`{ url = base .. "/file" }`:                            {"denied", `leads to the scheme "file"`},
		`{ url = base .. "/bad" }`:                             {"transport", "GET " + h.URL + "/bad: "},
		`{ url = base .. "/huge" }`:                            {"too_large", "above 64 MB"},
		`{ url = "http://127.0.0.1:1/" }`:                      {"transport", "nobody listens there"},
		`{ url = "https" .. base:sub(5) }`:                     {"transport", "https://"},
		`{ url = base, hosts = { "example.com" } }`:            {"denied", `is not among example.com`},
		`{ url = base, public = true }`:                        {"denied", "is no public address"},
		`{ url = "http://localhost:1", public = true }`:        {"denied", "is no public address"},
		`{ url = "http://[::1]:1", public = true }`:            {"denied", "is no public address"},
		`{ url = "http://user:pw@127.0.0.1:1/" }`:              {"transport", "GET http://127.0.0.1:1/: "},
	} {
		kind, text := h.raised(t, "std.http.request"+call)
		assert.Equal(t, want[0], kind, call)
		assert.Contains(t, text, want[1], call)
		assert.NotContains(t, text, "hidden")
		assert.NotContains(t, text, "pw")
	}
}

func hold(r *http.Request, stop chan struct{}) {
	select {
	case <-r.Context().Done():
	case <-stop:
	}
}

func TestHTTPRefusesBadRequests(t *testing.T) {
	h := newWebHost(t, nil)
	for call, want := range map[string]string{
		`{}`:                                                     `option "url": got nil, want a string`,
		`{ url = "" }`:                                           `option "url": got the scheme "", want http://host/…`,
		`{ url = "ftp://h/" }`:                                   `got the scheme "ftp"`,
		`{ url = "file:///etc/passwd" }`:                         `got the scheme "file"`,
		`{ url = "http:///x" }`:                                  `got no host`,
		`{ url = "http://h/\r\nX: y" }`:                          `got a space or control character in it`,
		`{ url = "http://h/a b" }`:                               `got a space or control character in it`,
		`{ url = "http://h:port/" }`:                             `got text that is no URL`,
		`{ url = base, method = "GET / HTTP" }`:                  `option "method": got "GET / HTTP"`,
		`{ url = base, method = "CONNECT" }`:                     `option "method": got "CONNECT"`,
		`{ url = base, method = "" }`:                            `option "method"`,
		`{ url = base, headers = { a = "b\r\nc: d" } }`:          `option "headers": a: got a line end or control character`,
		`{ url = base, headers = { ["a\nb"] = "c" } }`:           `option "headers": got "a\nb" as a name`,
		`{ url = base, headers = { [1] = "c" } }`:                `option "headers": got 1 as a name`,
		`{ url = base, headers = { a = 5 } }`:                    `option "headers": a: got 5, want a string`,
		`{ url = base, headers = { host = "h" } }`:               `option "headers": host comes from the request itself`,
		`{ url = base, headers = { ["Content-length"] = "1" } }`: `comes from the request itself`,
		`{ url = base, timeout = 0 }`:                            `option "timeout": got 0, want seconds above 0`,
		`{ url = base, timeout = -1 }`:                           `option "timeout": got -1`,
		`{ url = base, max_bytes = -1 }`:                         `option "max_bytes": got -1`,
		`{ url = base, redirects = 51 }`:                         `option "redirects": got 51, want 0 to 50`,
		`{ url = base, hosts = {} }`:                             `option "hosts": got a table, want a list of names`,
		`{ url = base, hosts = { "http://h" } }`:                 `option "hosts": [1]: got "http://h"`,
		`{ url = base, hsots = { "h" } }`:                        `did you mean "hosts"?`,
		`{ url = base, body = 5 }`:                               `option "body": got 5, want a string`,
	} {
		kind, text := h.raised(t, "std.http.request"+call)
		assert.Equal(t, "mistake", kind, call)
		assert.Contains(t, text, "chunk:2: std.http.request: ", call)
		assert.Contains(t, text, want, call)
	}
}

// What a script sends to one server another one does not get by a redirect, and
// not on the way back either.
func TestHTTPRedirectsElsewhereTakeNoKeys(t *testing.T) {
	seen := make(chan http.Header, 8)
	see := func(w http.ResponseWriter, r *http.Request) { seen <- r.Header.Clone() }
	var first *webHost
	other := newWebHost(t, map[string]http.HandlerFunc{
		"/see":  see,
		"/back": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, first.URL+"/see", http.StatusFound) },
	})
	first = newWebHost(t, map[string]http.HandlerFunc{
		"/see":  see,
		"/same": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/see", http.StatusFound) },
		"/away": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL+"/see", http.StatusFound) },
		"/trip": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL+"/back", http.StatusFound) },
	})
	ask := `std.http.request{ url = base .. "/%s", headers = { ["x-api-key"] = "k", authorization = "a", accept = "t" } }`
	for path, want := range map[string]string{"same": "k", "away": "", "trip": ""} {
		require.NoError(t, first.run(fmt.Sprintf(ask, path)))
		h := <-seen
		assert.Equal(t, want, h.Get("X-Api-Key"), path)
		assert.Equal(t, want == "k", h.Get("Authorization") != "", path)
		assert.Equal(t, "t", h.Get("Accept"), path)
	}
}

func TestHTTPRulesHoldForRedirects(t *testing.T) {
	h := newWebHost(t, map[string]http.HandlerFunc{
		"/ok": echo,
		"/to": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://localhost:1/", http.StatusFound)
		},
	})
	kind, text := h.raised(t, `std.http.request{ url = base .. "/to", hosts = { host } }`)
	assert.Equal(t, "denied", kind)
	assert.Contains(t, text, `host "localhost:1" is not among 127.0.0.1`)
	kind, text = h.raised(t, `std.http.request{ url = base .. "/to", public = true, hosts = { host, "*.example.com", "localhost:2" } }`)
	assert.Equal(t, "denied", kind, text)
	require.NoError(t, h.run(`assert(std.http.request{ url = base .. "/ok", public = true, hosts = { host } }.status == 418)
		assert(std.http.request{ url = base .. "/ok", hosts = { "127.0.0.1" } }.status == 418)`))
	require.NoError(t, h.run(`local r = std.http.request{ url = base .. "/ok", hosts = { "127.0.0.1" }, public = true }
		assert(r.status == 418)`), "a connection left over is not taken")
}

// A body is for the server that it was sent to, whatever that one says.
func TestHTTPTakesNoBodyToAnotherServer(t *testing.T) {
	seen := make(chan string, 1)
	second := newWebHost(t, map[string]http.HandlerFunc{"/": func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen <- r.Method + " " + string(body)
	}})
	routes := map[string]http.HandlerFunc{"/ok": echo}
	for _, status := range []int{302, 303, 307, 308} {
		routes[fmt.Sprintf("/%d", status)] = func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, second.URL+"/", status)
		}
	}
	routes["/same"] = func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/ok", http.StatusTemporaryRedirect) }
	first := newWebHost(t, routes)
	for _, path := range []string{"/307", "/308"} {
		kind, text := first.raised(t, `std.http.request{ url = base .. "`+path+`", method = "POST", body = "private" }`)
		assert.Equal(t, "denied", kind)
		assert.Contains(t, text, "redirected to "+second.URL+" with the body, which is not for another server")
		require.NoError(t, first.run(`std.http.request{ url = base .. "`+path+`" }`))
		assert.Equal(t, "GET ", <-seen, "without a body there is nothing to keep")
	}
	for _, path := range []string{"/302", "/303"} {
		require.NoError(t, first.run(`std.http.request{ url = base .. "`+path+`", method = "POST", body = "private" }`))
		assert.Equal(t, "GET ", <-seen)
	}
	require.NoError(t, first.run(`assert(std.http.request{ url = base .. "/same", method = "POST", body = "b" }.body:find("POST /ok .*|b$"))`))
}

func TestHTTPSaysWhereABodyIsNoText(t *testing.T) {
	h := newWebHost(t, map[string]http.HandlerFunc{
		"/latin": func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "caf\xe9") },
		"/text":  func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "café") },
	})
	require.NoError(t, h.run(`
		assert(std.http.request{ url = base .. "/latin" }.not_text == 4)
		assert(std.http.request{ url = base .. "/text" }.not_text == nil)
		assert(std.http.request{ url = base .. "/text", max_bytes = 4 }.not_text == nil, "cut between characters")`))
	vm, _ := toolHost(t, StdOptions{})
	vm.SetGlobal("base", lua.LString(h.URL))
	vm.SetGlobal("host", lua.LString(h.Listener.Addr().String()))
	mustLua(t, vm, `
		local ask = require("tools").http{ hosts = { host } }.http.handler
		assert(ask{ url = base .. "/latin" }.note == "the body is no UTF-8 from byte 4 on: characters are lost in it")
		assert(ask{ url = base .. "/text" }.note == nil)`)
}

func TestHTTPEndsWithItsTask(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	began := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	vm, err := New(Config{Project: t.TempDir(), Modules: Std(StdOptions{})})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-began; cancel() }()
	_, err = vm.RunString(ctx, "chunk", `std.http.request{ url = "`+server.URL+`" }`)
	assert.ErrorIs(t, err, context.Canceled)
	require.NoError(t, vm.Close())
}

// A server that never speaks is left at the deadline.
func TestHTTPASilentServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	h := newWebHost(t, nil)
	began := time.Now()
	kind, _ := h.raised(t, `std.http.request{ url = "http://`+l.Addr().String()+`", timeout = 0.1 }`)
	assert.Equal(t, "timeout", kind)
	assert.Less(t, time.Since(began), 30*time.Second)
}
