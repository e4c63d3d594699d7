--- policy.stagnation: whether a loop goes in circles.
--
-- stagnation{ … } is a predicate over a session, asked between beats. It answers
--
--    "repeated"     the last `same` beats ask for the same tools with the same
--                   arguments; with period = p also cycles of up to p beats, each
--                   gone through `same` times
--    "no_progress"  the last `no_progress` beats wrote neither a tool call nor
--                   a visible character
--
-- in that order, else nil. Two beats are the same when their signatures are: the
-- names and arguments of their calls, in order, without ids and times. With
-- results = true what the tools answered counts too, so that polling something
-- that moves is no circle. A beat without a call has no signature and repeats
-- nothing. What to do about it is the loop's: stop, or append a word and go on,
-- under a bound.
--
-- Example:
--
--    local stuck = policy.stagnation{ same = 3, period = 2 }
--    local why = stuck(session)
--    if why then return { status = "stopped", reason = why } end

local canonical = require("policy.canonical")
local log = require("policy.log")
local options = require("lshape.options")
local shapes = require("policy.shapes")
local T = require("lshape").t

local PLACE = "policy.stagnation"
local SAME, NO_PROGRESS, PERIOD, DEPTH = 3, 2, 1, 8

local M = {}

M.shapes = {
  stagnation_opts = T.shape({
    same = T.integer:min(2)
      :describe("beats, or rounds of a cycle, that are alike (default 3)"):is_optional(),
    no_progress = T.integer:min(1):describe("beats that wrote nothing (default 2)"):is_optional(),
    signature = options.callable:describe("what stands for a beat: a string, or nil"):is_optional(),
    results = T.boolean:describe("results count in the signature (default false)"):is_optional(),
    period = T.integer:min(1):max(4)
      :describe("beats of the longest cycle (default 1)"):is_optional(),
    depth = T.integer:min(1):describe("levels of arguments told apart (default 8)"):is_optional(),
  }, { open = false }),
}

M.api = {
  doc = "Makes a predicate that says whether a session's beats go in circles.",
  args = { { M.shapes.stagnation_opts, "what counts as one", name = "opts", optional = true } },
  returns = 'fun(session: knl.session): "repeated"|"no_progress"|nil',
  members = {
    predicate = {
      doc = "Answers why the loop is stuck, nil when it is not.",
      args = { { shapes.session, "the session", name = "session" } },
      returns = T.one_of{ "repeated", "no_progress" }:is_optional(),
    },
    signature = {
      doc = "Answers what stands for a beat, nil when it cannot repeat; yours to give.",
      args = { { shapes.beat_record, "the beat", name = "beat" } },
      returns = T.string:is_optional(),
    },
  },
}

-- What stands for a beat: its calls, as one text.
local function of_calls(results, depth)
  return function(record)
    local parts = {}
    for _, pair in ipairs(log.pairs(record)) do
      if pair.name then
        local result = results and { ok = pair.ok, result = pair.result } or nil
        parts[#parts + 1] = { call = pair.name, input = pair.input, result = result }
      end
    end
    if #parts > 0 then
      return canonical.render(parts, depth + 2) -- the list and the call are levels, too
    end
  end
end

local function signed(signature, record)
  local text = signature(record)
  if text ~= nil and type(text) ~= "string" then
    options.fail(PLACE, "signature must answer a string or nil, got %s", type(text))
  end
  return text
end

-- The signatures of beats, made when they are looked at.
local function signatures(records, signature)
  local made = {}
  return function(i)
    if made[i] == nil then
      made[i] = signed(signature, records[i]) or false
    end
    return made[i]
  end
end

-- Whether the last n beats go through a cycle of p beats.
local function cycles(count, sign, n, p)
  if count < n then
    return false
  end
  for i = count, count - n + 1, -1 do
    local text = sign(i)
    if not text or i - p > count - n and text ~= sign(i - p) then
      return false
    end
  end
  return true
end

local function repeated(records, w)
  local sign = signatures(records, w.signature)
  for p = 1, w.period do
    if cycles(#records, sign, w.same * p, p) then
      return true
    end
  end
  return false
end

local function is_progress(event)
  if event.kind == "tool_call" then
    return true
  elseif event.kind ~= "llm_response" then
    return false
  end
  local content = log.data(event).content
  if log.text(content):find("%S") then
    return true
  end
  for _, block in ipairs(type(content) == "table" and content or {}) do
    if type(block) == "table" and block.type == "tool_use" then
      return true
    end
  end
  return false
end

local function wrote(record)
  for _, event in ipairs(record.events) do
    if is_progress(event) then
      return true
    end
  end
  return false
end

local function idle(records, n)
  if #records < n then
    return false
  end
  for i = #records, #records - n + 1, -1 do
    if wrote(records[i]) then
      return false
    end
  end
  return true
end

---@class policy.stagnation.opts
---@field same? integer beats, or rounds of a cycle, that are alike (at least 2, default 3)
---@field no_progress? integer beats that wrote nothing (at least 1, default 2)
---@field signature? fun(beat: table): string? what stands for a beat
---@field results? boolean results count in the built-in signature (default false)
---@field period? integer beats of the longest cycle (1 to 4, default 1)
---@field depth? integer levels of arguments that the built-in signature tells apart (default 8)

--- Makes a predicate that says whether a session's beats go in circles.
---@param opts? policy.stagnation.opts
---@return fun(session: session): "repeated"|"no_progress"|nil
function M.new(opts)
  opts = shapes.check_opts(PLACE, opts == nil and {} or opts, M.shapes.stagnation_opts, {
    hints = shapes.hints("the session is the argument of the predicate"),
    opts = "{ same?, no_progress?, signature?, results?, period?, depth? }",
  })
  local w = {
    same = opts.same or SAME,
    period = opts.period or PERIOD,
    signature = opts.signature or of_calls(opts.results, opts.depth or DEPTH),
  }
  local no_progress = opts.no_progress or NO_PROGRESS
  return function(session)
    local looked_at = math.min(math.max(w.same * w.period, no_progress), shapes.LARGEST)
    local records = log.last(PLACE, session, looked_at)
    if repeated(records, w) then
      return "repeated"
    end
    return idle(records, no_progress) and "no_progress" or nil
  end
end

return M
