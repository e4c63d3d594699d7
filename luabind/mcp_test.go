package luabind

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/knl-run/knl/kernel/store"
)

// mcpHost is a VM with mcp over a project of its own, and the processes that
// its servers were.
type mcpHost struct {
	*VM
	t         *testing.T
	dir, pids string
}

func newMCPHost(t *testing.T, dev bool) *mcpHost {
	t.Helper()
	h := &mcpHost{t: t, dir: t.TempDir()}
	h.pids = filepath.Join(h.dir, "pids")
	mem := store.NewMem()
	modules := KnlModules(&Kernel{Open: func(string) (store.Store, error) { return mem, nil }})
	modules = append(modules, PortsModule(&Ports{}), MCPModule(&MCP{Version: "0.0.0-test"}))
	vm, err := New(Config{
		Project: h.dir,
		Env: func(name string) (string, bool) {
			if name == "LSHAPE_CHECK" {
				return "1", dev
			}
			return os.LookupEnv(name)
		},
		Modules: append(modules, Std(StdOptions{})...),
	})
	require.NoError(t, err)
	h.VM = vm
	return h
}

// prelude gives scripts server(role, more?) and failure(fn, ...).
const mcpPrelude = `
local mcp = require("mcp")
function server(role, more)
	local opts = { command = %q, env = { KNL_TEST_MCP_ROLE = role, KNL_TEST_MCP_PIDS = %q } }
	for k, v in pairs(more or {}) do opts[k] = v end
	return mcp.stdio(opts)
end
function failure(fn, ...)
	local ok, err = pcall(fn, ...)
	assert(not ok, "it did not raise")
	return tostring(err), type(err) == "userdata" and err.kind or nil
end
`

func (h *mcpHost) run(ctx context.Context, source string) error {
	h.t.Helper()
	exe, err := os.Executable()
	require.NoError(h.t, err)
	_, err = h.RunString(ctx, "prelude", fmt.Sprintf(mcpPrelude, exe, h.pids))
	require.NoError(h.t, err)
	_, err = h.RunString(ctx, "chunk", source)
	return err
}

// end closes the VM and finds nothing left.
func (h *mcpHost) end() {
	h.t.Helper()
	require.NoError(h.t, h.Close())
	for _, pid := range h.processes() {
		assert.False(h.t, pid > 0 && running(pid), "process %d is still there", pid)
	}
}

// processes answers the pids that the servers noted; -1 is a cancellation.
func (h *mcpHost) processes() (pids []int) {
	text, _ := os.ReadFile(h.pids)
	for _, word := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(word)
		require.NoError(h.t, err)
		pids = append(pids, pid)
	}
	return pids
}

// running says whether a process is there and has not ended.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	state := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))[0]
	return state != "Z" && state != "X"
}

// inBothModes runs a script over servers of both kinds of VM and looks at what
// is left.
func inBothModes(t *testing.T, source string) {
	t.Helper()
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for _, dev := range []bool{true, false} {
		h := newMCPHost(t, dev)
		err := h.run(context.Background(), source)
		if !assert.NoError(t, err, "dev %v", dev) {
			t.Log(traceOf(err))
		}
		h.end()
	}
}

