--- tools: ready-made tools for a device.
--
--    tools.fs{ root?, allow, paths? }       files below a folder
--    tools.sh{ allow?, timeout?, cwd? }     commands
--    tools.merge(a, b, …)                   one set of several
--
-- Each answers a map from a tool's name to its entry, what knl.device takes as
-- tools. A request that is refused is an answer, { ok = false, reason, message },
-- for the model to read; only what is broken raises. None of them is a sandbox
-- for hostile code: see tools.sh.
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

return {
  fs = require("tools.fs"),
  sh = require("tools.sh"),
  merge = require("tools.merge"),
}
