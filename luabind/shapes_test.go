package luabind

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

var devMode = map[string]string{"LSHAPE_CHECK": "1"}

// shapesVM is a VM in dev mode with the global fits(value, name): what the
// host's own check says of a value, true or why not.
func shapesVM(t *testing.T) *VM {
	vm := knlVM(t, devMode)
	vm.SetGlobal("fits", vm.Root().NewFunction(func(l *lua.LState) int {
		v := l.Get(1)
		if m := mirrorOf(v); m != nil {
			v = look(l, v.(*lua.LTable))
		}
		if why := against(v, vm.published().named[l.CheckString(2)]); why != nil {
			l.Push(lua.LString(why.String()))
		} else {
			l.Push(lua.LTrue)
		}
		return 1
	}))
	return vm
}

// kernelValues are values of the kernel, by the name of their shape.
const kernelValues = `
local knl, ports = require("knl"), require("ports")
local values = {}
local function keep(name, value)
  assert(value ~= nil, name)
  values[#values + 1] = { name = name, value = value }
  return value
end
local port = ports.script{
  { text = "on it", calls = { { "read", { path = "a" } }, { "none" } } },
  { refuse = "no" }, { fail = { kind = "rate_limited", retry_after = 2, status = 429 } }, { text = "x", stop = "odd" },
}
local s = knl.open{ budget = { amount = 9, tag = "beats" }, meta = { job = "j", n = 1, on = true } }
local llm = port:open()
local device = knl.device{
  llm = llm, system = "be brief",
  tools = { read = { effects = "read", handler = function(_, ctx) keep("tool_context", ctx) return "text" end } },
  tool_policy = function(block, answer) keep("tool_use_block", block) keep("answer", answer) end,
}
s:append{ kind = "msg_user", data = { content = "go" } }
for i = 1, 4 do
  local o = knl.beat(s, device)
  keep("beat_outcome", o)
  keep("outcome", o)
  if o.status == "ok" then
    keep("reply", o.out)
    keep("usage", o.out.usage)
    keep("tool_run", o.out.tools[1])
  elseif o.status == "refused" then
    keep("refusal", o.detail.refusal)
    keep("reply", o.detail)
  else
    keep("detail", o.detail)
  end
end
keep("beat_outcome", knl.beat(s, {}))
keep("beat_outcome", knl.beat(knl.open{ budget = { amount = 0 } }, device))
for _, ev in ipairs(s:events()) do keep("event", ev) end
keep("event", s:scan{ kinds = { "tool_call" } }[1])
keep("event_in", { kind = "note", data = {}, meta = { a = 1 } })
local records = s:beats()
keep("beat_record", records[1])
local request = keep("request", s:request(records[1].id))
for _, m in ipairs(request.messages) do keep("message", m) end
keep("tool_spec", request.tools[1])
keep("text_block", records[1].events[2].data.content and records[1].events[2].data.content[1] or records[1].events[3].data.content[1])
keep("tool_result_block", knl.fold(s:events(), device).messages[3].content[1])
keep("error", knl.error(select(2, pcall(s.append, s, { kind = "" }))))
keep("error", knl.error("my own words"))
local _, why = ports.script{ { fail = { kind = "overloaded" } } }:open()(request)
keep("call_error", why)
keep("answer", ports.script{ { text = "hi" } }:open()(request))
for view, row in pairs{ beats = "beat_row", tool_pairs = "tool_pair", ledger = "ledger_row", usage = "usage_row", sessions = "session_row", tree = "tree_row" } do
  for _, r in ipairs((knl.views[view](s))) do keep(row, r) end
end
local broken = knl.device{ llm = function(_, ctx) keep("call_context", ctx) error("down") end }
knl.beat(s, broken)
knl.beat(s, knl.device{ llm = ports.script(function() return { text = "streamed" } end):open() }, { on_delta = function(d) keep("delta", d) end })
keep("tool_entry", { handler = print, effects = "read" })
return values
`

