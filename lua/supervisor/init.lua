--- supervisor: children of a session, each with a budget of its own.
--
--    child(parent, opts, fn)           one, answering what fn returns
--    parallel(parent, children, opts?) many side by side, answering slots
--    merge(parent, sessions, opts?)    a fold over what they found
--    reclaim(parent)                   closes what a killed run left open
--
-- It runs no loop and holds no state: fn is the script's own, and what a child
-- may spend is moved from the parent's ledger before it begins. Units are never
-- made here, so however deep a tree of children grows, together they spend at
-- most what its root was granted. Nothing is retried.
--
-- supervisor.shapes holds the schemas, supervisor.shapes.api says of every
-- function what it takes and answers; with LSHAPE_CHECK=1 arguments are held
-- against it.
--
-- Example:
--
--    local slots = supervisor.parallel(s, jobs)
--    local fold = supervisor.merge(s, ids)
--    local o = knl.beat(s, device:with{ fold = fold })

local child = require("supervisor.child")
local gate = require("lshape.gate")
local merge = require("supervisor.merge")
local parallel = require("supervisor.parallel")
local reclaim = require("supervisor.reclaim")
local shapes = require("supervisor.shapes")

local M = {
  child = child.child,
  parallel = parallel.parallel,
  merge = merge.merge,
  reclaim = reclaim.reclaim,
  shapes = {
    child_budget = shapes.child_budget,
    child_opts = shapes.child_opts,
    child_entry = shapes.child_entry,
    joiner = shapes.joiner,
    parallel_opts = shapes.parallel_opts,
    result_slot = shapes.result_slot,
    results = shapes.results,
    merge_opts = shapes.merge_opts,
    reclaimed = shapes.reclaimed,
    api = {
      child = child.api,
      parallel = parallel.api,
      merge = merge.api,
      reclaim = reclaim.api,
      shapes = { doc = "Schemas of what supervisor takes and answers.", returns = "table" },
    },
  },
}

gate(M, "supervisor")

return M
