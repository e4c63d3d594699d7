-- Whose mistake it is: the line that an error of lshape, and of the modules that
-- ship with it, is raised at.

local T = require("lshape.t")
local policy = require("policy")

-- Runs source as the file of a module that was required as name.
local function module_at(file, name, source)
  package.places[file] = name
  return assert(load(source, "=" .. file))()
end

local calls_window = [[
  local policy = require("policy")
  return function()
    local fold = policy.window({ tial = 3 })
    return fold
  end]]

local asks_options = [[
  local options = require("lshape.options")
  return function(opts, shape)
    local checked = options.check("policy.window", opts, shape)
    return checked
  end]]

local SHAPE = T.shape({ tail = T.integer }, { open = false })

describe("lshape a module of a project", function()
  it("is to blame for its own calls, though its name begins as a shipped one's", function()
    for _, file in ipairs{ "policy/mine.lua", "lua/policy/mine.lua", "lshape/mine.lua" } do
      local name = file:match("(%w+/mine).lua$"):gsub("/", ".")
      local bad = module_at(file, name, calls_window)
      local raised = assert.has_error(function() bad() end)
      assert.matches("^" .. file .. ":3: policy.window: unknown option 'tial'", raised)
    end
  end)

  it("is to blame beside copies of what ships", function()
    local copy = module_at("lua/policy/window.lua", "policy.window", asks_options)
    local mine = module_at("lua/policy/mine.lua", "policy.mine", [[
      return function(copy, shape)
        local opts = copy({ tial = 3 }, shape)
        return opts
      end]])
    local raised = assert.has_error(function() mine(copy, SHAPE) end)
    assert.matches("^lua/policy/mine.lua:2: policy.window: unknown option 'tial'", raised)
  end)

  it("is passed over when it is such a copy", function()
    local copy = module_at("lua/policy/window.lua", "policy.window", asks_options)
    local init = module_at("lua/policy/init.lua", "policy", [[
      return function(copy, opts, shape)
        local checked = copy(opts, shape)
        return checked
      end]])
    assert.errors_at_line(function()
      init(copy, { tial = 3 }, SHAPE)
    end, 1, "policy.window: unknown option 'tial'")
  end)
end)

describe("lshape when a script has changed package.places", function()
  local places = package.places
  after_each(function() package.places = places end)

  it("names the same line", function()
    for _, changed in ipairs{ false, 5, {} } do
      package.places = changed or nil
      assert.errors_at_line(function() local _ = policy.window({ tial = 3 }) end, 0,
        "policy.window: unknown option 'tial'")
      assert.errors_at_line(function() T.ref("") end, 0, "lshape.t: ref expects")
    end
  end)

  it("takes what is no name for a script's", function()
    package.places["odd.lua"] = 5
    local bad = assert(load(calls_window, "=odd.lua"))()
    local raised = assert.has_error(function() bad() end)
    assert.matches("^odd.lua:3: policy.window: unknown option 'tial'", raised)
    package.places["odd.lua"] = nil
  end)
end)
