--- tools.scope: which paths a tool may touch.
--
-- A scope is a root and, when it is narrowed, the files and folders below it.
-- resolve turns a path of a model into one of std.fs, or into a refusal. When
-- the scope is smaller than the project, a link on the way is refused too:
-- std.fs keeps links inside the project, and only that.
--
-- Example:
--
--    local places = scope.new("work", { "src", "go.mod" })
--    local path, refused = places:resolve("src/main.go") --> work/src/main.go

local refusal = require("tools.refusal")
local std = require("std")

---@class scope
---@field root string
---@field paths? string[]
local Scope = {}
Scope.__index = Scope

local M = {}

-- A relative path without . and .., nil when it leads out or is absolute.
local function clean(path)
  if path == "" or path:sub(1, 1) == "/" or path:find("\0", 1, true) then
    return nil
  end
  local joined = std.path.join(path)
  if joined == ".." or joined:sub(1, 3) == "../" then
    return nil
  end
  return joined
end

local function below(path, folder)
  return folder == "." or path == folder or path:sub(1, #folder + 1) == folder .. "/"
end

--- Makes a scope, or answers nil and what is wrong.
---@param root string
---@param paths? string[]
---@return scope?, string?
function M.new(root, paths)
  local top = clean(root)
  if not top then
    return nil, ("root must be a folder below the project root, got %q"):format(root)
  end
  local kept
  for i, path in ipairs(paths or {}) do
    kept = kept or {}
    kept[i] = clean(path)
    if not kept[i] then
      return nil, ("paths[%d] must be a path below the root, got %q"):format(i, path)
    end
  end
  return setmetatable({ root = top, paths = kept }, Scope)
end

local function is_link(path)
  local folder, name = std.path.dirname(path), std.path.basename(path)
  local ok, entries = pcall(std.fs.list, folder)
  for _, entry in ipairs(ok and entries or {}) do
    if entry.name == name then
      return entry.kind == "link"
    end
  end
  return false
end

-- The first part of path that is a link, below the root.
function Scope:link(path)
  local at = self.root
  for part in path:gmatch("[^/]+") do
    at = std.path.join(at, part)
    if is_link(at) then
      return at
    end
  end
end

function Scope:holds(path)
  for _, folder in ipairs(self.paths or { "." }) do
    if below(path, folder) then
      return true
    end
  end
  return false
end

local function no(text, ...)
  return refusal.of("path_not_allowed", text:format(...))
end

--- A path of std.fs as a model knows it: from the root.
---@param path string
---@return string
function Scope:name(path)
  if self.root == "." or path == self.root then
    return path
  end
  return path:sub(#self.root + 2)
end

-- The part of a pattern in front of what is special in it.
local function fixed(pattern)
  local parts = {}
  for part in pattern:gmatch("[^/]+") do
    if part:find("[*?%[\\]") then
      break
    end
    parts[#parts + 1] = part
  end
  return table.concat(parts, "/")
end

--- A glob pattern for std.fs, or nil and the refusal.
---@param pattern string as the model gave it
---@return string?, table?
function Scope:pattern(pattern)
  local local_pattern = clean(pattern)
  if not local_pattern then
    return nil, no("%q leads out of the root: give a pattern below it", pattern)
  end
  local link = (self.paths or self.root ~= ".") and self:link(fixed(local_pattern))
  if link then
    return nil, no("%q is a link, which may lead out of the root", link)
  end
  return std.path.join((self.root:gsub("[*?%[\\]", "\\%0")), local_pattern)
end

--- The paths for std.fs to look through: path, or without one every path there
--- is; nil and the refusal when it is not allowed.
---@param path? string as the model gave it
---@return string[]?, table?
function Scope:all(path)
  if path or not self.paths then
    local at, refused = self:resolve(path or ".")
    return at and { at }, refused
  end
  local all = {}
  for _, each in ipairs(self.paths) do
    local at = self:resolve(each)
    if at and std.fs.exists(at) then
      all[#all + 1] = at
    end
  end
  return all
end

--- The path for std.fs, or nil and the refusal.
---@param path string as the model gave it
---@return string?, table?
function Scope:resolve(path)
  local local_path = clean(path)
  if not local_path then
    return nil, no("%q leads out of the root: give a path below it", path)
  end
  if not self:holds(local_path) then
    local answer = no("%q is not among the paths: %s", path, table.concat(self.paths, ", "))
    answer.paths = self.paths
    return nil, answer
  end
  local narrowed = self.paths or self.root ~= "."
  local link = narrowed and local_path ~= "." and self:link(local_path)
  if link then
    return nil, no("%q is a link, which may lead out of the root", link)
  end
  return std.path.join(self.root, local_path)
end

return M
