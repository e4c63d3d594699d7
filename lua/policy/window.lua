--- policy.window: the part of the log that a request is made of.
--
--    tail = n         the last n beats
--    fit = { port, conf?, reserve? }, or room = r
--                     as many of the last beats as the model's window has room
--                     for; tail bounds them. Answers fits as second value
--    from_summary     only what the newest summary event does not cover, with the
--                     summary in front (see policy.compact): what came after the
--                     seq in its data.through, else after the event itself
--    keep_seed        what came before the first beat stays in front
--
-- The cut is at the first event of a beat, so a call stays with its result;
-- everything before it goes, what a user said included. A log that is short
-- enough is handed on as it is. The newest beat always stays, for it holds the
-- results that the model waits for: when it does not fit, the fold raises. With
-- fit or room the filters of the device are counted with: they run once more on
-- the request that is chosen, so they should do nothing but answer one.
--
-- The request's record says what was left out, { dropped, more?, kept, seed_kept,
-- summary?, before?, after?, limit?, reserve? }: dropped names the 8 newest beats,
-- more says that there are older ones; before and after are tokens. knl.views.beats
-- shows it. Nothing is shortened inside a beat: that is policy.result_cap.
--
-- Example:
--
--    local fold, fits = policy.window{ fit = { port = port }, keep_seed = true }
--    local device = knl.device{ llm = port:open(), fold = fold }
--    if fits(session, device) then return "the last results are too large" end

local cuts = require("policy.cuts")
local knl = require("knl")
local log = require("policy.log")
local options = require("lshape.options")
local shapes = require("policy.shapes")
local space = require("policy.space")
local T = require("lshape").t

local PLACE = "policy.window"
local NAMED = 8 -- dropped beats that a report names

local M = {}

M.shapes = {
  window_opts = T.shape({
    tail = T.integer:min(1):describe("beats to keep"):is_optional(),
    keep_seed = T.boolean:describe("keep what came before the first beat"):is_optional(),
    fit = T.shape({
      port = T.any:describe("counts requests and says how large the window is"),
      conf = space.fields.conf,
      reserve = space.fields.reserve,
    }, { open = false }):describe("keep what the window of this port has room for"):is_optional(),
    room = space.fields.room:describe("a value of policy.room, in place of fit"),
    from_summary = T.boolean:describe("start from the newest summary event"):is_optional(),
  }, { open = false }),
}

M.api = {
  doc = "Makes a fold of the last beats of a log.",
  args = { { M.shapes.window_opts, "what to keep", name = "opts" } },
  returns = "(fun(events: any, device: knl.device): knl.request, table), "
    .. '(fun(session: knl.session, device: knl.device): "context"?)?',
  members = {
    fold = {
      doc = "Makes the request, and says what it left out.",
      args = {
        { T.any, "what a device's fold is handed", name = "events" },
        { shapes.device, "the device", name = "device" },
      },
      returns = "knl.request, table",
    },
    fits = {
      doc = 'Answers "context" when not even the newest beat fits, before a beat is made.',
      args = {
        { shapes.session, "the session", name = "session" },
        { shapes.device, "the device", name = "device" },
      },
      returns = T.literal("context"):is_optional(),
    },
  },
}

-- Raises that not even the newest beat fits, and what may be done.
local function too_large(c)
  local part = c:tail(1)
  local what, try = "no beat yet", "shorten what was said"
  if #part.beats > 0 then
    what, try = "no beat but the newest", "cap results with policy.result_cap"
  end
  if part.seed and #part.seed > 0 then
    what, try = what .. " and what came before the first", try .. ", go without keep_seed"
  end
  if c.summary then
    what = what .. " and the summary"
  end
  local text = "%s: a request with %s takes %d tokens, the model's window has room for %d: %s, or "
    .. "ask fits, the second value of policy.window, before a beat"
  error(text:format(PLACE, what, c.tokens[1] + c.added, c.limits.request, try), 0)
end

-- The cut to send, and its tokens where they were counted.
local function chosen(c)
  if not c.window.room then
    return (c:up_to(c.window.tail and c.window.tail + 1))
  end
  local k, tokens = c:widest()
  if k == 0 then
    too_large(c)
  end
  return k, tokens
end

-- Report -------------------------------------------------------------------

local function dropped(c, kept)
  local ids, more = c:tail(kept + NAMED + 1).beats, nil
  local out = knl.array()
  for i = 1, #ids - kept do
    if #ids - kept > NAMED and i == 1 then
      more = true
    else
      out[#out + 1] = ids[i]
    end
  end
  return out, more
end

local function report(c, k, tokens)
  local part = c:tail(k)
  local kept = #part.beats
  local r = {
    kept = kept,
    seed_kept = part.seed ~= nil or kept < k and c.summary == nil,
    summary = c.summary and c.summary.seq,
  }
  r.dropped, r.more = dropped(c, kept)
  if c.limits then
    r.before, r.after = c.whole and c.tokens[c.whole], tokens
    r.limit, r.reserve = c.limits.request, c.limits.reserve
  end
  return r
end

-- Policy -------------------------------------------------------------------

local function check(opts)
  shapes.check_opts(PLACE, opts, M.shapes.window_opts, {
    hints = shapes.hints("the session is an argument of fits, and the fold is handed its log"),
    opts = "{ tail?, keep_seed?, fit?, room?, from_summary? }",
  })
  if opts.fit ~= nil and opts.room ~= nil then
    options.fail(PLACE, "fit and room both given, want one")
  end
  if opts.tail == nil and opts.fit == nil and opts.room == nil and not opts.from_summary then
    options.fail(PLACE, "tail is required without fit, room or from_summary — beats to keep")
  end
end

local function room_of(opts)
  if opts.fit ~= nil then
    return space.of(PLACE .. " fit", opts.fit)
  elseif opts.room ~= nil then
    return space.given(PLACE, { room = opts.room })
  end
end

---@class policy.window.opts
---@field tail? integer beats to keep (at least 1); required without fit, room or from_summary
---@field keep_seed? boolean keep what came before the first beat
---@field fit? { port: port, conf?: table, reserve?: integer } keep what there is room for
---@field room? room in place of fit
---@field from_summary? boolean start from the newest summary event

--- Makes a fold of the last beats of a log.
---@param opts policy.window.opts
---@return fun(events: any, device: device): table, table fold
---@return (fun(session: session, device: device): "context"?)? fits with fit or room
function M.new(opts)
  check(opts)
  local window = {
    tail = opts.tail,
    keep_seed = opts.keep_seed,
    from_summary = opts.from_summary,
    room = room_of(opts),
  }
  local function fold(events, device)
    local c = cuts.of(window, events, device)
    local k, tokens = chosen(c)
    return c:request(k), report(c, k, tokens)
  end
  if not window.room then
    return fold
  end
  return fold, function(session, device)
    log.check_session("policy.window fits", session)
    shapes.check_device("policy.window fits", device)
    local c = cuts.of(window, session, device)
    local fit = c:fits(1) and c:sent(1) <= c.limits.request
    return not fit and "context" or nil
  end
end

return M