// TestKernelValuesFitTheirShapes feeds what a run answers through the derived
// shapes, by the host's check and by lshape's; a field taken away is noticed by
// both.
func TestKernelValuesFitTheirShapes(t *testing.T) {
	vm := shapesVM(t)
	got := runLua(t, vm, `local values = (function() `+kernelValues+` end)()
local knl, check = require("knl"), require("lshape").check
local seen = {}
local function bare(schema)
  while schema.kind == "optional" or schema.kind == "described" or schema.kind == "bounded" do schema = rawget(schema, "inner") end
  return schema
end
local function fields_of(schema, value)
  schema = bare(schema)
  if schema.kind == "discriminated" then return schema.variants[value[schema.tag]].fields end
  return schema.fields or {}
end
for _, v in ipairs(values) do
  local schema = knl.shapes[v.name]
  assert(schema, v.name)
  seen[v.name] = true
  local ok, why = check.check(v.value, schema)
  assert(ok, v.name .. ": " .. tostring(why))
  assert(fits(v.value, "knl." .. v.name) == true, v.name .. ": " .. tostring(fits(v.value, "knl." .. v.name)))
  for field, of in pairs(fields_of(schema, v.value)) do
    if bare(of).kind ~= "any" then
      local copy = {}
      for k, x in pairs(v.value) do copy[k] = x end
      if of.kind == "optional" then copy[field] = print else copy[field] = nil end
      local lax = bare(of).kind == "any_of" or bare(of).prim == "function"
      if not lax then
        assert(not check.check(copy, schema), v.name .. "." .. field .. ": lshape takes it")
        assert(fits(copy, "knl." .. v.name) ~= true, v.name .. "." .. field .. ": the host takes it")
      end
    end
  end
end
local missing = {}
local handles = { session = true, device = true, llm = true, callable = true, open_call = true, interrupted = true }
for name, schema in pairs(knl.shapes) do
  if schema.kind and not seen[name] and schema.kind ~= "one_of" and not name:find("_opts$") and not handles[name] then missing[#missing + 1] = name end
end
table.sort(missing)
return #values > 40 and "many" or #values, table.concat(missing, " ")`)
	require.Equal(t, []string{"many", ""}, got)
}

func TestInterruptedFitsItsShape(t *testing.T) {
	vm := shapesVM(t)
	s := interruptedSession(t, vm)
	got := runLua(t, vm, `
		local knl = require("knl")
		local s = knl.resume{ session = "`+s+`" }
		local it = s:interrupted()
		return it.stage, #it.open_calls, it.open_calls[1].name, fits(it, "knl.interrupted")`)
	require.Equal(t, []string{"tools", "1", "slow", "true"}, got)
}

// interruptedSession leaves a session whose driver ended in a tool.
func interruptedSession(t *testing.T, vm *VM) string {
	ctx, cancel := context.WithCancel(context.Background())
	vm.SetGlobal("stop", vm.Root().NewFunction(func(*lua.LState) int { cancel(); return 0 }))
	_, err := vm.RunString(ctx, "script.lua", `
		local knl, ports = require("knl"), require("ports")
		S = knl.open()
		S:append{ kind = "msg_user", data = { content = "go" } }
		knl.beat(S, knl.device{ llm = ports.script{ { calls = { { "slow" } } } }:open(), tools = { slow = { handler = function() stop() while true do end end } } })`)
	require.Error(t, err)
	return runLua(t, vm, `return S:id()`)[0]
}

// TestShapesCostNothingUntilLookedAt: a run in prod that asks for no shape makes
// none.
func TestShapesCostNothingUntilLookedAt(t *testing.T) {
	vm := knlVM(t, nil)
	runLua(t, vm, `local knl = require("knl") knl.open():append{ kind = "note" }`)
	require.Nil(t, vm.book)
	require.Equal(t, []string{"one_of"}, runLua(t, vm, `return require("knl").shapes.error_kinds.kind`))
	require.NotNil(t, vm.book)
}

func TestOneTableASchema(t *testing.T) {
	got := runLua(t, knlVM(t, nil), `
		local knl = require("knl")
		local api = knl.shapes.api
		return api.beat.returns == knl.shapes.beat_outcome, api.open.args[1][1] == knl.shapes.open_opts,
			knl.shapes.beat_record.fields.events.inner.elem == knl.shapes.event, require("ports").shapes.objects.port.open.returns == knl.shapes.llm`)
	require.Equal(t, []string{"true", "true", "true", "true"}, got)
}

// wrong is a module whose functions do not answer what they declare.
func wrong() *Module {
	answer := func(v ...lua.LValue) func(*Call) (int, error) {
		return func(c *Call) (int, error) { return c.Return(v...) }
	}
	return &Module{Name: "wrong", Doc: "Answers.", Funcs: []Func{
		{Name: "kind", Returns: "string", Fn: answer(lua.LNumber(1))},
		{Name: "none", Returns: "string", Fn: answer()},
		{Name: "more", Returns: "string", Fn: answer(lua.LString("a"), lua.LString("b"))},
		{Name: "void", Fn: answer(lua.LTrue)},
		{Name: "second", Returns: "string, integer?", Fn: answer(lua.LString("a"), lua.LNumber(1.5))},
		{Name: "deep", Returns: "{ a: string[] }", Fn: func(c *Call) (int, error) {
			out, list := c.L.NewTable(), c.L.NewTable()
			list.Append(lua.LString("x"))
			list.Append(lua.LTrue)
			out.RawSetString("a", list)
			return c.Return(out)
		}},
		{Name: "right", Returns: "boolean, string?, ...", Fn: answer(lua.LTrue, lua.LNil, lua.LNumber(1), lua.LTrue)},
	}}
}

