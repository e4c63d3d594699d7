--- tools.scope: which paths a tool may touch.
--
-- A scope is a root and, when it is narrowed, the files and folders below it.
-- resolve turns a path of a model into one of files, or into a refusal. files is
-- what std.fs has below the root: when the scope is smaller than the project it
-- follows no link, so that a path leads where it is spelled to lead.
--
-- Example:
--
--    local places = scope.new("work", { "src", "go.mod" })
--    local path, refused = places:resolve("src/./main.go") --> src/main.go
--    local text = places.files:read(path)

local refusal = require("tools.refusal")
local std = require("std")

---@class scope
---@field files std.folder
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
  local files = std.fs.folder(top, { links = top == "." and not kept })
  return setmetatable({ files = files, paths = kept }, Scope)
end

--- Whether a path lies at or below one of the paths.
---@param path string from the root, clean
---@return boolean
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

--- A glob pattern for files, or nil and the refusal.
---@param pattern string as the model gave it
---@return string?, table?
function Scope:pattern(pattern)
  local local_pattern = clean(pattern)
  if not local_pattern then
    return nil, no("%q leads out of the root: give a pattern below it", pattern)
  end
  return local_pattern
end

--- The paths of files to look through: path, or without one every path there
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
    if self.files:exists(each) then
      all[#all + 1] = each
    end
  end
  return all
end

--- The path for files, or nil and the refusal.
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
  return local_path
end

return M