const mcpToolsScript = `
	local function same(a, b, what)
		a, b = std.json.encode(a), std.json.encode(b)
		assert(a == b, (what or "") .. ": got " .. a .. ", want " .. b)
	end
	local tools, refused, names = client:tools()
	local keys = {}
	for key in pairs(tools) do keys[#keys + 1] = key end
	table.sort(keys)
	same(table.concat(keys, " "), "big composed die echo fails fs_read fs_read-4074bc02 hang mixed refuses steps structured")
	same(names, { ["fs_read-4074bc02"] = "fs.read" })
	local why = {}
	for i, r in ipairs(refused) do why[i] = r.name .. ": " .. r.reason end
	why = table.concat(why, "\n")
	for _, text in ipairs{ 'a string: input_schema: got type "string", want "object"', "old draft: input_schema: ", "/exclusiveMinimum",
			"outside: input_schema: ", 'leads out of the schema', "echo: the server lists the name twice" } do
		assert(why:find(text, 1, true), text .. " is not in\n" .. why)
	end
	same(#refused, 4)
	same({ tools["fs_read-4074bc02"].effects, tools["fs_read-4074bc02"].idempotent }, { "read", true })
	same({ tools.fs_read.effects, tools.fs_read.idempotent }, { "external", true })
	same({ tools.echo.effects, tools.echo.idempotent == nil }, { "external", true })
	same({ tools.echo.description, tools.echo.timeout, tools.echo.input_schema.type }, { "does echo", 90, "object" })
	require("knl").device{ tools = tools }

	same(tools.echo.handler({ id = require("knl").int("9007199254740993"), list = {}, s = "ü" }, nil), '{"id":9007199254740993,"list":{},"s":"ü"}')
	same(tools.echo.handler(), "{}")
	same(tools.fs_read.handler{}, "")
	same(tools["fs_read-4074bc02"].handler{}, "read")
	same(#tools.big.handler{}, 10 * 2 ^ 20)
	same({ tools.structured.handler{} }, { { list = std.json.decode("[]"), n = 3 }, { list = std.json.decode("[]"), n = 3 } })
	same(tools.mixed.handler{}, {
		{ type = "text", text = "a picture" },
		{ type = "image", source = { type = "base64", media_type = "image/png", data = "cG5n" } },
		{ type = "text", text = "[audio, audio/wav, 4 bytes: not shown]" },
		{ type = "text", text = "[resource file:///x: x]" },
		{ type = "text", text = "[resource mem://a]\ninside" },
		{ type = "text", text = "[resource mem://b]" },
		{ type = "document", source = { type = "base64", media_type = "application/pdf", data = "JVBERg==" } },
	})
	same({ failure(tools.fails.handler, {}) }, { "no such row" })
	local text, kind = failure(tools.refuses.handler, {})
	assert(text:find("tools/call refuses: out of order", 1, true) and kind == "server", text)

	tools, refused = client:tools{ "echo", "fs.read", "fs_raed", "a string" }
	assert(tools.echo and tools["fs_read-4074bc02"] and not tools.big)
	same({ refused[#refused - 1].name, refused[#refused - 1].reason }, { "fs_raed", 'the server has no such tool: did you mean "fs_read"?' })
	same(refused[#refused].name, "a string")
	tools = client:tools(function(tool) return tool.effects == "read" end)
	assert(tools["fs_read-4074bc02"] and not tools.echo)
	assert(failure(client.tools, client, function() error("mine", 0) end) == "mine")

	local resources, templates = client:resources()
	same(resources, { { uri = "mem://note", name = "note", mime_type = "text/plain", size = 5 } })
	same(templates, { { uri_template = "mem://{name}", name = "any" } })
	same(client:read("mem://note")[1], { uri = "mem://note", mime_type = "text/plain", text = "hello" })
	assert(client:read("mem://note")[2].bytes == "\0\255")
	text, kind = failure(client.read, client, "mem://nowhere")
	assert(text:find("resources/read mem://nowhere: ", 1, true) and kind == "server", text)
	same(client:prompts(), { { name = "greet", arguments = { { name = "who", required = true } } } })
	same(client:prompt("greet", { who = "you" }),
		{ description = "greets", messages = { { role = "user", content = { { type = "text", text = "hello you" } } } } })
	assert(failure(client.prompt, client, "greet", { who = 3 }):find("want text by name"))
	assert(tostring(client):find("^mcp.client "))
	client:close()
	client:close()
	text, kind = failure(client.tools, client)
	assert(text:find("tools/list: the client is closed", 1, true) and kind == "closed", text)
`

func TestMCPOverStdio(t *testing.T) {
	inBothModes(t, `local client = server("good", { call_timeout = 90 })`+mcpToolsScript)
}

