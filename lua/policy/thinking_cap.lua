--- policy.thinking_cap: thought that leaves room for the reply.
--
-- A filter that bounds params.thinking.budget_tokens by what the reply may take
-- less call_reserve, the tokens kept for the text and the tool calls behind the
-- thought. It only lowers: a smaller budget of the conf, of the beat's params
-- or of opts stays, and so does params.max_tokens, which makes the reply
-- shorter. A beat that turns thinking off (params = { thinking = false }) is
-- left alone.
--
-- It turns nothing on: a conf without thinking is refused, for a cap on what is
-- off would read as if it were on. When nothing is left to think with it raises.
--
-- Example:
--
--    local conf = { model = "m", thinking = { effort = "high" } }
--    local device = knl.device{
--      llm = port:open(conf),
--      filters = { policy.thinking_cap{ port = port, conf = conf, call_reserve = 2000 } },
--    }

local options = require("lshape.options")
local shapes = require("policy.shapes")
local space = require("policy.space")
local T = require("lshape").t

local PLACE = "policy.thinking_cap"

local M = {}

M.shapes = {
  thinking_cap_opts = T.shape({
    port = space.fields.port,
    conf = space.fields.conf,
    room = space.fields.room,
    call_reserve = space.fields.call_reserve,
    budget = T.integer:min(1):describe("tokens of thought at most"):is_optional(),
  }, { open = false }),
}

M.api = {
  doc = "Makes a filter that bounds a model's thinking by the room of its reply.",
  args = { { M.shapes.thinking_cap_opts, "by what", name = "opts" } },
  returns = T.fn,
  members = {
    filter = {
      doc = "Answers the request with its thinking bounded.",
      args = { { shapes.request, "the request", name = "request" } },
      returns = T.table,
    },
  },
}

-- A number of tokens that a script or a conf gave: at least one of them.
local function tokens(n, where)
  if type(n) ~= "number" or n % 1 ~= 0 or n < 1 or n > shapes.LARGEST then
    options.fail(PLACE, "%s must be a whole number >= 1, got %s", where,
      type(n) == "string" and ("%q"):format(n) or tostring(n))
  end
  return n
end

local function copied(t)
  local own = {}
  for key, value in pairs(t or {}) do
    own[key] = value
  end
  return own
end

-- The budget that thinking asks for; without one there is no bound.
local function budget_in(thinking, where)
  if type(thinking) ~= "table" or thinking.budget_tokens == nil then
    return math.huge
  end
  return tokens(thinking.budget_tokens, where .. ".budget_tokens")
end

-- The least of the budgets that are there and of what the reply leaves.
local function budget_of(settings, params)
  local reply = settings.room:reply()
  if params.max_tokens ~= nil then
    reply = math.min(reply, tokens(params.max_tokens, "params.max_tokens"))
  end
  local left = reply - settings.call_reserve
  if left < 1 then
    options.fail(PLACE, "a reply of %d tokens leaves nothing to think with behind call_reserve %d: "
      .. "declare max_tokens in conf, or reserve less", reply, settings.call_reserve)
  end
  local asked = budget_in(params.thinking, "params.thinking")
  return math.min(left, asked, settings.budget)
end

local function bounded(settings, request)
  local params = copied(request.params)
  if params.thinking == false then
    return request
  end
  local thinking = type(params.thinking) == "table" and copied(params.thinking) or {}
  thinking.budget_tokens = budget_of(settings, params)
  params.thinking = thinking
  local bound = copied(request)
  bound.params = params
  return bound
end

local function settings_of(opts)
  local room = space.given(PLACE, opts)
  local s = space.settings(room)
  local from = opts.room == nil and "" or "room's "
  if s.conf == nil then
    options.fail(PLACE, "the %sconf is required — it says that the model thinks", from)
  end
  local thinking = s.conf.thinking
  if thinking ~= true and type(thinking) ~= "table" then
    options.fail(PLACE, "the %sconf.thinking must be true or { effort?, budget_tokens? }, got %s: "
      .. "a cap needs a model that thinks", from, tostring(thinking))
  end
  if s.call_reserve == nil then
    options.fail(PLACE, "the %scall_reserve is required — tokens of the reply kept from thinking",
      from)
  end
  local in_conf = budget_in(thinking, ("the %sconf.thinking"):format(from))
  local budget = math.min(opts.budget or math.huge, in_conf)
  return { room = room, call_reserve = s.call_reserve, budget = budget }
end

---@class policy.thinking_cap.opts
---@field port? port
---@field conf? table whose thinking is on
---@field room? room in place of port, conf and call_reserve
---@field call_reserve? integer tokens of the reply kept from thinking
---@field budget? integer tokens of thought at most

--- Makes a filter.
---@param opts policy.thinking_cap.opts
---@return fun(request: table): table
function M.new(opts)
  shapes.check_opts(PLACE, opts, M.shapes.thinking_cap_opts, {
    hints = shapes.hints("thinking_cap looks at a request, not at a session"),
    opts = "{ port, conf, call_reserve, budget? } or { room, budget? }",
  })
  local settings = settings_of(opts)
  return function(request)
    return bounded(settings, request)
  end
end

return M
