--- lshape: shapes of values, as plain data.
--
--    lshape.t         constructors of schemas
--    lshape.check     holds a value against a schema
--    lshape.reflect   reads schemas
--    lshape.luacats   writes schemas as LuaCATS annotations
--
-- A schema is a table of raw fields that any program may read or write; its
-- metatable only adds methods. Two modules beside these serve the modules that
-- ship with knl and may serve yours: lshape.options is the check of an options
-- table, lshape.gate the check of a module's public functions in dev mode.
--
-- Example:
--
--    local lshape = require("lshape")
--    local T = lshape.t
--    local Point = T.shape({ x = T.number, y = T.number:is_optional() })
--    print(lshape.check.check({ x = "1" }, Point))
--    --> false  shape violation at $.x: expected number, got string

return {
  _VERSION = "0.3.0",
  t = require("lshape.t"),
  check = require("lshape.check"),
  reflect = require("lshape.reflect"),
  luacats = require("lshape.luacats"),
}
