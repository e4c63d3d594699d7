--- policy: values that a loop composes.
--
-- A policy either plugs into a seam of a device (fold, filters, cost, settle,
-- tools) and so changes what one beat sends or reserves, or the loop asks it
-- between beats. None runs a loop, and none keeps state between beats: what it
-- knows it reads from the log at each call, so two processes on one session come
-- to one verdict, and a resumed session goes on counting. Options are policy;
-- the session is an argument.
--
-- Each stands in a file of its own, policy.<name>, with the options it takes.
-- policy.shapes holds the schemas, policy.shapes.api says of every function what
-- it takes and answers; with LSHAPE_CHECK=1 arguments are held against it.
--
-- Example:
--
--    local policy = require("policy")
--    local stuck = policy.stagnation{ same = 3 }
--    local device = knl.device{ llm = llm, fold = policy.window{ tail = 20 } }
--    while not stuck(session) do
--      local o = knl.beat(session, device)
--      if o.status ~= "ok" or #o.out.tools == 0 then return o end
--    end

local gate = require("lshape.gate")
local shapes = require("policy.shapes")

-- Every policy, in the order that the documentation shows them in.
local names = {
  "window", "carry", "stagnation", "retry", "escalate", "compact", "checkpoint",
  "tokens", "settle", "result_cap", "thinking_cap", "repeat_cap", "require_args",
  "verdict", "beat_cap", "deadline", "room",
}

local function merge(into, from, name)
  for key, schema in pairs(from) do
    if into[key] ~= nil then
      error(("BUG: policy.%s: shape %s is published twice"):format(name, key), 0)
    end
    into[key] = schema
  end
end

local M = {
  shapes = {
    beat_record = shapes.beat_record,
    tool_pair = shapes.tool_pair,
    stop_reason = shapes.stop_reason,
    objects = {},
    api = { shapes = { doc = "Schemas of the options and of what policies hand back.",
      returns = "table" } },
  },
}

for _, name in ipairs(names) do
  local module = require("policy." .. name)
  merge(M.shapes, module.shapes, name)
  merge(M.shapes.objects, module.objects or {}, name)
  M.shapes.api[name] = module.api
  M[name] = module.new
end

gate(M, "policy")

return M
