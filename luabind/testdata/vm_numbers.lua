-- Numerals are decimal, or hexadecimal after 0x.
assert(0010 == 10 and 00 == 0 and 08.5 == 8.5 and 0x10 == 16 and .5 == 0.5 and 5. == 5)
assert(1e3 == 1000 and 1E+2 == 100 and 25e-1 == 2.5 and 1e999 == math.huge)
for _, source in ipairs{ "1e", "1e+", "1.5e-", "1ee5", "1.2.3" } do
  local f, why = loadstring("return " .. source)
  assert(f == nil and (why:find("malformed number", 1, true) or why:find("unexpected", 1, true)), why)
end
assert(select(2, loadstring("local a\nreturn 1e ", "=c")) == 'c:2: malformed number near "1e"')
---
-- A text that holds a number is that number, in arithmetic and for the libraries.
assert("010" + 1 == 11 and 1 + "064" == 65 and "0x10" * 2 == 32 and -"0644" == -644 and -"0x1F" == -31)
assert(" 7 " % 4 == 3 and "-7" % "3" == 2 and 2 ^ "3" == 8 and "10" / "4" == 2.5 and "5" - "7" == -2)
assert(math.floor("010") == 10 and math.max("3", 20, "0100") == 100 and ("x"):rep("3") == "xxx")
assert(("hello"):sub("2", "3") == "el" and string.char("65") == "A" and ("aXbX"):gsub("X", "y", "1") == "aybX")
assert(table.concat({ 1, 2, 3 }, ",", "2") == "2,3" and select("#", unpack({ 1, 2, 3 }, "2")) == 2)
local t = { 1, 2, 3 }
table.insert(t, "1", 0)
assert(t[1] == 0 and #t == 4 and table.remove(t, "1") == 0)
table.insert(t, "4")
assert(t[4] == "4")
for _, text in ipairs{ "1_000", "0b11", "0o17", "inf", "nan", "", " ", "1 2", "x" } do
  assert(not pcall(function() return text + 1 end), text)
  assert(not pcall(function() return 1 + text end), text)
  assert(not pcall(function() return -text end), text)
  assert(not pcall(math.floor, text), text)
end
---
-- What is no number is said so, at its line.
local _, why = pcall(function()
  return "abc" + 1
end)
assert(why:find(":30: attempt to perform arithmetic on a string value", 1, true), why)
_, why = pcall(function() return ("x"):rep("q") end)
assert(why:find('string.rep: argument 2: got "q", want a number', 1, true), why)
---
-- An operand with an operator of its own is asked, whichever side the text is on.
local m = setmetatable({}, {
  __add = function(a, b) return type(a) .. "+" .. type(b) end,
  __unm = function() return "minus" end,
  __mod = function() end,
})
assert("5" + m == "string+table" and m + "5" == "table+string" and "x" + m == "string+table" and -m == "minus")
assert("5" % m == nil and not pcall(function() return "5" - m end))
local raised = setmetatable({}, { __add = function() error({ code = 7 }) end })
local ok, e = pcall(function() return "5" + raised end)
assert(not ok and e.code == 7)
---
-- nil stands for an optional argument that is not there.
local t = { 3, 1, 2 }
table.sort(t, nil)
assert(t[1] == 1 and t[3] == 3 and table.remove(t, nil) == 3)
local ok, why = pcall(error, "the message", nil)
assert(not ok and why:find("the message", 1, true))
