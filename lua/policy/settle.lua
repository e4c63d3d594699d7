--- policy.settle: what a beat has cost, in tokens.
--
-- A device's settle: after the response the kernel moves the ledger from what
-- was reserved to what this answers, either way. It is for a grant that counts
-- tokens, beside cost = policy.tokens; it cannot see the grant, and under one
-- that counts beats it would charge tokens for beats.
--
-- The cost is the sum of the response's counters: input, output, what was read
-- from a cache and what was written to one. They do not overlap; thinking is a
-- part of output. When the response has no counter above 0 the port counts the
-- request and the reply; without a port that raises, for nothing is no cost.
-- It knows no prices.
--
-- Example:
--
--    local device = knl.device{
--      llm = port:open(),
--      cost = policy.tokens{ port = port },
--      settle = policy.settle{ port = port },
--    }

local options = require("lshape.options")
local shapes = require("policy.shapes")
local space = require("policy.space")
local T = require("lshape").t

local PLACE = "policy.settle"
local COUNTERS = { "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens" }

local M = {}

M.shapes = {
  settle_opts = T.shape({
    port = space.fields.port,
    conf = space.fields.conf,
    room = space.fields.room,
  }, { open = false }),
}

M.api = {
  doc = "Makes a device's settle that answers the tokens a call has used.",
  args = { { M.shapes.settle_opts, "what counts instead", name = "opts", optional = true } },
  returns = T.fn,
  members = {
    settle = {
      doc = "Answers the tokens that the call has used.",
      args = {
        { shapes.request, "the request", name = "request" },
        { T.table, "the response", name = "response" },
      },
      returns = T.integer,
    },
  },
}

-- The sum of the counters; 0 when there are none.
local function used(usage)
  if type(usage) ~= "table" then
    return 0
  end
  local sum = 0
  for _, name in ipairs(COUNTERS) do
    local n = usage[name]
    if n ~= nil and not (type(n) == "number" and n >= 0 and n % 1 == 0) then
      options.fail(PLACE, "usage.%s must be a whole number >= 0, got %s", name, tostring(n))
    end
    sum = sum + (n or 0)
  end
  return sum
end

local function counted(room, request, response)
  local reply = { messages = { { role = "assistant", content = response.content } } }
  return room:count(request) + room:count(reply)
end

---@class policy.settle.opts
---@field port? port counts when the usage is missing
---@field conf? table
---@field room? room in place of port and conf

--- Makes a settle.
---@param opts? policy.settle.opts
---@return fun(request: table, response: table): integer
function M.new(opts)
  opts = shapes.check_opts(PLACE, opts == nil and {} or opts, M.shapes.settle_opts, {
    hints = shapes.hints("settle looks at a response, not at a session"),
    opts = "{ port?, conf? } or { room }",
  })
  local room
  if next(opts) ~= nil then
    room = space.given(PLACE, opts)
  end
  return function(request, response)
    local n = used(response.usage)
    if n > 0 then
      return n
    elseif not room then
      options.fail(PLACE, "the response has no usage: give settle a port, it counts then")
    end
    return counted(room, request, response)
  end
end

return M
