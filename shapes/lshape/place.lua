--- lshape.place: whose mistake it is.
--
-- A mistake is raised at the line that made it, however many functions of the
-- checking module lie between. A file belongs to the package whose folder it is
-- in, as it was required (package.places): embedded/policy/window.lua to
-- embedded/policy, policy/mine.lua of a project to another one, and a file of a
-- project beside its copies of what ships to none. A script was not required.
--
--    raise(text)          at the nearest line outside lshape
--    raise_outside(text)  at the nearest line outside the module that holds that
--                         line: who called the module. A script that checks its
--                         own functions is told the line of the call
--
-- Example:
--
--    place.raise("lshape.t: ref expects non-empty string name")

local M = {}

-- The host's table; a script may have put another in its place.
local places = type(package) == "table" and package.places or nil

local function required_as(file)
  local name = type(places) == "table" and rawget(places, file)
  return type(name) == "string" and name or nil
end

-- Whether a module is one that ships with the host.
local function ships(name)
  return (pcall(require, "embedded." .. name))
end

-- The folder of the package of a file, without that of a script: the file less
-- the words of its name behind the first.
local function folder_of(file)
  local name = required_as(file)
  if not name then
    return nil
  end
  local folder = file:gsub("%.lua$", ""):gsub("/init$", "")
  for _ in name:gmatch("%.") do
    folder = folder:match("^(.*)/") or folder
  end
  return folder, name
end

-- The package of a file: its folder, nil for a script and for a file that only
-- stands beside the copies of a package that ships.
local function package_of(file)
  local folder, name = folder_of(file)
  if not folder or folder:find("^embedded/") then
    return folder
  end
  local first = name:match("^[^.]+")
  if first ~= name and ships(first) and not ships(name) then
    return nil
  end
  return folder
end

local own = package_of(debug.getinfo(1).short_src)

-- The lines outside lshape, innermost first: visit(position, package) ends the
-- walk by answering true.
local function each_line(visit)
  local level = 3
  while true do
    local info = debug.getinfo(level)
    if not info then
      return
    end
    if info.what ~= "Go" then
      local home = package_of(info.short_src)
      local position = ("%s:%d: "):format(info.short_src, info.currentline)
      if (home == nil or home ~= own) and visit(position, home) then
        return
      end
    end
    level = level + 1
  end
end

local function nearest()
  local found = ""
  each_line(function(position)
    found = position
    return true
  end)
  return found
end

local function outside()
  local asking, found, asked = nil, "", false
  each_line(function(position, home)
    if not asked then
      asking, found, asked = home, position, true
    elseif home == nil or home ~= asking then
      found = position
      return true
    end
  end)
  return found
end

--- Raises text at the nearest line outside lshape.
---@param text string
function M.raise(text)
  error(nearest() .. text, 0)
end

--- Raises text at the line that called the module that asks.
---@param text string
function M.raise_outside(text)
  error(outside() .. text, 0)
end

return M