// TestAnswersAreHeldAgainstTheirDeclaration: in dev mode an answer of another
// type is a bug of the host; prod does not look.
func TestAnswersAreHeldAgainstTheirDeclaration(t *testing.T) {
	for name, want := range map[string]string{
		"kind":   "BUG: wrong.kind: answer 1: at $: expected string, got number",
		"none":   "BUG: wrong.none: answer 1: at $: expected string, got nil",
		"more":   "BUG: wrong.more: answers 2 values, is declared to return 1",
		"void":   "BUG: wrong.void: answers 1 values, is declared to return 0",
		"second": "BUG: wrong.second: answer 2: at $: expected integer, got number",
		"deep":   "BUG: wrong.deep: answer 1: at $.a[2]: expected string, got boolean",
		"right":  "",
	} {
		for _, dev := range []string{"1", "0"} {
			vm, err := New(Config{Modules: []*Module{wrong()}, Env: func(string) (string, bool) { return dev, true }})
			require.NoError(t, err)
			_, err = vm.RunString(context.Background(), "script.lua", `require("wrong").`+name+`()`)
			if want == "" || dev == "0" {
				assert.NoError(t, err, name)
			} else {
				assert.ErrorContains(t, err, want)
			}
			require.NoError(t, vm.Close())
		}
	}
}

// TestLargeIntegersAreNumbers: what no Lua number holds is a number for the
// checks too.
func TestLargeIntegersAreNumbers(t *testing.T) {
	got := runLua(t, knlVM(t, devMode), `
		local knl = require("knl")
		local s = knl.open()
		s:append{ kind = "note", meta = { n = knl.int("9007199254740993") } }
		return tostring(s:events()[2].meta.n)`)
	require.Equal(t, []string{"9007199254740993"}, got)
}

// TestUnlookedAnswersStayUnmade: the check of an answer converts nothing.
func TestUnlookedAnswersStayUnmade(t *testing.T) {
	vm := knlVM(t, devMode)
	out, err := vm.RunString(context.Background(), "script.lua", `
		local knl = require("knl")
		local s = knl.open()
		s:append{ kind = "msg_user", data = { content = "hi" } }
		return s:events(), s:beats(), knl.fold(s:events())`)
	require.NoError(t, err)
	require.Nil(t, mirrorOf(out[0].(*lua.LTable).RawGetInt(1)).body, "an event that nobody looked at")
	require.NotNil(t, mirrorOf(out[2]), "a request that nobody looked at")
}

// TestWhatIsInsideAnEventIsReadOnlyInDevMode: the line that changes what every
// reader of the log shares is told, and the event reads as before.
func TestWhatIsInsideAnEventIsReadOnlyInDevMode(t *testing.T) {
	const change = `
local knl = require("knl")
local s = knl.open()
s:append{ kind = "note", meta = { a = 1 }, data = { list = { 1, { deep = "x" } }, none = knl.array() } }
local ev = s:events()[2]
local ok, err = pcall(function() %s end)
return tostring(err), ev.data.list[2].deep, #ev.data.list, ev.meta.a, #ev.data.none`
	for line, want := range map[string]string{
		`ev.data.list[2].deep = "y"`:    `script.lua:6: event: field "deep" cannot be set, it is read-only`,
		`ev.data.more = 1`:              `script.lua:6: event: field "more" cannot be set, it is read-only`,
		`ev.meta.a = 2`:                 `script.lua:6: event: field "a" cannot be set, it is read-only`,
		`table.insert(ev.data.list, 3)`: "script.lua:6: insert: got a event, which is read-only",
		`rawset(ev.data.list, 1, 3)`:    "script.lua:6: rawset: got a event, which is read-only",
		`table.remove(ev.data.none)`:    "script.lua:6: remove: got a event, which is read-only",
	} {
		got := runLua(t, knlVM(t, devMode), strings.Replace(change, "%s", line, 1))
		require.Equal(t, []string{want, "x", "2", "1", "0"}, got, line)
	}
}
