package luabind

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	golua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/kernel/store"
	"github.com/knl-run/knl/lua"
)

// toolHost is a VM with all that the shipped tools need.
func toolHost(t *testing.T, o StdOptions) (*VM, *bytes.Buffer) {
	t.Helper()
	var shown bytes.Buffer
	mem := store.NewMem()
	o.Store = func(string) (store.Store, error) { return mem, nil }
	vm, err := New(Config{
		Project: t.TempDir(), Embedded: lua.FS, Stderr: &shown,
		Modules: append(KnlModules(&Kernel{Open: o.Store}), Std(o)...),
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, vm.Close()) })
	return vm, &shown
}

func TestTheHTTPToolFetches(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/x")
		io.WriteString(w, r.Method+" "+r.Header.Get("X-Key")+string(body))
	})
	mux.HandleFunc("/bin", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "a\x00b") })
	mux.HandleFunc("/none", http.NotFound)
	mux.HandleFunc("/long", func(w http.ResponseWriter, _ *http.Request) { w.Write(bytes.Repeat([]byte("x"), 1<<20)) })
	mux.HandleFunc("/inside", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
	})
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	server := httptest.NewServer(mux)
	defer server.Close()
	vm, _ := toolHost(t, StdOptions{})
	vm.SetGlobal("base", golua.LString(server.URL))
	vm.SetGlobal("host", golua.LString(server.Listener.Addr().String()))
	mustLua(t, vm, `
		local tools = require("tools")
		local function ask(args, opts)
			opts = opts or {}
			opts.hosts = { host }
			args.url = base .. args.url
			return tools.http(opts).http.handler(args)
		end
		local r = ask({ url = "/echo", method = "POST", body = "!" }, { methods = { "POST" }, headers = { ["x-key"] = "k" } })
		assert(r.status == 200 and r.body == "POST k!" and r.content_type == "text/x" and r.url == base .. "/echo")
		assert(ask({ url = "/echo" }).body == "GET ")
		assert(ask({ url = "/none" }).status == 404)
		r = ask({ url = "/bin" })
		assert(r.reason == "not_text" and r.bytes == 3, r.reason)
		r = ask({ url = "/long" }, { max_bytes = 10 })
		assert(r.body == ("x"):rep(10) and r.truncated == true)
		assert(#ask({ url = "/long" }).body == 65536)
		assert(ask({ url = "/inside" }).reason == "denied")
		assert(ask({ url = "/slow" }, { timeout = 0.05 }).reason == "timeout")`)
}

func TestTheAskToolAsksAtTheTerminal(t *testing.T) {
	hands := make(chan *os.File, 4)
	vm, shown := toolHost(t, StdOptions{Terminal: func() (io.ReadCloser, error) {
		r, w, err := os.Pipe()
		hands <- w
		return r, err
	}})
	go func() {
		for _, typed := range []string{"2\n", "neither\n", "9\n", "1\n", " 2 \n", "3\n", ""} {
			w := <-hands
			io.WriteString(w, typed)
			w.Close()
		}
	}()
	_, err := vm.RunString(context.Background(), "chunk", `
		local ask = require("tools").ask().ask.handler
		local args = { question = "which\27?", choices = { "red", "blue" } }
		assert(ask(args) == "blue")
		assert(ask(args) == "neither")
		assert(ask(args) == "9")
		local numbers = { question = "how many?", choices = { "2", "1", "4" } }
		assert(ask(numbers) == "1", "what is typed is a choice")
		assert(ask(numbers) == "2")
		assert(ask(numbers) == "4", "and else the number of one")
		assert(ask(args).reason == "closed")`)
	require.NoError(t, err)
	assert.Contains(t, shown.String(), "\nwhich\\x1b?\n  1) red\n  2) blue\n> ")
	go func() { (<-hands).Close() }()
	mustLua(t, vm, `assert(require("tools").ask{ timeout = 600 }.ask.handler{ question = "?" }.reason == "closed")`)
}
