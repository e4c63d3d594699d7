--- lshape.place: whose mistake it is.
--
-- A mistake is raised at the line that made it, however many functions of the
-- checking module lie between. Files are told apart by the module that they
-- were required as (package.places); a script was not required.
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

-- "policy" for a file of policy.window, nil for a script.
local function package_of(file)
  local name = package.places[file]
  return name and name:match("^[^.]+")
end

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
      if home ~= "lshape" and visit(position, home) then
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
