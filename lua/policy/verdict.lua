--- policy.verdict: whether the work is done, by a check of yours.
--
-- The loop asks it after every beat, whatever the model said: run() is the
-- check. What it answers is recorded as an event of the beat that it judges,
-- { ok, stdout, stderr, exit_code }, before it is judged and either way. Then
--
--    run said not ok                  { ok = false, checked = true, result }
--    ok, and no changed given         { ok = true, checked = true, result }
--    ok, and changed(session)         { ok = true, checked = true, changed = true, result }
--    ok, but nothing changed          { ok = false, checked = true, changed = false,
--                                       result, reason = "unchanged" }
--    there is no run                  { ok = false, checked = false }, nothing recorded
--
-- The record carries the beat that the Outcome (or its out) names, else the newest
-- of the session.
--
-- timeout hands run a number of seconds to keep to: as given, or as { first,
-- factor?, floor?, ceiling?, measure? } derived from the checks recorded since the
-- last beats began, or from the newest check when that is older: factor (2) times
-- the longest of them, at least floor (60, or first when that is less: a check that
-- fails at once says little of the next) and at most ceiling (3600); first when there
-- are none. A check that was cut (timed_out in its answer) counts as the
-- time it was given, so the next one has more. measure(result) says how many
-- seconds a check took when the clock would not; the record then holds seconds.
--
-- It does not end the check itself and does not tell the model; the loop does.
--
-- Example:
--
--    local verify = policy.verdict{
--      timeout = { first = 60 },
--      run = function(seconds)
--        local r = std.sh.run({ "go", "test", "./..." }, { timeout = seconds })
--        return { ok = r.code == 0, stdout = r.stdout, stderr = r.stderr,
--          exit_code = r.code, timed_out = r.timed_out }
--      end,
--    }
--    local verdict = verify(session, knl.beat(session, device))

local knl = require("knl")
local log = require("policy.log")
local options = require("lshape.options")
local shapes = require("policy.shapes")
local std = require("std")
local T = require("lshape").t

local PLACE = "policy.verdict"
local KIND = "verify"
local FACTOR = 2 -- times the longest check
local FLOOR, CEILING = 60, 3600 -- seconds
local WITHIN = 8 -- beats whose checks count

local M = {}

local timeout_opts = T.shape({
  first = T.number:describe("seconds for a check that has none before it"),
  factor = T.number:describe("times the longest check (2)"):is_optional(),
  floor = T.number:describe("seconds at least (60, or first when that is less)"):is_optional(),
  ceiling = T.number:describe("seconds at most (3600, or first when that is more)"):is_optional(),
  measure = options.callable:describe("says how many seconds a check took"):is_optional(),
}, { open = false })

local verdict = T.shape({
  ok = T.boolean:describe("whether the work is done"),
  checked = T.boolean:describe("whether there was a check"),
  changed = T.boolean:describe("what changed said"):is_optional(),
  reason = T.literal("unchanged"):is_optional(),
  result = T.table:describe("what run answered"):is_optional(),
}, { open = false })

M.shapes = {
  verdict = verdict,
  verdict_timeout = timeout_opts,
  verdict_opts = T.shape({
    run = options.callable:describe("the check"):is_optional(),
    changed = options.callable:describe("whether anything was changed"):is_optional(),
    kind = T.string:min_len(1):describe("the kind of the record (verify)"):is_optional(),
    timeout = T.any_of{ T.number, timeout_opts }
      :describe("seconds for run, or how they derive from earlier checks"):is_optional(),
  }, { open = false }),
}

M.api = {
  doc = "Makes a judge of each beat by a check of the caller's.",
  args = { { M.shapes.verdict_opts, "the check", name = "opts", optional = true } },
  returns = T.fn,
  members = {
    verdict = {
      doc = "Runs the check, records what it said and judges it.",
      args = {
        { shapes.session, "the session", name = "session" },
        { T.table, "the Outcome of the beat, or its out", name = "out", optional = true },
      },
      returns = verdict,
    },
    run = {
      doc = "Checks the work and answers { ok, stdout?, stderr?, exit_code?, timed_out? }.",
      args = { { T.number, "seconds, when timeout was given", name = "seconds", optional = true } },
      returns = T.table,
    },
    changed = {
      doc = "Answers whether the session changed anything.",
      args = { { shapes.session, "the session", name = "session" } },
      returns = T.boolean,
    },
    measure = {
      doc = "Answers how many seconds a check took.",
      args = { { T.table, "what run answered", name = "result" } },
      returns = T.number,
    },
  },
}

local function positive(v)
  return type(v) == "number" and v > 0 and v < math.huge
end

-- The id of the beat that an Outcome, or its out, is of; else of the newest.
local function beat_of(session, out)
  if out ~= nil and type(out) ~= "table" then
    options.fail(PLACE, "out must be an Outcome or its out, got %s", type(out))
  end
  local at = out
  for _ = 1, 3 do
    if type(at) ~= "table" or type(at.beat) == "string" then
      break
    end
    at = at.out or at.detail or at.answer
  end
  if type(at) == "table" and type(at.beat) == "string" then
    return at.beat
  end
  local newest = log.newest(PLACE, session)
  return newest and newest.id
end

-- The seconds of a check, nil when the event holds none.
local function seconds_of(event)
  local seconds = event and log.data(event).seconds
  return type(seconds) == "number" and seconds >= 0 and seconds or nil
end

