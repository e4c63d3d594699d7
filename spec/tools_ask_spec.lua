-- require("tools").ask: a tool that asks a human. A spec has no terminal.

local knl, ports, tools = require("knl"), require("ports"), require("tools")

local function bad(text, fn)
  assert.errors_at_line(fn, 0, text)
end

describe("tools.ask", function()
  it("is one external tool", function()
    local t = knl.device{ tools = tools.ask() }.tools.ask
    assert.same({ "external", true }, { t.effects, t.strict })
    assert.is_nil(t.idempotent)
  end)

  it("asks through a function of the caller's", function()
    local seen = {}
    local t = tools.ask{ via = function(question, choices)
      seen = { question, choices }
      return "blue"
    end }
    assert.equal("blue", t.ask.handler{ question = "which?", choices = { "red", "blue" } })
    assert.same({ "which?", { "red", "blue" } }, seen)
    local callable = setmetatable({}, { __call = function(_, q) return q .. "!" end })
    assert.equal("yes?!", tools.ask{ via = callable }.ask.handler{ question = "yes?" })
  end)

  it("says when nobody answers", function()
    local answer = tools.ask{ via = function() end }.ask.handler{ question = "?" }
    assert.same({ false, "no_answer" }, { answer.ok, answer.reason })
  end)

  it("says when there is no terminal", function()
    local answer = tools.ask().ask.handler{ question = "?" }
    assert.same({ false, "no_terminal" }, { answer.ok, answer.reason })
    assert.matches("nobody to ask in this run", answer.message)
  end)

  it("is called by a model through a beat", function()
    local s = knl.open{ store = "mem" }
    local device = knl.device{
      llm = ports.script{ { calls = { { "ask", { question = "name?" } }, { "ask", {} },
        { "ask", { question = "?", choices = { 1 } } },
        { "ask", { question = "raise" } } } } }:open(),
      tools = tools.ask{ via = function(question)
        if question == "raise" then
          error("the inbox is gone")
        end
        return "Ada"
      end },
    }
    assert.equal("ok", knl.beat(s, device).status)
    local rows = s:scan{ kinds = { "tool_result" } }
    assert.equal("Ada", rows[1].data.result)
    assert.is_true(rows[2].data.bad_args)
    assert.is_true(rows[3].data.bad_args)
    assert.is_false(rows[4].data.ok)
    assert.matches("the inbox is gone", rows[4].data.result)
  end)

  it("names wrong options", function()
    bad("tools.ask: unknown option 'vai' (did you mean 'via'?)",
      function() tools.ask{ vai = print } end)
    bad("tools.ask: via must be a function", function() tools.ask{ via = "terminal" } end)
    bad("tools.ask: timeout must be seconds above 0, got 0",
      function() tools.ask{ timeout = 0 } end)
    bad("tools.ask: timeout is of the terminal, and via does not ask there",
      function() tools.ask{ via = print, timeout = 5 } end)
    bad("tools.ask: opts must be a table { via?, timeout? }, got boolean",
      function() tools.ask(true) end)
  end)
end)
