--- policy.tokens: what a beat reserves, in tokens.
--
-- A device's cost that counts the request by the port: with a grant tagged
-- "tokens" the balance is what the session may still send. It counts what is
-- sent, not what comes back; policy.settle moves the ledger to what the call
-- has cost.
--
-- Example:
--
--    local s = knl.open{ budget = { amount = 200000, tag = "tokens" } }
--    local device = knl.device{ llm = port:open(), cost = policy.tokens{ port = port } }

local shapes = require("policy.shapes")
local space = require("policy.space")
local T = require("lshape").t

local M = {}

M.shapes = {
  tokens_opts = T.shape({
    port = space.fields.port,
    conf = space.fields.conf,
    room = space.fields.room,
  }, { open = false }),
}

M.api = {
  doc = "Makes a device's cost that counts the tokens of the request.",
  args = { { M.shapes.tokens_opts, "by what", name = "opts" } },
  returns = T.fn,
  members = {
    cost = {
      doc = "Answers the tokens of the request, at least 1.",
      args = { { shapes.request, "the request", name = "request" } },
      returns = T.integer,
    },
  },
}

---@class policy.tokens.opts
---@field port? port
---@field conf? table
---@field room? room in place of port and conf

--- Makes a cost.
---@param opts policy.tokens.opts
---@return fun(request: table): integer
function M.new(opts)
  shapes.check_opts("policy.tokens", opts, M.shapes.tokens_opts, {
    hints = shapes.hints("tokens looks at a request, not at a session"),
    opts = "{ port, conf? } or { room }",
  })
  local room = space.given("policy.tokens", opts)
  return function(request)
    return math.max(1, room:count(request))
  end
end

return M
