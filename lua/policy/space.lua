--- policy.space: how the window of a model is divided.
--
-- The one place that knows it: what a request, one result, the results of one
-- beat and the reply may take, in tokens. It reads the profile of a port at
-- every use, so that a port which learns its window late is right, and keeps
-- nothing. policy.room hands such a value to scripts; a policy that is told
-- { port, conf? } in its place makes its own.
--
--    request   context_window - max_output, less what reserve asks beyond it
--    result    floor(request * result_share)
--    beat      floor(request * beat_share), nil without beat_share
--    reply     max_output, or reserve when the profile has none
--
-- It does not shorten anything and does not know what a conversation is.
--
-- Example, as a policy uses it:
--
--    local room = space.given("policy.tokens", opts) -- { port, conf? } or { room }
--    return room:count(request) <= room:request()

local options = require("lshape.options")
local shapes = require("policy.shapes")
local T = require("lshape").t

local RESULT_SHARE = 0.25
local PORT = "counts requests and says how large the window is"

local M = {}

---@class room.limits
---@field window integer what the profile says
---@field max_output integer what the profile says; 0 when it says nothing
---@field reserve integer what the options say
---@field request integer
---@field result integer
---@field beat? integer
---@field reply integer

---@class room
---@field request fun(self: room): integer tokens that a request may take
---@field result fun(self: room): integer tokens that one result may take
---@field beat fun(self: room): integer? tokens that the results of one beat may take
---@field reply fun(self: room): integer tokens that the reply may take; 0: not known
---@field count fun(self: room, request: table): integer tokens that a request takes
---@field limits fun(self: room): room.limits all of these at one reading of the profile
local methods = {}

-- Recognises a space: a table that only looks like one has another metatable.
local meta = {
  __index = methods,
  __newindex = function()
    error("policy.room: a room cannot be changed: make another one", 2)
  end,
  __tostring = function()
    return "room"
  end,
}

local OWN = { "port", "conf", "reserve", "result_share", "beat_share", "call_reserve" }
local KEY = {} -- where a space keeps its settings: no script's key is this one

--- The schemas of the options that describe a space, by name.
M.fields = {
  port = T.any:describe(PORT):is_optional(),
  conf = T.table:describe("the conf that the port is asked with"):is_optional(),
  room = T.any:describe("a value of policy.room, in place of port and conf"):is_optional(),
  reserve = T.integer:min(0):describe("tokens kept free for the reply"):is_optional(),
  result_share = T.number:describe("what part of a request one result may take"):is_optional(),
  beat_share = T.number:describe("what part the results of one beat may take"):is_optional(),
  call_reserve = T.integer:min(0):describe("tokens of the reply kept from thinking"):is_optional(),
}

local function whole(v, least)
  return type(v) == "number" and v % 1 == 0 and v >= least and v <= shapes.LARGEST
end

local function shown(v)
  if type(v) == "number" and v > shapes.LARGEST then
    return tostring(v) .. ", which is beyond 2^53"
  end
  return type(v) == "string" and ("%q"):format(v) or tostring(v)
end

local function answers(port, name)
  local ok, method = pcall(function()
    return port[name]
  end)
  return ok and options.is_callable(method)
end

local function check_port(place, port)
  local kind = type(port)
  if kind ~= "table" and kind ~= "userdata" then
    options.fail(place, "port must be a port, got %s", kind)
  end
  for _, name in ipairs{ "count", "profile" } do
    if not answers(port, name) then
      options.fail(place, "port must be a port, got a %s without %s", kind, name)
    end
  end
end

--- Raises unless share is nil or a part of a whole.
---@param place string
---@param name string
---@param share any
function M.check_share(place, name, share)
  if share ~= nil and not (share > 0 and share <= 1) then
    options.fail(place, "%s must be a number above 0 and at most 1, got %s", name, shown(share))
  end
end

