--- supervisor.shapes: what the functions of supervisor take and answer.
--
-- The shapes of options are closed: lshape.options checks them, in the same words
-- in both modes.
--
-- Example:
--
--    check.check({ budget = { amount = 5 } }, shapes.child_opts) --> true

local T = require("lshape").t
local options = require("lshape.options")

local M = {}

-- A schema that annotations spell so.
local function spelt(schema, type)
  local copy = { cats = type }
  for key, value in pairs(schema) do
    copy[key] = value
  end
  return setmetatable(copy, getmetatable(schema))
end

--- A session; what is none is refused in words of supervisor's own.
M.session = spelt(T.any, "knl.session")

--- What a child runs.
M.body = spelt(options.callable, "fun(child: knl.session): ...")

local whole = T.integer:min(1)

M.child_budget = T.shape({
  amount = whole:describe("units moved from the parent"),
  tag = T.string:min_len(1):describe("names the unit (the parent's)"):is_optional(),
  refund = T.boolean:describe("what is left goes back at the close"):is_optional(),
}, { open = false })

M.child_opts = T.shape({
  budget = M.child_budget:describe("{ amount, tag?, refund? }, what the child may spend"),
}, { open = false })

M.child_entry = T.shape({
  opts = M.child_opts:describe("of the child"),
  fn = M.body:describe("its body, fn(child)"),
}, { open = false })

--- Children to run; checked in words of supervisor's own.
M.children = spelt(T.table, "supervisor.child_entry[]")

--- Sessions to read, and their ids.
M.sessions = spelt(T.table, "(knl.session|string)[]")

-- For the words of an entry: what stands in it is checked in words of its own.
M.entry_keys = T.partial({ opts = T.any, fn = T.any }, { open = false })

M.joiner = T.one_of({ "isolate", "cancel_on_error" })

M.parallel_opts = T.shape({
  joiner = M.joiner:describe("what a failure means to the others (isolate)"):is_optional(),
  timeout_ms = whole:describe("for all children together"):is_optional(),
  width = T.integer:min(1):max(1024):describe("children at a time (32)"):is_optional(),
}, { open = false })

M.merge_opts = T.shape({
  limit = whole:describe("rows of one session; more is refused"):is_optional(),
  timeout_ms = whole:describe("for the reads of one fold"):is_optional(),
}, { open = false })

M.result_slot = T.any_of({
  T.shape({
    ok = T.literal(true),
    values = T.table:describe("what the body returned, with n"),
  }, { open = false }),
  T.shape({
    ok = T.literal(false),
    err = T.any:describe("what the body raised, or why it did not run; never nil"),
    cancelled = T.boolean:describe("whether it was cut short"):is_optional(),
  }, { open = false }),
})

M.results = T.array_of(M.result_slot)

M.reclaimed = T.array_of(T.shape({
  session = T.string:describe("the id of the child"),
  returned = T.integer:min(0):describe("units that went back"),
}, { open = false }))

return M
