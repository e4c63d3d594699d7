package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel/pebblestore"
)

// The canaries: a plain key, one that JSON, Go and a URL spell otherwise, one of
// two lines, and one that is longer than what an error shows of a value.
var canaries = map[string]string{
	"CANARY_PLAIN": "canary-5f0a9c1e77d2",
	"CANARY_ODD":   `odd"canary\5f0a/é<&>%9c1e`,
	"CANARY_LINES": "first-canary-line-77d2\nsecond-canary-line-1e77",
	"CANARY_LONG":  "long-canary-" + strings.Repeat("0a9c1e77d2", 9),
}

// hunted answers every spelling that must not be found anywhere: each line, as it
// stands and as JSON (to the third level), Go and a URL write it, and the first
// half of the long one, which a cut may leave.
func hunted(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, value := range canaries {
		for line := range strings.Lines(value) {
			line = strings.TrimSpace(line)
			all = append(all, line, url.QueryEscape(line), strings.Trim(strconv.Quote(line), `"`))
			for range 3 {
				raw, err := json.Marshal(line)
				require.NoError(t, err)
				line = string(raw[1 : len(raw)-1])
				all = append(all, line)
			}
		}
	}
	return append(all, canaries["CANARY_LONG"][:30], canaries["CANARY_LONG"][70:])
}

// wild is where a run wrote.
type wild struct {
	dir string
	out bytes.Buffer
}

// knl runs the built binary over the folder, with the canaries set, and keeps
// every byte it writes.
func (w *wild) knl(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "HOME="+w.dir, "TRUNK="+w.dir)
	for name, value := range canaries {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit)
	}
	require.NotContains(t, string(out), "BUG")
	w.out.Write(out)
}

// find fails for every place that holds a canary: what was written to the
// terminal, every file but the scripts, and every record and head of the store,
// whose files may be compressed.
func (w *wild) find(t *testing.T) {
	t.Helper()
	all := hunted(t)
	look := func(place string, data []byte) {
		for _, c := range all {
			if i := bytes.Index(data, []byte(c)); i >= 0 {
				t.Errorf("%s holds %q: …%q…", place, c, data[max(0, i-80):min(len(data), i+len(c)+20)])
			}
		}
	}
	look("the terminal", w.out.Bytes())
	require.NoError(t, filepath.WalkDir(w.dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || filepath.Ext(name) == ".lua" {
			return err
		}
		data, err := os.ReadFile(name)
		look(name, data)
		return err
	}))
	ctx := context.Background()
	st, err := pebblestore.Open(filepath.Join(w.dir, ".knl"), pebblestore.Options{ReadOnly: true})
	require.NoError(t, err)
	infos, err := st.Streams(ctx, "", 0)
	require.NoError(t, err)
	require.NotEmpty(t, infos)
	for _, in := range infos {
		look("the head of "+in.Stream, in.Head.State)
		for r, err := range st.Records(ctx, in.Stream, 1, 0) {
			require.NoError(t, err)
			look("a record of "+in.Stream, append([]byte(r.Group), r.Body...))
		}
	}
	require.NoError(t, st.Close())
}

// leaky is a script that puts every canary wherever a script can put text.
const leaky = `
local knl, ports, tools = require("knl"), require("ports"), require("tools")
local names = { "CANARY_PLAIN", "CANARY_ODD", "CANARY_LINES", "CANARY_LONG" }
local secret = std.env.secret(arg[1])
for _, name in ipairs(names) do std.env.secret(name) end

print("stdout", secret, std.json.encode{ secret }, ("%q"):format(secret))
std.log.warn("log " .. secret, { [secret] = { secret }, json = std.json.encode{ std.json.encode{ secret } } })
std.kv.set("note", { list = { secret }, text = "x" .. secret .. "y" })
std.task.spawn(function() error("task " .. secret) end)
std.time.sleep(0.01)

local s = knl.open{ owner = "o " .. secret, budget = { amount = 50, tag = secret, desc = secret }, meta = { label = secret } }
s:append{ kind = "msg_user", data = { content = "user " .. secret }, meta = { by = secret } }
s:append{ kind = "note", data = { [secret] = 1, [secret .. "2"] = { secret } } }
s:append{ kind = "note", data = { content = ("filler "):rep(2000) .. secret } }

local function big(text) return ("x"):rep(5000) .. text end
local set = {
  echo = { handler = function() return secret end },
  table_of = { handler = function() return { key = secret, [secret] = { secret, big(secret) }, signature = secret, data = secret } end },
  json_of = { handler = function() return std.json.encode{ std.json.encode{ secret } } end },
  raises = { handler = function() error("no: " .. secret) end },
  raises_value = { handler = function() error({ message = secret, code = secret }) end },
  shows = { handler = function() return std.fs.read({ secret }) end },
  misses = { handler = function() return std.fs.read("none/" .. secret:gsub("\n", " ")) end },
  shell = { handler = function() return std.sh.run({ "printenv", "GIVEN" }, { env = { GIVEN = secret } }) end },
  cut = { handler = function() return std.sh.run({ "printenv", "GIVEN" }, { env = { GIVEN = ("y"):rep(20) .. secret }, max_bytes = 80 }) end },
  asks = { handler = function() return std.http.request{ url = "http://127.0.0.1:1/?key=" .. secret:gsub("[^%w-]", "") } end },
  strict = { strict = true, input_schema = { type = "object", properties = { a = { type = "number" } } }, handler = print },
  described = { description = secret, input_schema = { type = "object", description = secret }, handler = print },
}
local calls, n = {}, 0
for name in pairs(set) do calls[#calls + 1] = { name, { a = secret } } end
local device = knl.device{
  llm = function(request, ctx)
    n = n + 1
    print("request", std.json.encode(request))
    local reply = ports.script{ { text = "said " .. secret, thinking = secret, calls = calls }, { refuse = secret } }:open()
    if n <= 2 then return reply(request, { session = ctx.session, beat = ctx.beat, call = n - 1 }) end
    if n == 3 then return nil, { kind = "server", message = "the provider says " .. secret } end
    error("the port breaks " .. secret)
  end,
  tools = set,
  system = "system " .. secret,
  filters = { function(request)
    request.messages[#request.messages + 1] = { role = "user", content = big("filter " .. secret) }
    return request
  end },
  tool_policy = function(block) if block.name == "echo" and block.input.a == "deny" then return "deny", secret end end,
}
local outcomes = {}
for i = 1, 4 do
  local ok, o = pcall(knl.beat, s, device, { params = { user = secret }, on_delta = function(d) print(d.text) end })
  outcomes[i] = tostring(o) .. std.json.encode{ ok and o.status }
  print(outcomes[i], ok and o.out and std.json.encode(o.out), ok and o.detail and tostring(o.detail))
end
for _, row in ipairs(s:events()) do print(std.json.encode(row)) end
s:close("done", secret)
if arg[2] == "value" then error({ message = secret, detail = { secret } }) end
if arg[2] == "choice" then std.sh.run({ "true" }, { [secret] = 1 }) end
if arg[2] == "text" then error("at the end: " .. secret) end
return { ok = false, reason = secret, detail = { list = { secret }, [secret] = secret } }
`