func TestMCPOverHTTP(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	var keys atomic.Int64
	serve := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return testMCP() }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") == "k1" {
			keys.Add(1)
		}
		serve.ServeHTTP(w, r)
	}))
	inBothModes := func() {
		for _, dev := range []bool{true, false} {
			h := newMCPHost(t, dev)
			err := h.run(context.Background(), fmt.Sprintf(`local client = require("mcp").http{ url = %q, headers = { ["X-Key"] = "k1" }, call_timeout = 90 }`, web.URL)+mcpToolsScript)
			assert.NoError(t, err, "dev %v\n%s", dev, traceOf(err))
			h.end()
		}
	}
	inBothModes()
	web.Close()
	assert.Positive(t, keys.Load())
}

func TestMCPProgress(t *testing.T) {
	inBothModes(t, `
		local said = {}
		local client = server("good", { on_progress = function(p)
			said[#said + 1] = table.concat({ p.tool, p.progress, p.total, p.message }, " ")
			if p.progress == 2 then std.fs.write("heard", "") end
		end })
		local tools = client:tools()
		assert(tools.steps.handler{} == "done")
		assert(table.concat(said, ", ") == "steps 1 2 step, steps 2 2 step", table.concat(said, ", "))
		client:close()

		client = server("good", { on_progress = function() error("enough", 0) end })
		std.fs.remove("heard")
		assert(failure(client:tools().steps.handler, {}) == "enough")`)
}

func TestMCPServersThatAreNoServers(t *testing.T) {
	for role, want := range map[string][]string{
		"silent":  {"timeout", `no answer to initialize within 1s; its stderr ends with: "waiting for a database"`},
		"garbage": {"timeout", `no answer to initialize within 1s; on stdout it printed what is no message: `},
		"exit":    {"closed", `initialize: it has ended with exit code 3; its stderr ends with: "no configuration"`},
		"mute":    {"closed", "initialize: it closed its stdout, and was ended"},
		"broken":  {"timeout", `within 1s; on stdout it printed what is no message: "{\"jsonrpc\":\"2.0\",\"result\":\n{\"jsonrpc\":\"2.0\"}"`},
	} {
		t.Run(role, func(t *testing.T) {
			began := time.Now()
			inBothModes(t, fmt.Sprintf(`
				local text, kind = failure(server, %q, { start_timeout = 1 })
				assert(kind == %q, tostring(kind) .. ": " .. text)
				assert(text:find(%q, 1, true), text)`, role, want[0], want[1]))
			assert.Less(t, time.Since(began), 10*time.Second)
		})
	}
}

// TestMCPMessageWithoutEnd proves that a death that is our doing says why.
func TestMCPMessageWithoutEnd(t *testing.T) {
	inBothModes(t, `
		local text, kind = failure(server, "endless")
		assert(kind == "closed", tostring(kind) .. ": " .. text)
		assert(text:find("initialize: it sent what cannot be read, and was ended: a message above 64 MiB", 1, true), text)`)
}

func TestMCPServersThatAreOdd(t *testing.T) {
	for _, role := range []string{"banner", "modern", "stubborn"} {
		t.Run(role, func(t *testing.T) {
			inBothModes(t, fmt.Sprintf(`assert(server(%q):tools().echo.handler{ a = 1 } == '{"a":1}')`, role))
		})
	}
}

func TestMCPDiesMidCall(t *testing.T) {
	began := time.Now()
	inBothModes(t, `
		local client = server("good", { call_timeout = 60 })
		local tools = client:tools()
		std.task.scope(function(scope)
			local other = scope:spawn(function() return failure(tools.hang.handler, {}) end)
			std.time.sleep(0.1)
			local text, kind = failure(tools.die.handler, {})
			local want = ': it has ended with exit code 7; its stderr ends with: "panic: nil map"'
			assert(kind == "closed" and text:find("tools/call die" .. want, 1, true), text)
			text, kind = other:join()
			assert(kind == "closed" and text:find("tools/call hang" .. want, 1, true), text)
			text, kind = failure(client.tools, client)
			assert(kind == "closed" and text:find("tools/list" .. want, 1, true), text)
		end)`)
	assert.Less(t, time.Since(began), 20*time.Second)
}

