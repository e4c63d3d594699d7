--- tools.ask: a tool that asks a human.
--
-- The one tool is ask{ question, choices? }. The question goes to via, a function
-- of the caller's that answers a text, or nil when nobody answers; without it to
-- the terminal of the run. With choices the human may type a number. The answer
-- is the text as it was given. Without a terminal, or when nobody answers within
-- timeout, it is a refusal: the model goes on by itself or stops.
--
-- It is no approval: what the model makes of the answer is the model's. Use
-- tool_policy for what must not happen without a yes.
--
-- Example:
--
--    local set = tools.ask{ via = function(question) return inbox:wait(question) end }

local T = require("lshape.t")
local options = require("lshape.options")
local refusal = require("tools.refusal")
local std = require("std")

local M = {}

M.shapes = {
  ask_opts = T.shape({
    via = options.callable
      :describe("asks: function(question, choices?) -> answer? (the terminal)"):is_optional(),
    timeout = T.number:describe("seconds to wait at the terminal (for ever)"):is_optional(),
  }, { open = false }),
}

M.api = {
  doc = "Makes a tool that asks a human.",
  args = { { M.shapes.ask_opts, "whom, and how long", name = "opts", optional = true } },
  returns = "table<string, knl.tool_entry>",
}

local LONGEST = 8 * 1024 -- bytes of a question

-- The question as a human reads it.
local function prompt(args)
  local lines = { "", args.question }
  for i, choice in ipairs(args.choices or {}) do
    lines[#lines + 1] = ("  %d) %s"):format(i, choice)
  end
  lines[#lines + 1] = "> "
  return table.concat(lines, "\n")
end

-- What was typed: a choice as it is, a number of a choice read as that choice.
local function meant(line, choices)
  local typed = line:match("^%s*(.-)%s*$")
  for _, choice in ipairs(choices or {}) do
    if typed == choice then
      return choice
    end
  end
  local n = choices and typed:match("^%d+$")
  return n and choices[tonumber(n)] or line
end

local silent = {
  timeout = "nobody answered in time: go on without, or say what you need and stop",
  closed = "the terminal was closed: go on without, or say what you need and stop",
}

local function at_terminal(opts)
  return function(args)
    local ok, line, why = pcall(std.term.ask, prompt(args), { timeout = opts.timeout })
    if ok and line then
      return meant(line, args.choices)
    elseif ok then
      return refusal.of(why, silent[why])
    elseif type(line) == "userdata" and line.kind == "unsupported" then
      return refusal.of("no_terminal",
        "there is nobody to ask in this run: decide by yourself, or say what you need and stop")
    end
    error(line, 0)
  end
end

local function through(via)
  return function(args)
    local answer = via(args.question, args.choices)
    if answer == nil then
      return refusal.of("no_answer", silent.timeout)
    end
    return answer
  end
end

---@class tools.ask.opts
---@field via? fun(question: string, choices?: string[]): any asks (the terminal)
---@field timeout? number seconds to wait at the terminal (for ever)

--- Makes the tool ask.
---@param opts? tools.ask.opts
---@return table<string, tool>
function M.new(opts)
  if opts == nil then
    opts = {}
  end
  options.check("tools.ask", opts, M.shapes.ask_opts, { opts = "{ via?, timeout? }" })
  if opts.timeout and opts.timeout <= 0 then
    options.fail("tools.ask", "timeout must be seconds above 0, got %s", tostring(opts.timeout))
  end
  if opts.timeout and opts.via then
    options.fail("tools.ask", "timeout is of the terminal, and via does not ask there")
  end
  return {
    ask = {
      description = "Asks a human a question and answers what they said.",
      input_schema = {
        type = "object",
        properties = {
          question = { type = "string", minLength = 1, maxLength = LONGEST },
          choices = {
            type = "array",
            items = { type = "string", minLength = 1 },
            maxItems = 20,
            description = "to choose from; the answer may be another",
          },
        },
        required = { "question" },
        additionalProperties = false,
      },
      effects = "external",
      strict = true,
      handler = opts.via and through(opts.via) or at_terminal(opts),
    },
  }
end

return M