local function copy(v)
  if type(v) ~= "table" then
    return v
  end
  local own = {}
  for key, value in pairs(v) do
    own[key] = copy(value)
  end
  return setmetatable(own, getmetatable(v))
end

--- Makes a space out of options whose shape was checked.
---@param place string the factory, as the script calls it
---@param opts policy.room.opts
---@return room
function M.of(place, opts)
  if opts.port == nil then
    options.fail(place, "port is required — it %s", PORT)
  end
  check_port(place, opts.port)
  M.check_share(place, "result_share", opts.result_share)
  M.check_share(place, "beat_share", opts.beat_share)
  return setmetatable({
    [KEY] = {
      place = place,
      port = opts.port,
      conf = copy(opts.conf),
      reserve = opts.reserve or 0,
      result_share = opts.result_share or RESULT_SHARE,
      beat_share = opts.beat_share,
      call_reserve = opts.call_reserve,
    },
  }, meta)
end

--- Answers the room that a policy was given, or makes the space that its port
--- and conf describe.
---@param place string the factory, as the script calls it
---@param opts table with room, or with port and what belongs to it
---@return room
function M.given(place, opts)
  if opts.room == nil then
    if opts.port == nil then
      options.fail(place, "port or room is required, got neither")
    end
    return M.of(place, opts)
  end
  if not M.is(opts.room) then
    options.fail(place, "room must be a value of policy.room, got %s", type(opts.room))
  end
  for _, name in ipairs(OWN) do
    if opts[name] ~= nil then
      options.fail(place, "room and %s both given, want one: a room has its own %s", name, name)
    end
  end
  return opts.room
end

--- Whether v is a space.
---@param v any
---@return boolean
function M.is(v)
  return type(v) == "table" and getmetatable(v) == meta
end

--- The settings that a space was made with, not to be changed.
---@param room room
---@return { port: any, conf?: table, reserve: integer, call_reserve?: integer }
function M.settings(room)
  return rawget(room, KEY)
end

-- The numbers of the profile, held against each other and the reserve.
local function profile_of(s)
  local profile = s.port:profile(s.conf)
  if type(profile) ~= "table" then
    options.fail(s.place, "port:profile() must answer a table, got %s", type(profile))
  end
  local window, output = profile.context_window, profile.max_output
  if not whole(window, 1) then
    options.fail(s.place, "the profile's context_window must be a whole number >= 1, got %s: "
      .. "declare context_window in conf", shown(window))
  end
  output = output == nil and 0 or output
  if not whole(output, 0) then
    options.fail(s.place, "the profile's max_output must be a whole number >= 0, got %s: "
      .. "declare max_tokens in conf", shown(output))
  end
  if output >= window then
    options.fail(s.place, "max_output %d leaves no room in a context_window of %d: "
      .. "declare a smaller max_tokens in conf", output, window)
  end
  if s.reserve >= window then
    options.fail(s.place, "reserve %d leaves no room in a context_window of %d: "
      .. "reserve less", s.reserve, window)
  end
  return window, output
end

--- Everything that the space says, at one reading of the profile.
---@return room.limits
function methods:limits()
  local s = M.settings(self)
  local window, output = profile_of(s)
  local request = window - math.max(output, s.reserve)
  return {
    window = window,
    max_output = output,
    reserve = s.reserve,
    request = request,
    result = math.floor(request * s.result_share),
    beat = s.beat_share and math.floor(request * s.beat_share),
    reply = output > 0 and output or s.reserve,
  }
end

local function part(name)
  return function(self)
    return self:limits()[name]
  end
end

methods.request, methods.result = part("request"), part("result")
methods.beat, methods.reply = part("beat"), part("reply")

--- Counts the tokens of a request.
---@param request table
---@return integer
function methods:count(request)
  local s = M.settings(self)
  local n = s.port:count(request, s.conf)
  if not whole(n, 0) then
    options.fail(s.place, "port:count() must answer a whole number >= 0, got %s", shown(n))
  end
  return n
end

return M