const leakySpec = `
local secret = std.env.secret("CANARY_PLAIN")
local long = std.env.secret("CANARY_LONG")
describe("a case with " .. secret, function()
  it("fails with " .. secret, function() assert.equal("x", secret) end)
  it("fails with a table", function() assert.same({ a = { long } }, { a = { secret } }) end)
  it("raises", function() error(secret .. long) end)
  it("raises a value", function() error({ message = secret }) end)
end)
`

func TestNoSecretIsLeftBehind(t *testing.T) {
	for name := range canaries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &wild{dir: t.TempDir()}
			require.NoError(t, os.WriteFile(filepath.Join(w.dir, "leaky.lua"), []byte(leaky), 0o644))
			require.NoError(t, os.WriteFile(filepath.Join(w.dir, "leaky_spec.lua"), []byte(leakySpec), 0o644))
			for _, end := range []string{"verdict", "value", "choice", "text"} {
				w.knl(t, "run", "leaky.lua", name, end)
			}
			w.knl(t, "--json", "run", "leaky.lua", name, "verdict")
			w.knl(t, "--json", "run", "leaky.lua", name, "text")
			assert.Contains(t, w.out.String(), "***")
			require.Contains(t, w.out.String(), "at the end: ***", "the script came to its end")
			for _, args := range [][]string{
				{"sessions"}, {"sessions", "--json"}, {"log", "last"}, {"log", ".kv"}, {"show", "last"}, {"tree", "last"},
				{"export", "last", "--as", "events"}, {"export", "last", "--as", "messages"}, {"export", "last", "--as", "html"}, {"check", "store"},
				{"spec", "leaky_spec.lua"}, {"spec", "--output", "tap", "leaky_spec.lua"},
				{"spec", "--output", "junit", "--report", "report.xml", "leaky_spec.lua"}, {"spec", "--json", "leaky_spec.lua"},
			} {
				w.knl(t, args...)
			}
			w.find(t)
		})
	}
}

// A provider's key is hidden before the first call that needs it: a script may
// come by it in a file, or print what a command says of it.
func TestAKeyIsHiddenBeforeItIsUsed(t *testing.T) {
	const early = `
local knl = require("knl")
local key = std.env.get(arg[1])
print("before", key)
std.log.warn("before " .. key)
std.kv.set("key", key)
print("a command has none", std.sh.run({ "printenv", arg[1] }).stdout == "")
return knl.session({}, function(s)
  s:append{ kind = "msg_user", data = { content = arg[1] .. "=" .. key } }
  knl.beat(s, knl.device{ llm = function(request)
    print(request.messages[1].content)
    return nil, { kind = "server", message = key }
  end })
  return { key = key, [key] = key }
end)`
	for _, name := range []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"} {
		t.Run(name, func(t *testing.T) {
			w := &wild{dir: t.TempDir()}
			require.NoError(t, os.WriteFile(filepath.Join(w.dir, "early.lua"), []byte(early), 0o644))
			t.Setenv(name, canaries["CANARY_PLAIN"])
			w.knl(t, "--json", "run", "early.lua", name)
			require.Contains(t, w.out.String(), name+"=***", "the request is printed")
			require.Contains(t, w.out.String(), "a command has none\ttrue")
			require.Contains(t, w.out.String(), `"result":{"***":"***","key":"***"}`)
			w.find(t)
		})
	}
}

func TestAKeyThatIsAWordIsWarnedOf(t *testing.T) {
	w := &wild{dir: t.TempDir()}
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "a.lua"), []byte(`print("it is wonderful")`), 0o644))
	t.Setenv("OPENAI_API_KEY", "wonderful")
	w.knl(t, "run", "-q", "a.lua")
	require.Equal(t, 1, strings.Count(w.out.String(), "knl: a secret is an ordinary word: "))
	require.Contains(t, w.out.String(), "it is ***\n")
}
