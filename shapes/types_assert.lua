-- Writes what a spec may say with assert, for types.lua: assert is a function that
-- answers what it is given, and a table of assertions whose names may be said in
-- many ways. The host runs this chunk in front of types.lua.
--
--    lines = asserts(entry of assert, signature(name, entry))

-- How an assertion may be said besides, by the word that is left of its name
-- without is and has; the others are said as turned says.
local turned = { "not_%s", "is_not_%s" }
local judged = { "is_%s", "not_%s", "is_not_%s" }
local two = { "is_%s", "are_%s", "not_%s", "is_not_%s", "are_not_%s" }
local called = { "was_%s", "not_%s", "was_not_%s" }
local said = {
  equal = two,
  same = two,
  called = called,
  called_with = called,
  error = { "has_%ss", "%s", "%ss", "has_no_%s", "has_no_%ss", "no_%s", "no_%ss" },
  matches = { "match", "does_match", "not_matches", "does_not_match" },
  errors_at_line = {},
  truthy = judged,
  falsy = judged,
  near = judged,
}

-- The words that may stand in front, with a dot.
local before = {
  "is", "are", "was", "has", "have", "does",
  "no", "is_not", "are_not", "was_not", "has_no", "have_no", "does_not",
}

local function field(name, type)
  return ("---@field %s %s"):format(name, type)
end

-- Adds a class whose words lead to the assertions.
local function add_class(lines, class, assertions, signature)
  lines[#lines + 1] = "---@class " .. class
  for _, word in ipairs(before) do
    lines[#lines + 1] = field(word, class)
  end
  local names = {}
  for name in pairs(assertions) do
    names[#names + 1] = name
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local rest, type = name:gsub("^is_", ""):gsub("^has_", ""), signature(name, assertions[name])
    for _, form in ipairs(said[rest] or turned) do
      lines[#lines + 1] = field(form:format(rest), type)
    end
  end
end

local function add(lines, ...)
  for _, line in ipairs({ ... }) do
    lines[#lines + 1] = line
  end
end

return function(entry, signature)
  local lines, of_spy = {}, {}
  for _, name in ipairs({ "called", "called_with" }) do
    local all = entry.members[name]
    of_spy[name] = { args = { unpack(all.args, 2) }, returns = all.returns }
  end
  add_class(lines, "spec.spied", of_spy, signature)
  for _, name in ipairs({ "called", "called_with" }) do
    add(lines, field(name, signature(name, of_spy[name])))
  end
  add(lines, "", "--- Answers v, or raises the message when v is nil or false.",
    "---@generic T", "---@param v? T", "---@param message? any", "---@param ... any",
    "---@return T", "---@return any ...", "function assert(v, message, ...) end", "",
    "--- " .. entry.doc)
  add_class(lines, "spec.assert", entry.members, signature)
  add(lines, field("spy", "fun(spy: spec.spy): spec.spied"),
    field("stub", "fun(spy: spec.spy): spec.spied"), "assert = {}")
  return lines
end