// TestMCPCallsEnd proves that a call ends by its timeout and by the end of its
// task, that the server is told, and that the connection lives on.
func TestMCPCallsEnd(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	h := newMCPHost(t, true)
	assert.NoError(t, h.run(context.Background(), `
		local client = server("good", { call_timeout = 0.5 })
		local tools = client:tools()
		local text, kind = failure(tools.hang.handler, {})
		assert(kind == "timeout" and text:find("no answer to tools/call hang within 500ms", 1, true), text)
		local ended = failure(std.task.with_timeout, 100, function() tools.hang.handler{} end)
		assert(ended:find("exceeded"), ended)
		assert(tools.echo.handler{} == "{}")
		for _ = 1, 400 do
			if select(2, std.fs.read("pids"):gsub("%-1", "")) == 2 then return end
			std.time.sleep(0.01)
		end
		error("the server was not told: " .. std.fs.read("pids"))`))
	h.end()
}

// TestMCPEndsWithTheRun looks for survivors after each way that a run ends.
func TestMCPEndsWithTheRun(t *testing.T) {
	for name, source := range map[string]string{
		"return":        `server("good"):tools()`,
		"raise":         `server("stubborn") error("boom")`,
		"raise in task": `std.task.scope(function(s) s:spawn(function() server("good"):tools().hang.handler{} end) std.time.sleep(0.3) error("boom") end)`,
		"interrupt":     `server("good"):tools().hang.handler{}`,
		"while started": `server("silent")`,
	} {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			h := newMCPHost(t, true)
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			if name == "interrupt" || name == "while started" {
				time.AfterFunc(400*time.Millisecond, stop)
			}
			err := h.run(ctx, source)
			assert.Equal(t, name == "return", err == nil, "%v", err)
			require.NotEmpty(t, h.processes())
			h.end()
		})
	}
}

func TestMCPOverHTTPGoesWrong(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	hang, err := hangingListener()
	require.NoError(t, err)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/elsewhere":
			http.Redirect(w, r, "http://"+hang.Addr().String()+"/", http.StatusTemporaryRedirect)
		case "/html":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>")
		case "/denied":
			http.Error(w, "who are you", http.StatusUnauthorized)
		case "/notjson":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, "{")
		case "/cut":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, ": nothing\n\n")
		case "/huge":
			w.Header().Set("Content-Type", "application/json")
			for i := 0; i < 70; i++ {
				fmt.Fprint(w, strings.Repeat(" ", 1<<20))
			}
		}
	}))
	for url, want := range map[string][2]string{
		web.URL + "/elsewhere":               {"invalid", "it redirects to http://"},
		web.URL + "/html":                    {"invalid", `got 200 OK of type "text/html", want the endpoint of an MCP server`},
		web.URL + "/denied":                  {"auth", `401 Unauthorized: "who are you": want credentials in headers that the server takes`},
		web.URL + "/notjson":                 {"invalid", `200 OK: "{" is no JSON-RPC message`},
		web.URL + "/cut":                     {"transport", "terminated without response"},
		web.URL + "/huge":                    {"invalid", "an answer above 64 MiB"},
		"http://" + hang.Addr().String():     {"timeout", "no answer to initialize within 1s"},
		"http://127.0.0.1:1/":                {"transport", "refused"},
		"http://127.0.0.1:1/x\r\nX-Evil: 1/": {"", "want http:// or https:// with a host"},
		"ftp://127.0.0.1/":                   {"", "want http:// or https:// with a host"},
		"http://me:secret@127.0.0.1/":        {"", "holds a user or password, want it in headers"},
	} {
		limit := 20
		if want[0] == "timeout" {
			limit = 1
		}
		h := newMCPHost(t, true)
		err := h.run(context.Background(), fmt.Sprintf(`
			local text, kind = failure(require("mcp").http, { url = %q, start_timeout = %d })
			assert((kind or "") == %q, tostring(kind) .. ": " .. text)
			assert(text:find(%q, 1, true), text)`, url, limit, want[0], want[1]))
		assert.NoError(t, err, url)
		h.end()
	}
	web.Close()
	require.NoError(t, hang.Close())
}
