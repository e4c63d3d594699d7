--- tools: ready-made tools for a device.
--
--    tools.fs{ root?, allow, paths? }       files below a folder
--    tools.sh{ allow?, timeout?, cwd? }     commands
--    tools.http{ hosts?, max_bytes?, … }    web servers
--    tools.kv{ prefix? }                    small values that outlive a run
--    tools.ask{ via?, timeout? }            a human
--    tools.merge(a, b, …)                   one set of several
--
-- Each answers a map from a tool's name to its entry, what knl.device takes as
-- tools. A request that is refused is an answer, { ok = false, reason, message },
-- for the model to read; only what is broken raises. None of them is a sandbox
-- for hostile code: see tools.sh. tools.shapes holds the options they take, and
-- in its api what each of them is.
--
-- Example:
--
--    local tools = require("tools")
--    local device = knl.device{
--      llm = llm,
--      tools = tools.merge(
--        tools.fs{ root = "work", allow = { "read", "list", "search_replace" } },
--        tools.sh{ cwd = "work", allow = { "go" }, timeout = 60 }
--      ),
--    }

local gate = require("lshape.gate")

local M = { shapes = { api = { shapes = { doc = "Schemas of the options.", returns = "table" } } } }

for _, name in ipairs({ "fs", "sh", "http", "kv", "ask", "merge" }) do
  local module = require("tools." .. name)
  for shape, schema in pairs(module.shapes) do
    M.shapes[shape] = schema
  end
  M.shapes.api[name] = module.api
  M[name] = module.new
end

return gate(M, "tools")
