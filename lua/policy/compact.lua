--- policy.compact: a summary in place of what a conversation began with.
--
-- compact{ fold } answers three functions for the loop:
--
--    due(session)              nil, or why a summary is due: "dropped", the last
--                              request left beats out; "share", it took `at` (0.8)
--                              of the room and more
--    fold                      the fold of the beat that writes the summary: the
--                              summary before, the oldest beats that it does not
--                              cover, and the prompt
--    record(session, outcome)  appends what that beat said as an event summary
--                              { text, through } and answers its seq; nil when it
--                              said nothing, was cut or called a tool
--
-- A summary covers what its request held, up to the seq in through, and nothing
-- else: policy.window{ from_summary = true }, the fold of a device's other beats,
-- goes on behind it. As many whole beats are covered as fold has room for, in
-- order, but never the newest while there is an older one: the model goes on from
-- its results as they are, and what was said behind it still waits for an answer.
-- When not even the oldest fits, the fold raises.
--
-- due reads what the window says of the last request, so fold must be one, by fit
-- or room for "share"; a fold of your own must make its request of the events that
-- it is handed. For min_beats (4) beats after a summary, or after a beat that was
-- to write one, due is silent, unless beats were left uncovered for want of room.
-- Nothing is deleted.
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

local cuts = require("policy.cuts")
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

-- Due ----------------------------------------------------------------------

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

-- The newest of the beats that was to write a summary.
local function attempt_in(records)
  for i = #records, 1, -1 do
    local said = log.report(records[i]).compact
    if said ~= nil then
      return records[i], type(said) == "table" and said or {}
    end
  end
end

-- Whether min_beats beats must pass first.
local function too_early(w, session, records)
  local attempt, said = attempt_in(records)
  local tail = knl.tail(session, { since = "summary", last = w.min_beats, skip = cuts.SKIP })
  if attempt and (number(said.left) or 0) > 0 then
    local recorded = tail.since and tail.since.beat == attempt.id
    return not recorded or attempt == records[#records]
  end
  return attempt ~= nil or #tail.beats < w.min_beats
end

local function due(w, session)
  local records = log.last(PLACE, session, w.min_beats)
  if #records < w.min_beats or too_early(w, session, records) then
    return nil
  end
  return reason(log.report(records[#records]), w.at)
end

-- Fold ---------------------------------------------------------------------

-- Where each beat of a list of events begins and ends, oldest first.
local function spans_of(events)
  local spans, at = {}, {}
  for i, event in ipairs(events) do
    local id = event.beat or type(event.meta) == "table" and event.meta.beat or nil
    if id and id ~= "" then
      if not at[id] then
        at[id] = { first = i }
        spans[#spans + 1] = at[id]
      end
      at[id].last = i
    end
  end
  return spans
end

-- The beats that may be covered together, each with those before it: it ends at
-- last, and no beat goes on behind that. The newest is only one when it is alone.
local function prefixes_of(spans)
  local out, last = {}, 0
  for n, span in ipairs(spans) do
    last = math.max(last, span.last)
    local behind = spans[n + 1]
    if not behind or behind.first > last then
      out[#out + 1] = { last = last, beats = n }
    end
  end
  if #out > 1 then
    out[#out] = nil
  end
  return out
end

-- The list that a request for a summary is made of.
local function list_of(c, last)
  local list = {}
  list[1] = c.summary and cuts.summary(c.summary.text)
  for i = 1, last do
    if c.events[i].kind ~= "summary" then
      list[#list + 1] = c.events[i]
    end
  end
  list[#list + 1] = { kind = "msg_user", data = { content = c.prompt } }
  return list
end

-- The request and report of a prefix; nil and why when something was left out.
local function made(c, prefix)
  local ok, request, report = pcall(c.fold, list_of(c, prefix.last), c.device)
  if not ok then
    return nil, tostring(request)
  end
  report = type(report) == "table" and report or {}
  local dropped = type(report.dropped) == "table" and #report.dropped > 0
  if dropped or report.seed_kept == false then
    return nil, "the fold left a part of it and the prompt out: cap results with policy.result_cap"
  end
  return { prefix = prefix, request = request, report = report }
end

-- The longest prefix that the fold takes whole.
local function longest(c, prefixes)
  local low, high, best, why = 0, #prefixes + 1, nil, nil
  local middle = #prefixes
  while high - low > 1 do
    local found, reason_not = made(c, prefixes[middle])
    if found then
      low, best = middle, found
    else
      high, why = middle, reason_not
    end
    middle = math.floor((low + high) / 2)
  end
  if not best then
    error(("%s: the oldest beat that no summary covers cannot be asked about: %s"):format(PLACE,
      why), 0)
  end
  return best
end

local function copy(t)
  local own = {}
  for key, value in pairs(t) do
    own[key] = value
  end
  return own
end

-- The request, with no tool to be called.
local function asking(request, prompt)
  local last = type(request) == "table" and request.messages[#request.messages]
  if not last or last.content ~= prompt then
    error(PLACE .. ": fold must make its request of the events that it is handed: the prompt, the "
      .. "last of them, is not the last message", 0)
  end
  local own = copy(request)
  if own.tools and #own.tools > 0 then
    own.tool_choice = "none"
  end
  return own
end

local function summary(c, events)
  c.summary = log.summary(events)
  c.events = knl.tail(events, { after = c.summary and c.summary.through, skip = cuts.SKIP }).events
  local spans = spans_of(c.events)
  if #spans == 0 then
    error(PLACE .. ": there is no beat that no summary covers: ask due before", 0)
  end
  local best = longest(c, prefixes_of(spans))
  local last, covered = best.prefix.last, best.prefix.beats
  local report = copy(best.report)
  report.kept, report.summary = covered, c.summary and c.summary.seq
  report.compact = {
    through = c.events[last].seq or last + (c.summary and c.summary.through or 0),
    left = math.max(0, #spans - covered - 1),
  }
  return asking(best.request, c.prompt), report
end

-- Policy -------------------------------------------------------------------

local RECORD = "policy.compact record"

-- What a beat said as a summary, nil when that is none.
local function text_of(outcome)
  local out = outcome.status == "ok" and outcome.out
  if not out or out.stop_reason == "max_tokens" or out.tools and #out.tools > 0 then
    return nil
  end
  local text = log.text(out.content)
  return text:find("%S") and text or nil
end

local function record(session, outcome)
  log.check_session(RECORD, session)
  shapes.check_outcome(RECORD, outcome)
  local text = text_of(outcome)
  if not text then
    return nil
  end
  local beat = outcome.out.beat
  local said = log.report(beat and log.beat(RECORD, session, beat)).compact
  local through = type(said) == "table" and number(said.through)
  if not through then
    options.fail(RECORD, "beat %s was not made with the fold of compact: what it covers is not "
      .. "known", tostring(beat))
  end
  return session:append{ kind = "summary", beat = beat, data = { text = text, through = through } }
end

local function check(opts)
  shapes.check_opts(PLACE, opts, M.shapes.compact_opts, {
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
  return ask_due, function(events, device)
    return summary({ fold = fold, prompt = prompt, device = device }, events)
  end, record
end

return M
