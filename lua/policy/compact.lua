--- policy.compact: a summary in place of what a conversation began with.
--
-- compact{ fold } answers three functions for the loop:
--
--    due(session)              nil, or why a summary is due: "dropped", the last
--                              request left beats out; "share", it took `at` (0.8)
--                              of the room and more
--    fold                      the fold of the beat that writes the summary: what
--                              the fold makes, and behind it the prompt
--    record(session, outcome)  appends what that beat said as an event summary
--                              { text } and answers its seq; nil when it said
--                              nothing
--
-- A fold that a device has for its other beats then starts from the newest
-- summary: policy.window{ from_summary = true }. due reads what the window says
-- of the last request, so fold must be one, by fit or room for "share". For
-- min_beats (4) beats after a summary, or after a beat that was to write one, it
-- is silent: an empty one is not asked for again at once. Nothing is deleted.
--
-- Example:
--
--    local room = policy.room{ port = port }
--    local window = policy.window{ room = room, from_summary = true }
--    local due, summary, record = policy.compact{ fold = window }
--    local device = knl.device{ llm = port:open(), tools = tools, fold = window }
--    repeat
--      if due(session) then
--        record(session, knl.beat(session, device:with{ fold = summary }))
--      end
--      local o = knl.beat(session, device)
--    until o.status ~= "ok" or #o.out.tools == 0

local knl = require("knl")
local log = require("policy.log")
local options = require("lshape.options")
local shapes = require("policy.shapes")
local T = require("lshape").t

local PLACE = "policy.compact"
local AT, MIN_BEATS = 0.8, 4
local PROMPT = "Write a summary of this conversation that takes its place: you will go on from it "
  .. "alone. Say what was asked for and by whom, what is still open and what comes next, what was "
  .. "decided and why, what was found out, and which files, names and values matter, spelled as "
  .. "they are. Answer with the summary only, and call no tool."

local M = {}

M.shapes = {
  compact_opts = T.shape({
    fold = options.callable:describe("the fold of the device: a policy.window"),
    at = T.number
      :describe("part of the room from which a summary is due (default 0.8)"):is_optional(),
    min_beats = T.integer:min(1)
      :describe("beats from a summary to the next (default 4)"):is_optional(),
    prompt = T.string:min_len(1):describe("what asks for the summary"):is_optional(),
  }, { open = false }),
}

M.api = {
  doc = "Makes what a loop needs to replace the beginning of a conversation by a summary.",
  args = { { M.shapes.compact_opts, "of what, and when", name = "opts" } },
  returns = '(fun(session: knl.session): "share"|"dropped"|nil), '
    .. "(fun(events: any, device: knl.device): knl.request, table), "
    .. "(fun(session: knl.session, outcome: knl.outcome): integer?)",
  members = {
    due = {
      doc = "Answers why a summary is due, nil when it is not.",
      args = { { shapes.session, "the session", name = "session" } },
      returns = T.one_of{ "share", "dropped" }:is_optional(),
    },
    fold = {
      doc = "Makes the request that asks for the summary.",
      args = {
        { T.any, "what a device's fold is handed", name = "events" },
        { shapes.device, "the device", name = "device" },
      },
      returns = "knl.request, table",
    },
    record = {
      doc = "Records the summary that a beat wrote.",
      args = {
        { shapes.session, "the session", name = "session" },
        { shapes.outcome, "what the beat came to", name = "outcome" },
      },
      returns = T.integer:is_optional(),
    },
  },
}

local function report_of(record)
  local requests = log.of_kind(record, "llm_request")
  local report = #requests > 0 and log.data(requests[#requests]).window
  return type(report) == "table" and report or {}
end

local function number(v)
  return type(v) == "number" and v or nil
end

-- Why the request with this report asks for a summary.
local function reason(report, at)
  if type(report.dropped) == "table" and #report.dropped > 0 then
    return "dropped"
  end
  local took, limit = number(report.after), number(report.limit)
  return took and limit and took >= at * limit and "share" or nil
end

local function due(w, session)
  local beats = knl.tail(session, { since = "summary", last = w.min_beats }).beats
  if #beats < w.min_beats then
    return nil
  end
  local records = log.last(PLACE, session, w.min_beats)
  for _, record in ipairs(records) do
    if report_of(record).compact == true then
      return nil
    end
  end
  return reason(report_of(records[#records]), w.at)
end

local function copy(t)
  local own = {}
  for key, value in pairs(t or {}) do
    own[key] = value
  end
  return own
end

-- The request with the prompt behind it, and no tool to be called.
local function asking(request, prompt)
  local own = copy(request)
  own.messages = knl.array(copy(request.messages))
  own.messages[#own.messages + 1] = { role = "user", content = prompt }
  if own.tools and #own.tools > 0 then
    own.tool_choice = "none"
  end
  return own
end

local function record(session, outcome)
  log.check_session("policy.compact record", session)
  shapes.check_outcome("policy.compact record", outcome)
  local text = outcome.status == "ok" and log.text(outcome.out.content) or ""
  if text:find("%S") then
    return session:append{ kind = "summary", beat = outcome.out.beat, data = { text = text } }
  end
end

local function check(opts)
  options.check(PLACE, opts, M.shapes.compact_opts, {
    hints = shapes.hints("the session is the argument of due and record"),
    opts = "{ fold, at?, min_beats?, prompt? }",
  })
  if opts.at and not (opts.at > 0 and opts.at <= 1) then
    options.fail(PLACE, "at must be a number above 0 and at most 1, got %s", tostring(opts.at))
  end
end

---@class policy.compact.opts
---@field fold fun(events: any, device: device): table, table? the fold of the device
---@field at? number part of the room from which a summary is due (above 0, at most 1)
---@field min_beats? integer beats from a summary to the next (at least 1, default 4)
---@field prompt? string what asks for the summary

--- Makes what a loop needs to replace the beginning of a conversation by a summary.
---@param opts policy.compact.opts
---@return fun(session: session): "share"|"dropped"|nil due
---@return fun(events: any, device: device): table, table fold
---@return fun(session: session, outcome: table): integer? record
function M.new(opts)
  check(opts)
  local w = { at = opts.at or AT, min_beats = opts.min_beats or MIN_BEATS }
  local fold, prompt = opts.fold, opts.prompt or PROMPT
  local function ask_due(session)
    log.check_session(PLACE, session)
    return due(w, session)
  end
  local function summary(events, device)
    local request, report = fold(events, device)
    report = copy(report)
    report.compact = true
    return asking(request, prompt), report
  end
  return ask_due, summary, record
end

return M
