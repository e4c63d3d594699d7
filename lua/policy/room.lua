--- policy.room: one value that says how a model's window is divided.
--
-- window{fit}, tokens, result_cap, settle and thinking_cap take { room = r } in
-- place of { port, conf }, so that they cannot disagree about what there is
-- room for. The profile of the port is read at every use; the room itself holds
-- no numbers and may serve any number of devices and sessions.
--
--    room:request()  tokens of a request: the window less the longest reply
--    room:result()   tokens of one result: that times result_share (0.25)
--    room:beat()     tokens of one beat's results: times beat_share; nil: no cap
--    room:reply()    tokens of the reply
--    room:count(r)   tokens that the request r takes
--    room:limits()   all of them at once
--
-- It caps nothing by itself.
--
-- Example:
--
--    local room = policy.room{ port = port, reserve = 4000, beat_share = 0.5 }
--    local device = knl.device{
--      llm = port:open(),
--      tools = policy.result_cap{ room = room }(tools),
--      cost = policy.tokens{ room = room },
--    }

local shapes = require("policy.shapes")
local space = require("policy.space")
local T = require("lshape").t

local M = {}

M.shapes = {
  room_opts = T.shape({
    port = space.fields.port,
    conf = space.fields.conf,
    reserve = space.fields.reserve,
    result_share = space.fields.result_share,
    beat_share = space.fields.beat_share,
    call_reserve = space.fields.call_reserve,
  }, { open = false }),
}

-- The methods of a room.
M.objects = {
  ["policy.room"] = {
    request = { doc = "Tokens that a request may take.", args = {}, returns = T.integer },
    result = { doc = "Tokens that one result may take.", args = {}, returns = T.integer },
    beat = {
      doc = "Tokens that the results of one beat may take together, nil for no cap.",
      args = {},
      returns = T.integer:is_optional(),
    },
    reply = { doc = "Tokens that the reply may take.", args = {}, returns = T.integer },
    count = {
      doc = "Counts the tokens of a request.",
      args = { { shapes.request, "the request", name = "request" } },
      returns = T.integer,
    },
    limits = { doc = "All of them at one reading of the profile.", args = {}, returns = T.table },
  },
}

M.api = {
  doc = "Says how a model's window is divided, for policies that must not disagree.",
  args = { { M.shapes.room_opts, "how", name = "opts" } },
  returns = "policy.room",
}

---@class policy.room.opts
---@field port port
---@field conf? table the conf that the port is asked with
---@field reserve? integer tokens kept free for the reply, when that is more than max_output
---@field result_share? number what part of a request one result may take (default 0.25)
---@field beat_share? number what part of a request the results of one beat may take
---@field call_reserve? integer tokens of the reply that thinking_cap keeps from thinking

--- Makes a room.
---@param opts policy.room.opts
---@return policy.room
function M.new(opts)
  shapes.check_opts("policy.room", opts, M.shapes.room_opts, {
    hints = shapes.hints("a room serves any session"),
    opts = "{ port, conf?, reserve?, result_share?, beat_share?, call_reserve? }",
  })
  return space.of("policy.room", opts)
end

return M
