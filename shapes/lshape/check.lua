--- lshape.check: holds a value against a schema.
--
--    check(value, schema, { registry }?)            true, or false and the reason
--    assert(value, schema or name, hint?, opts?)    the value, or raises the reason
--    assert_dev(…)                                  assert in dev mode, else nothing
--    is_dev_mode()                                  LSHAPE_CHECK is exactly 1
--
-- The reason is "shape violation at $.a[2]: expected string, got number": the
-- first failure, fields in the order of their names. A closed shape refuses
-- every key that it does not declare, numbers and tables too. What passes costs
-- no text: a value is walked once without paths, and again only when it fails.
-- A broken schema, a ref that no registry is there for and nesting deeper than
-- 256 are raised where the check comes to them: they are mistakes and say nothing
-- about the value.
--
-- Callers look these functions up at the call, so that a spec can replace them.
--
-- Example:
--
--    local ok, why = check.check({ max = 0 }, Opts)
--    print(why) --> shape violation at $.max: 0 is below min 1

local kinds = require("lshape.kinds")
local place = require("lshape.place")
local violation = require("lshape.violation")

local M = {
  dev_env_var = "LSHAPE_CHECK",
  default_registry = nil, -- a host may bind one: { name = schema }
}

local function resolve_default_registry()
  if M.default_registry == nil then
    place.raise("lshape.check: default registry not bound. Bind check.default_registry"
      .. " or pass opts.registry")
  end
  return M.default_registry
end

-- Walks that know no registry but the default one; walks are never written to.
local quick = { exact = false, default_registry = resolve_default_registry }
local exact = { exact = true, default_registry = resolve_default_registry }

local function with_registry(walk, registry)
  if registry == nil then
    return walk
  end
  return { exact = walk.exact, registry = registry }
end

-- The registry that the caller passed.
local function registry_of(opts)
  if opts == nil then
    return nil
  end
  if type(opts) ~= "table" then
    place.raise("lshape.check: opts must be a table, got " .. type(opts))
  end
  local registry = opts.registry
  if registry ~= nil and type(registry) ~= "table" then
    place.raise("lshape.check: opts.registry must be a table, got " .. type(registry))
  end
  return registry
end

-- Raises what is no fault of the value.
local function halt(why, at)
  if why == violation.too_deep then
    local text = "lshape.check: recursion depth exceeded at %s (> %d; cycle in schema or value?)"
    place.raise(text:format(violation.path(at), kinds.depth))
  end
  place.raise("lshape.check: " .. why.broken .. (at and " at " .. violation.path(at) or ""))
end

-- Whether a value fits that a quick walk did not pass, and why not. The quick
-- walk may have met what an exact one does not come to.
local function judged(value, schema, registry)
  local why, at = kinds.visit(value, schema, with_registry(exact, registry), 1)
  if not why then
    return true
  elseif type(why) == "table" and why.halts then
    halt(why, at)
  end
  return false, violation.compose("$", why, at)
end

--- Whether value fits schema, and why not. A nil schema fits all.
---@param value any
---@param schema? lshape.schema
---@param opts? { registry?: table<string, lshape.schema> } what T.ref names
---@return boolean ok, string? reason
function M.check(value, schema, opts)
  local registry = registry_of(opts)
  if schema == nil then
    return true
  end
  local ok, why = pcall(kinds.visit, value, schema, with_registry(quick, registry), 1)
  if ok and not why then
    return true
  end
  return judged(value, schema, registry)
end

-- The schema that assert was given or named; nil for "any".
local function schema_of(schema_or_name, opts)
  if type(schema_or_name) == "table" then
    return schema_or_name
  end
  if schema_or_name == nil then
    place.raise("lshape.assert: schema_or_name must not be nil. Pass \"any\" to allow anything")
  end
  if type(schema_or_name) ~= "string" then
    place.raise("lshape.assert: schema_or_name must be a schema or a name, got "
      .. type(schema_or_name))
  end
  if schema_or_name == "any" then
    return nil
  end
  local registry = registry_of(opts) or resolve_default_registry()
  local schema = rawget(registry, schema_or_name)
  if schema == nil then
    place.raise(("lshape.assert: unknown shape name '%s'"):format(schema_or_name))
  end
  return schema
end

--- Answers value, or raises why it does not fit at the line of the caller.
---@generic V
---@param value V
---@param schema_or_name lshape.schema|string a name of the registry, or "any"
---@param hint? string what the value is, for the message
---@param opts? { registry?: table<string, lshape.schema> }
---@return V value
function M.assert(value, schema_or_name, hint, opts)
  local ok, why = M.check(value, schema_of(schema_or_name, opts), opts)
  if not ok then
    place.raise(violation.with_hint(why, hint))
  end
  return value
end

--- Asserts in dev mode; otherwise answers value unseen.
---@generic V
---@param value V
---@param schema_or_name lshape.schema|string
---@param hint? string
---@param opts? { registry?: table<string, lshape.schema> }
---@return V value
function M.assert_dev(value, schema_or_name, hint, opts)
  if M.is_dev_mode() then
    return M.assert(value, schema_or_name, hint, opts)
  end
  return value
end

--- Whether the environment variable that dev_env_var names is exactly "1".
---@return boolean
function M.is_dev_mode()
  return os.getenv(M.dev_env_var) == "1"
end

M._internal = {
  handlers = kinds.handlers,
  check_node = kinds.visit,
  compose_msg = violation.compose,
  build_ctx = function(opts)
    return with_registry(exact, registry_of(opts))
  end,
  resolve_default_registry = resolve_default_registry,
}

return M
