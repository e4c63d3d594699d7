--- policy.cuts: where a log can be cut, and the widest cut that a room holds.
--
-- Cut k is the last k beats of a log, the one behind them all the log as it is.
-- Each holds all that the one before it holds, so the widest that fits is found
-- by bisection: a request is made and counted for O(log k) of them, and no more
-- of the log is read than what may fit.
--
-- It decides nothing: policy.window says what is cut, and what of it goes.
--
-- Example:
--
--    local c = cuts.of({ room = room }, events, device)
--    local k = c:widest()
--    return c:request(k)

local knl = require("knl")
local log = require("policy.log")

local STEPS = { 32, 1024, 32768 } -- what is tried when nothing says how many fit
local SUMMARY = "Summary of the conversation so far:\n\n"

local M = {
  SKIP = "compact", -- what the fold of a beat that writes a summary reports
}

---@class policy.cuts
---@field window { tail?: integer, keep_seed?: boolean, from_summary?: boolean, room?: room }
---@field summary? { seq: integer, text: string, through: integer } what the cuts stand behind
---@field tokens table<integer, integer> of the cuts that were counted
---@field added integer tokens that the filters of the device were seen to add
---@field limits? table of the room, once it was read
---@field whole? integer the largest cut, when it was counted
local methods = {}
methods.__index = methods

--- The event that stands for a summary in front of what it does not cover.
---@param text string
---@return event
function M.summary(text)
  return { kind = "msg_user", data = { content = SUMMARY .. text } }
end

--- The cuts of a log. What they read is kept for one request.
---@param window { tail?: integer, keep_seed?: boolean, from_summary?: boolean, room?: room }
---@param events any a session, what a fold is handed, or a list of events
---@param device device
---@return policy.cuts
function M.of(window, events, device)
  local c = { window = window, events = events, device = device, tails = {}, tokens = {} }
  c.summary = window.from_summary and log.summary(events) or nil
  c.added = 0
  return setmetatable(c, methods)
end

--- Cut k of the log; without k all of it that could be one.
---@param k? integer
---@return { events: event[], beats: string[], seed?: event[] }
function methods:tail(k)
  local key = k or 0
  if not self.tails[key] then
    local part, seed = knl.tail(self.events, {
      last = k,
      after = self.summary and self.summary.through,
      skip = self.window.from_summary and M.SKIP or nil,
      from_seed = self.window.keep_seed,
    })
    part.seed = seed
    self.tails[key] = part
  end
  return self.tails[key]
end

--- The largest cut up to k, and whether none is larger.
---@param k? integer
---@return integer, boolean
function methods:up_to(k)
  local cap = self.window.tail
  k = cap and math.min(k or cap + 1, cap + 1) or k
  local n = #self:tail(k).beats
  if k == nil or n < k then
    return n + 1, true
  elseif k == (cap and cap + 1) then
    return cap, true
  end
  return k, false
end

--- The request that is made of cut k.
---@param k integer
---@return table
function methods:request(k)
  local part, list = self:tail(k), {}
  list[#list + 1] = part.seed
  list[#list + 1] = self.summary and M.summary(self.summary.text)
  list[#list + 1] = part.events
  return knl.fold(list, self.device)
end

--- Whether the room holds the request of cut k, and what filters were seen to add.
---@param k integer
---@return boolean
function methods:fits(k)
  if not self.limits then
    self.limits = self.window.room:limits()
  end
  if not self.tokens[k] then
    self.tokens[k] = self.window.room:count(self:request(k))
  end
  return self.tokens[k] + self.added <= self.limits.request
end

-- What the filters of the device make of a request. One that raises, or answers
-- nothing, is left to the beat, which says so.
local function filtered(device, request)
  for _, filter in ipairs(device and device.filters or {}) do
    local ok, made = pcall(filter, request)
    if not ok or type(made) ~= "table" then
      break
    end
    request = made
  end
  return request
end

--- The tokens of cut k as it is sent: behind the filters of the device.
---@param k integer
---@return integer
function methods:sent(k)
  local request = self:request(k)
  local made = filtered(self.device, request)
  return made == request and self.tokens[k] or self.window.room:count(made)
end

-- The cut that the request before this one suggests: what it kept, the beat
-- since, and the log whole.
local function guess_of(c)
  local last = knl.tail(c.events, { last = 1, skip = M.SKIP })
  local kept = log.report(last).kept
  return type(kept) == "number" and kept >= 0 and kept % 1 == 0 and kept + 2 or nil
end

local function a_little(k)
  return math.ceil(k / 16)
end

-- Two cuts, the first fits (or is 0) and the second does not; or the largest
-- one, when it fits.
local function bracket(c, guess)
  local fitting = 0
  for _, k in ipairs(guess and { guess, guess + a_little(guess) } or STEPS) do
    local tried, largest = c:up_to(k)
    c.whole = largest and tried or nil
    if not c:fits(tried) then
      return fitting, tried
    elseif largest then
      return tried
    end
    fitting = tried
  end
  return fitting, (c:up_to()) + 1
end

-- The largest cut that fits, 0 when none does. Where the last request stopped is
-- near where this one does, so it is looked for there first.
local function search(c)
  local guess = guess_of(c)
  local low, high = bracket(c, guess)
  if not high then
    return low
  end
  local near = guess and low == 0 and high - a_little(high)
  while high - low > 1 do
    local middle = math.max(low + 1, near or math.floor((low + high) / 2))
    near = nil
    if c:fits(middle) then
      low = middle
    else
      high = middle
    end
  end
  return low
end

--- The largest cut that fits as it is sent, 0 when none does, and its tokens.
--- What filters add is seen at the largest cut that fits without them: they run
--- once more, and again when they are why it does not.
---@return integer, integer?
function methods:widest()
  while true do
    local k = search(self)
    local sent = k > 0 and self:sent(k) or nil
    if not sent or sent <= self.limits.request then
      return k, sent
    end
    self.added = sent - self.tokens[k]
  end
end

return M