-- The longest of the newest checks, in seconds; nil when there is none.
local function longest(session, kind)
  local newest = knl.tail(session, { since = kind, last = 1 }).since
  local most = seconds_of(newest)
  for _, event in ipairs(newest and knl.tail(session, { last = WITHIN }).events or {}) do
    local seconds = event.kind == kind and seconds_of(event)
    most = seconds and math.max(most or 0, seconds) or most
  end
  return most
end

-- The seconds that run is handed, nil without a timeout.
local function seconds_for(settings, session)
  local timeout = settings.timeout
  if type(timeout) ~= "table" then
    return timeout
  end
  local most = longest(session, settings.kind)
  local derived = most and math.max(timeout.floor, most * timeout.factor) or timeout.first
  return math.min(derived, timeout.ceiling)
end

-- How long a check took; one that was cut counts as what it was given.
local function took(settings, result, given, clocked)
  if result.timed_out then
    return given
  end
  local measure = settings.timeout.measure
  local seconds = clocked
  if measure then
    seconds = measure(result)
  end
  if type(seconds) ~= "number" or not (seconds >= 0 and seconds < math.huge) then
    options.fail(PLACE, "measure must answer seconds, a number >= 0, got %s", tostring(seconds))
  end
  return seconds
end

local function check_result(result)
  if type(result) ~= "table" or type(result.ok) ~= "boolean" then
    local got = type(result) == "table" and "ok = " .. tostring(result.ok) or type(result)
    options.fail(PLACE, "run must answer a table with ok = true or false, got %s", got)
  end
  for _, name in ipairs{ "stdout", "stderr" } do
    if result[name] ~= nil and type(result[name]) ~= "string" then
      options.fail(PLACE, "run must answer %s as a string, got %s", name, type(result[name]))
    end
  end
end

-- Runs the check and records what it answered.
local function checked(settings, session, out)
  local beat, given = beat_of(session, out), seconds_for(settings, session)
  local began = std.time.monotonic()
  local result = settings.run(given)
  local clocked = std.time.monotonic() - began
  check_result(result)
  local data = {
    ok = result.ok,
    stdout = result.stdout or "",
    stderr = result.stderr or "",
    exit_code = result.exit_code,
  }
  if type(settings.timeout) == "table" then
    data.seconds = took(settings, result, given, clocked)
  end
  session:append{ kind = settings.kind, beat = beat, data = data }
  return result
end

local function judge(settings, session, result)
  if not result.ok then
    return { ok = false, checked = true, result = result }
  elseif not settings.changed then
    return { ok = true, checked = true, result = result }
  end
  local changed = settings.changed(session)
  if type(changed) ~= "boolean" then
    options.fail(PLACE, "changed must answer true or false, got %s", type(changed))
  elseif changed then
    return { ok = true, checked = true, changed = true, result = result }
  end
  return { ok = false, checked = true, changed = false, result = result, reason = "unchanged" }
end

local function check_seconds(name, v)
  if v ~= nil and not positive(v) then
    options.fail(PLACE, "%s must be a number above 0, got %s", name, tostring(v))
  end
end

-- A copy of the timeout with its defaults.
local function timeout_of(timeout)
  if type(timeout) ~= "table" then
    check_seconds("timeout", timeout)
    return timeout
  end
  for _, name in ipairs{ "first", "factor", "floor", "ceiling" } do
    check_seconds("timeout." .. name, timeout[name])
  end
  local floor = timeout.floor or math.min(FLOOR, timeout.first, timeout.ceiling or FLOOR)
  local least = math.max(timeout.first, floor)
  if timeout.ceiling and timeout.ceiling < least then
    options.fail(PLACE, "timeout.ceiling must be at least first and floor, %g, got %g", least,
      timeout.ceiling)
  end
  return {
    first = timeout.first,
    factor = timeout.factor or FACTOR,
    floor = floor,
    ceiling = timeout.ceiling or math.max(CEILING, least),
    measure = timeout.measure,
  }
end

-- Kinds that a record may not have: the kernel writes or reads them, or another
-- policy does, and it would be taken for one of those.
local TAKEN = { summary = true, checkpoint = true, result_kept = true }

local RESERVED = { -- how other kinds of the kernel begin
  "contract_", "tool_gate", "approval_", "mutation_", "sealed_read", "render_", "generation_",
}

local function check_kind(kind)
  local taken = TAKEN[kind]
  for _, word in ipairs(knl.shapes.event_kinds.values) do
    taken = taken or word == kind
  end
  for _, prefix in ipairs(RESERVED) do
    taken = taken or kind:sub(1, #prefix) == prefix
  end
  if taken then
    options.fail(PLACE, "kind must be one of your own, got %q, which is the kernel's or another "
      .. "policy's", kind)
  end
end

---@class policy.verdict.opts
---@field run? fun(seconds?: number): table the check
---@field changed? fun(session: session): boolean whether anything was changed
---@field kind? string the kind of the record (default "verify")
---@field timeout? number|table seconds for run, or { first, factor?, floor?, ceiling?, measure? }

--- Makes a judge.
---@param opts? policy.verdict.opts
---@return fun(session: session, out?: table): table
function M.new(opts)
  opts = shapes.check_opts(PLACE, opts == nil and {} or opts, M.shapes.verdict_opts, {
    hints = shapes.hints("the session is an argument: verdict(session, outcome)"),
    opts = "{ run?, changed?, kind?, timeout? }",
  })
  local settings = {
    run = opts.run,
    changed = opts.changed,
    kind = opts.kind or KIND,
    timeout = timeout_of(opts.timeout),
  }
  check_kind(settings.kind)
  return function(session, out)
    log.check_session(PLACE, session)
    if not settings.run then
      return { ok = false, checked = false }
    end
    return judge(settings, session, checked(settings, session, out))
  end
end

return M
