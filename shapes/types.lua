-- Writes LuaCATS stubs of modules from what each publishes: its shapes by name,
-- shapes.api, shapes.objects and shapes.modules. The host calls the function that
-- this chunk answers; it reads the modules and changes nothing. asserts is what
-- types_assert.lua answers.
--
--    files = write({ { name = "knl", module = knl, shapes = knl.shapes }, … }, luacats)
--    files[i] = { name = "knl", text = "---@meta knl\n…" }

local luacats

-- The names of schemas, over all modules: "knl.event".
local names

local function sorted(t)
  local keys = {}
  for key in pairs(t) do
    if type(key) == "string" then
      keys[#keys + 1] = key
    end
  end
  table.sort(keys)
  local i = 0
  return function()
    i = i + 1
    return keys[i], t[keys[i]]
  end
end

local wrappers = { optional = true, described = true, bounded = true }

local named

-- A copy of the parts of a schema in which what has a name is but that name.
local function parts(schema)
  local copy = {}
  for key, value in pairs(schema) do
    copy[key] = value
    if type(value) == "table" and value.kind then
      copy[key] = named(value)
    elseif type(value) == "table" and key ~= "values" then
      copy[key] = {}
      for at, part in pairs(value) do
        copy[key][at] = type(part) == "table" and named(part) or part
      end
    end
  end
  return copy
end

function named(schema)
  local name = rawget(schema, "cats") or names[schema]
  if name and not wrappers[schema.kind] then
    return { kind = "prim", prim = name }
  end
  return parts(schema)
end

-- Whether a schema takes nil, whatever wraps it.
local function is_optional(schema)
  local kind = schema.kind
  return kind == "optional" or wrappers[kind] and is_optional(rawget(schema, "inner"))
end

-- How LuaCATS spells a schema; what is spelt already stands as it is.
local function spelt(schema)
  if type(schema) == "string" then
    return schema
  end
  local text = names[schema] or luacats.type_of(named(schema))
  if not is_optional(schema) then
    return text
  end
  return (text:find("[|%s]") and "(%s)?" or "%s?"):format(text)
end

local function one_line(text)
  return (tostring(text or ""):gsub("%s+", " "))
end

-- The parts of a list of types: a comma inside brackets ends none, and what
-- stands behind a fun(…) is what that function returns.
local function each_type(text)
  local list, depth, from = {}, 0, 1
  for at, c in text:gmatch("()([,(){}<>%[%]])") do
    if c == "," and depth == 0 then
      if text:find("^%s*fun%s*%(", from) then
        break
      end
      list[#list + 1] = text:sub(from, at - 1)
      from = at + 1
    elseif c ~= "," then
      depth = depth + (c:find("[({<%[]") and 1 or -1)
    end
  end
  list[#list + 1] = text:sub(from)
  return list
end

local File = {}
File.__index = File

function File:line(text, ...)
  self.lines[#self.lines + 1] = select("#", ...) > 0 and text:format(...) or text
end

function File:doc(text)
  if text and text ~= "" then
    self:line("--- %s", one_line(text))
  end
end

function File:about(schema)
  self:line("")
  self:doc(rawget(schema, "about") or rawget(schema, "doc"))
end

-- The type of an argument: an options table is known by where it is taken.
function File:argument_type(export, arg)
  local options = export .. "_" .. tostring(arg.name)
  if not rawget(arg[1], "cats") and not names[arg[1]] and self.shapes[options] then
    return self.name .. "." .. options
  end
  return (spelt(arg[1]):gsub("%?$", arg.optional and "" or "?"))
end

-- The only function among the members of an entry, that it hands back.
local function handed_back(entry)
  local returns, members = entry.returns, entry.members
  local is_function = type(returns) == "table" and rawget(returns, "prim") == "function"
  if not is_function or rawget(returns, "cats") or not members then
    return nil
  end
  local name = next(members)
  return name and next(members, name) == nil and members[name].args and name
end

function File:returns(export, entry)
  local returns, member = entry.returns, handed_back(entry)
  if returns == nil or returns == "nil" then
    return
  elseif member then
    self:line("---@return %s", self:signature(export .. "_" .. member, entry.members[member]))
    return
  elseif type(returns) == "table" then
    self:line("---@return %s", spelt(returns))
    return
  end
  for _, text in ipairs(each_type(returns)) do
    text = text:match("^%s*(.-)%s*$")
    self:line("---@return %s", text == "..." and "any ..." or text)
  end
end

-- fun(…): … of an entry.
function File:signature(export, entry)
  local args = {}
  for i, arg in ipairs(entry.args or {}) do
    local name = arg.name .. (arg.optional and arg.name ~= "..." and "?" or "")
    args[i] = ("%s: %s"):format(name, self:argument_type(export, arg))
  end
  local text = ("fun(%s)"):format(table.concat(args, ", "))
  local returns = entry.returns
  if returns == nil or returns == "nil" then
    return text
  end
  return text .. ": " .. spelt(returns)
end

-- function place(…) end, with its annotations.
function File:func(place, export, entry)
  self:line("")
  self:doc(entry.doc)
  local params = {}
  for i, arg in ipairs(entry.args or {}) do
    local name = arg.name or "arg" .. i
    params[i] = name
    local mark = arg.optional and name ~= "..." and "?" or ""
    local desc = arg[2] ~= name and one_line(arg[2]) or ""
    local text = self:argument_type(export, arg) .. " " .. desc
    self:line("---@param %s%s %s", name, mark, (text:gsub("%s+$", "")))
  end
  self:returns(export, entry)
  local is_local, name = place:match("^(local )(.*)$")
  self:line("%sfunction %s(%s) end", is_local or "", name or place, table.concat(params, ", "))
end

local function is_called(entry)
  return entry.args ~= nil
end

function File:value(place, entry)
  self:line("")
  self:doc(entry.doc)
  self:line("---@type %s", spelt(entry.returns or "any"))
  self:line("%s = nil", place)
end

-- The exports of a module or of a table in it.
function File:exports(place, exports, entries)
  for name, entry in sorted(entries) do
    local at = place == "" and name or place .. "." .. name
    local export = exports[name]
    if type(export) == "table" and entry.members then
      self:line("")
      self:doc(entry.doc)
      if is_called(entry) then
        self:line("---@overload %s", self:signature(name, entry))
      end
      self:line("%s = {}", at)
      self:exports(at, export, entry.members)
    elseif is_called(entry) and type(export) ~= "table" then
      self:func(at, name, entry)
    else
      self:value(at, entry)
    end
  end
end

-- A kind of handle, with its methods and what can be read of it.
function File:object(class, entries)
  local name = class:match("[^.]+$")
  self:line("")
  self:line("---@class %s", name == class and self.name .. "." .. class or class)
  for field, entry in sorted(entries) do
    if field == "__call" then
      self:line("---@overload %s", self:signature(name, entry))
    elseif not is_called(entry) then
      self:line("---@field %s? %s @%s", field, spelt(entry.returns), one_line(entry.doc))
    end
  end
  self:line("local %s = {}", name)
  for method, entry in sorted(entries) do
    if method ~= "__call" and is_called(entry) then
      self:func(name .. ":" .. method, name .. "_" .. method, entry)
    end
  end
end

-- The schemas of a module: shapes are classes, others another name of a type.
function File:schemas()
  for name, schema in sorted(self.shapes) do
    local kind = type(schema) == "table" and rawget(schema, "kind")
    local place = self.name .. "." .. name
    if type(kind) ~= "string" or self.objects[name] then
      kind = nil -- the registry, or a handle
    elseif names[schema] ~= place then
      self:about(schema)
      self:line("---@alias %s %s", place, spelt(schema))
    elseif kind == "shape" then
      self:about(schema)
      self:line((luacats.class_for(place, parts(schema)):gsub("\n$", "")))
    else
      self:about(schema)
      self:line("---@alias %s %s", place, luacats.type_of(parts(schema)))
    end
  end
end

local function open_file(name, shapes)
  local objects = rawget(shapes, "objects") or {}
  return setmetatable({ name = name, shapes = shapes, objects = objects, lines = {} }, File)
end

function File:written()
  return { name = self.name, text = table.concat(self.lines, "\n") .. "\n" }
end

-- The file of what require(name) answers.
local function module_file(name, module, entries, shapes)
  local file = open_file(name, shapes)
  local place = name:match("[^.]+$")
  file:line("---@meta %s", name)
  file:schemas()
  for class, methods in sorted(file.objects) do
    file:object(class, methods)
  end
  if is_called(entries) then -- the module is a function
    file:func("local " .. place, place, entries)
  else
    file:line("")
    file:line("---@class %s", name)
    file:line("local %s = {}", place)
    file:exports(place, module, entries)
  end
  file:line("")
  file:line("return %s", place)
  return file:written()
end

-- A file that is required by itself, and whose exports are those of its module:
-- policy.window has as new what is policy.window.
local function part_file(m, name)
  local place = m.name .. "." .. name
  local found, part = pcall(require, "embedded." .. place)
  local key = found and type(part) == "table" and (part.new and "new" or name)
  if not key or name == "shapes" or type(m.module[name]) ~= "table" and not part[key] then
    return nil
  end
  local file = open_file(place, {})
  local whole = ("require(%q).%s"):format(m.name, name)
  file:line("---@meta %s", place)
  file:line("")
  if type(m.module[name]) == "table" then
    file:line("return %s", whole)
  else
    file:line("return { %s = %s }", key, whole)
  end
  return file:written()
end

-- What scripts find without require: std, arg, and in specs the words.
local function globals_file(modules)
  local file = open_file("globals", {})
  file:line("---@meta globals")
  file:line("")
  file:line("--- The arguments of the script; index 0 is the script itself.")
  file:line("---@type table<integer, string>|{ session?: string }")
  file:line("arg = {}")
  for _, m in ipairs(modules) do
    if m.name == "std" then
      file:line("")
      file:line("---@type std")
      file:line("std = nil")
    elseif m.name == "spec" then
      local words = {}
      m.module.start(words)
      local entries = {}
      for word in pairs(words) do
        entries[word] = m.shapes.api[word]
      end
      file:line("")
      for _, line in ipairs(asserts(entries.assert, function(...) return file:signature(...) end)) do
        file:line("%s", line)
      end
      file:exports("assert", words.assert, entries.assert.members)
      entries.assert = nil
      file:exports("", words, entries)
    end
  end
  return file:written()
end

-- The kinds of schemas that every module shares: T.string is no module's own.
local plain = { prim = true, any = true, integer = true }

local function name_schemas(modules)
  names = {}
  for _, m in ipairs(modules) do
    for name, schema in sorted(m.shapes) do
      local kind = type(schema) == "table" and rawget(schema, "kind")
      if kind and not names[schema] and not plain[kind] then
        names[schema] = rawget(schema, "cats") or m.name .. "." .. name
      end
    end
  end
end

return function(modules, cats)
  luacats = cats
  name_schemas(modules)
  local files = {}
  for _, m in ipairs(modules) do
    files[#files + 1] = module_file(m.name, m.module, m.shapes.api, m.shapes)
    for name, entries in sorted(rawget(m.shapes, "modules") or {}) do
      files[#files + 1] = module_file(name, {}, entries, {})
    end
    for name in sorted(m.shapes.api) do
      files[#files + 1] = part_file(m, name)
    end
  end
  files[#files + 1] = globals_file(modules)
  return files
end
