-- Every module publishes what it exports: an export without an entry in
-- shapes.api, or an entry without an export, fails here. The editors' stubs, the
-- gate of dev mode and the documentation are made of these entries.

local lshape = require("lshape")

-- The modules that a script can reach. lshape's own table holds nothing but its
-- parts; what those export is in require("lshape.shapes").
local modules = { "knl", "ports", "std", "mcp", "tools", "policy", "supervisor", "spec", "lshape" }

local function published(name)
  return name == "lshape" and require("lshape.shapes") or require(name).shapes
end

local function is_schema(v)
  return type(v) == "table" and type(rawget(v, "kind")) == "string"
end

-- Calls visit with the place of each entry of a module, the entry, and the
-- export that it is of.
local function walk(place, exports, entries, visit)
  for name, entry in pairs(entries) do
    local export = exports[name]
    visit(place .. "." .. name, entry, export)
    if type(export) == "table" and entry.members then
      walk(place .. "." .. name, export, entry.members, visit)
    end
  end
end

-- The names in t; _internal is nobody's.
local function names(t)
  local list = {}
  for name in pairs(t) do
    if name ~= "_internal" then
      list[#list + 1] = tostring(name)
    end
  end
  table.sort(list)
  return list
end

-- The entries that must have an export: not those of what may be nil.
local function present(entries)
  local kept = {}
  for name, entry in pairs(entries) do
    local maybe = type(entry.returns) == "string" and entry.returns:find("|nil$")
    kept[name] = not maybe and entry or nil
  end
  return kept
end

-- What is in one list of names and not in the other.
local function missing(from, other)
  local known = {}
  for _, name in ipairs(other) do
    known[name] = true
  end
  local list = {}
  for _, name in ipairs(from) do
    if not known[name] then
      list[#list + 1] = name
    end
  end
  return list
end

local function is_sentence(text)
  return type(text) == "string" and #text > 3 and text:find("%.$") ~= nil and not text:find("\n")
end

-- What is wrong with the entry of a function.
local function faults_of_args(args)
  local faults, seen = {}, {}
  for i, arg in ipairs(args) do
    if not is_schema(arg[1]) then
      faults[#faults + 1] = i .. ": no schema"
    end
    local described = type(arg[2]) == "string" and arg[2] ~= ""
    if not described or type(arg.name) ~= "string" or seen[arg.name] then
      faults[#faults + 1] = i .. ": no text, no name or a name twice"
    end
    if arg.optional ~= nil and arg.optional ~= true then
      faults[#faults + 1] = i .. ": optional is " .. tostring(arg.optional)
    end
    seen[arg.name or i] = true
  end
  return faults
end

for _, name in ipairs(modules) do
  local module = require(name)
  local shapes = published(name)

  describe("the api of " .. name, function()
    it("has an entry for each export and an export for each entry", function()
      local function compare(place, exports, entries)
        assert.same({}, missing(names(exports), names(entries)),
          place .. ": exports without an entry")
        assert.same({}, missing(names(present(entries)), names(exports)),
          place .. ": entries without an export")
      end
      compare(name, module, shapes.api)
      walk(name, module, shapes.api, function(place, entry, export)
        if type(export) == "table" and entry.members then
          compare(place, export, entry.members)
        end
      end)
    end)

    it("says of each what it is, in one sentence", function()
      walk(name, module, shapes.api, function(place, entry)
        assert.is_true(is_sentence(entry.doc), place .. ": doc is " .. tostring(entry.doc))
        for member, of in pairs(entry.members or {}) do
          local at = place .. " " .. member
          assert.is_true(is_sentence(of.doc), at .. ": doc is " .. tostring(of.doc))
        end
      end)
    end)

    it("names and describes every argument of every function", function()
      walk(name, module, shapes.api, function(place, entry, export)
        if type(export) == "function" then
          assert.same({}, faults_of_args(entry.args), place)
        end
        for member, of in pairs(entry.members or {}) do
          assert.same({}, faults_of_args(of.args or {}), place .. " " .. member)
        end
      end)
    end)

    it("answers a schema, a type, or nothing", function()
      walk(name, module, shapes.api, function(place, entry)
        local returns = entry.returns
        local text = type(returns) == "string" and returns ~= ""
        assert.is_true(returns == nil or is_schema(returns) or text,
          place .. ": returns is " .. tostring(returns))
      end)
    end)

    it("publishes schemas that the checks can read", function()
      for at, schema in pairs(shapes) do
        if at ~= "api" and at ~= "objects" and at ~= "modules" then
          assert.is_true(is_schema(schema), at .. " is no schema")
          local ok, why = pcall(lshape.check.check, {}, schema)
          assert.is_true(ok, at .. ": " .. tostring(why))
        end
      end
    end)

    it("publishes the options of its functions as closed shapes", function()
      for at, schema in pairs(shapes) do
        if at:find("_opts$") and rawget(schema, "kind") == "shape" then
          assert.is_false(rawget(schema, "open"), at)
        end
      end
    end)
  end)
end

describe("the objects of the modules that Go makes", function()
  local knl, ports = require("knl"), require("ports")

  it("are the methods of the handles", function()
    local handles = { session = knl.open(), device = knl.device(), port = ports.script{} }
    handles.llm, handles.folder = handles.port:open(), std.fs.folder(".")
    std.task.scope(function(scope)
      handles.scope, handles.task = scope, scope:spawn(function() end)
    end)
    local seen = {}
    for _, module in ipairs{ knl, ports, std } do
      for kind, entries in pairs(module.shapes.objects) do
        seen[#seen + 1] = kind
        for method, entry in pairs(entries) do
          assert.is_true(is_sentence(entry.doc) or entry.args == nil, kind .. ":" .. method)
          if entry.args and method ~= "__call" then
            assert.equal("function", type(handles[kind][method]), kind .. ":" .. method)
            assert.same({}, faults_of_args(entry.args), kind .. ":" .. method)
          end
        end
      end
    end
    table.sort(seen)
    assert.same({ "device", "folder", "llm", "port", "scope", "session", "task" }, seen)
  end)

  it("are every method that knl.api lists", function()
    local listed = {}
    for place in pairs(knl.api()) do
      local kind, method = place:match("^(%w+):([%w_]+)$")
      if kind then
        listed[#listed + 1] = kind .. ":" .. method
      end
    end
    local declared = {}
    for _, module in ipairs{ knl, ports, std, require("mcp") } do
      for kind, entries in pairs(module.shapes.objects) do
        for method, entry in pairs(entries) do
          if entry.args and method ~= "__call" then
            declared[#declared + 1] = kind .. ":" .. method
          end
        end
      end
    end
    table.sort(listed)
    table.sort(declared)
    assert.same(listed, declared)
  end)
end)
