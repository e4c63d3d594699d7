-- Numbers.
assert(math.huge == 1 / 0 and -math.huge == -1 / 0)
assert(math.huge > 1.7976931348623157e308)
assert(tonumber("1e3") == 1000 and tonumber("1E+2") == 100 and tonumber(" -2.5e-1 ") == -0.25)
assert(tonumber("0x10") == 16 and tonumber("-0xff") == -255 and tonumber("0xffffffffffff") == 281474976710655)
assert(tonumber("10", 2) == 2 and tonumber("ff", 16) == 255 and tonumber("zz", 36) == 1295 and tonumber("0x1f", 16) == 31)
assert(tonumber("8", 8) == nil and tonumber("1_0", 10) == nil and tonumber("7.5", 10) == 7.5)
for _, bad in ipairs { "", " ", "1e", "e1", "0x", "0b1", "inf", "nan", "1_000", "1 2", "0x1p4", "--1", "+-1" } do
  assert(tonumber(bad) == nil, bad)
end
assert(tonumber(nil) == nil and tonumber({}) == nil and tonumber(5) == 5 and tonumber("010") == 10)
assert(tostring(math.huge) == "inf" and tostring(-math.huge) == "-inf" and tostring(0 / 0) == "nan" or tostring(0 / 0) == "-nan")
assert(tostring(1e15) == "1000000000000000" and tostring(0.1) == "0.1" and tostring(-0) == "0")
---
tonumber("1", 99) --> error: tonumber: argument 2 (base): got 99, want a whole number from 2 to 36
---
-- string.format.
local f = string.format
assert(f("%d %5d|%-5d|%05d|%+d", 3, 4, 5, 6, 7) == "3     4|5    |00006|+7")
assert(f("%x %X %#x %o", 255, 255, 255, 8) == "ff FF 0xff 10")
assert(f("%g %g %g %g", 0.1, 1e20, 100, 1e15) == "0.1 1e+20 100 1e+15")
assert(f("%.3f %.0f %e %10.2f|", 3.14159, 3.7, 12345.678, 2.5) == "3.142 4 1.234568e+04       2.50|")
assert(f("%s %s %s %10s|%-4s|%.2s", nil, true, 1.5, "r", "l", "cut") == "nil true 1.5          r|l   |cu")
assert(f("%q", 'a "b"\n\\c\0') == '"a \\"b\\"\\\n\\\\c\\000"')
assert(f("%c%c", 76, 117) == "Lu" and f("100%%") == "100%" and f("%d", "12") == "12")
assert(f("%s", setmetatable({}, { __tostring = function() return "mine" end })) == "mine")
assert(f("%g %f", math.huge, -math.huge) == "inf -inf")
assert(f("%5.1f|", 1 / 3) == "  0.3|" and f("%i", -3) == "-3" and f("%d", 2 ^ 53) == "9007199254740992")
---
string.format("%d", 3.7) --> error: string.format: argument 2: got 3.7, want a whole number for '%d'
---
string.format("%d") --> error: string.format: argument 2: got nothing, want a value for '%d'
---
string.format("%y", 1) --> error: string.format: unknown directive '%y'
---
string.format("%500d", 1) --> error: width and precision have at most two digits
---
string.format("%d", "x") --> error: string.format: argument 2: got "x", want a number for '%d'
---
-- \x41 is no escape of Lua 5.1: the backslash is dropped.
assert("\x41" == "x41" and "\65" == "A")
---
-- find and match.
assert(("hello world"):find("wor") == 7)
local s, e, c = ("key = value"):find("(%w+) =")
assert(s == 1 and e == 5 and c == "key")
assert(("a.b"):find(".", 1, true) == 2 and ("a.b"):find("%.") == 2)
assert(("abc"):find("", 10) == nil and ("abc"):find("", 4) == 4 and ("abc"):find("b", -1) == nil)
assert(("2024-05-06"):match("(%d+)-(%d+)-(%d+)") == "2024")
assert(select("#", ("2024-05-06"):match("(%d+)-(%d+)-(%d+)")) == 3)
assert(("  trim  "):match("^%s*(.-)%s*$") == "trim")
assert(("f(a(b)c)d"):match("%b()") == "(a(b)c)")
assert(("THE (quick) fox"):find("%((%a+)%)") == 5)
assert(("hello"):match("()ll()") == 3)
assert(("say 'hi' and \"yo\""):match("(['\"])(.-)%1") == "'")
assert(("THE fox"):gsub("%f[%a]%a+", string.lower) == "the fox")
assert(("x^2"):match("[%^]") == "^" and ("a-b"):match("[a%-]+") == "a-" and ("]"):match("[]]") == "]")
assert(("abc"):match("[^%s]+") == "abc" and ("a]b"):match("[^]]") == "a")
assert(("\0a"):match("%z") == "\0" and ("\0a"):find("a") == 2)
assert(("aaa"):match("a-$") == "aaa" and ("aab"):match("^a*") == "aa" and ("b"):match("a?b") == "b")
assert(("x"):match("nothing") == nil and ("k=v"):match("(%w)=(%w)(%w?)") == "k")
assert(("äöü"):upper() == "äöü" and ("aB"):upper() == "AB" and ("aB"):lower() == "ab")
---
-- gmatch and gsub.
local words = {}
for w in ("one two  three"):gmatch("%a+") do words[#words + 1] = w end
assert(table.concat(words, ",") == "one,two,three")
local pairs_ = {}
for k, v in ("a=1, b=2"):gmatch("(%w+)=(%w+)") do pairs_[k] = v end
assert(pairs_.a == "1" and pairs_.b == "2")
assert(select(2, ("abc"):gsub("", "-")) == 4 and ("abc"):gsub("", "-") == "-a-b-c-")
assert(("hello world"):gsub("o", "0", 1) == "hell0 world")
assert(("abc"):gsub("%w", "%0%0") == "aabbcc" and ("k v"):gsub("(%w) (%w)", "%2 %1") == "v k")
assert(("$name is $x"):gsub("%$(%w+)", { name = "Lua", x = false }) == "Lua is $x")
assert(("abc"):gsub("b", function() return nil end) == "abc" and ("5%"):gsub("%%", "%%%%") == "5%%")
assert(("aaa"):gsub("^a", "b") == "baa" and ("abc"):gsub(".", { a = 1 }) == "1bc")
local n = 0
for _ in (""):gmatch(".*") do n = n + 1 end
assert(n == 1)
---
("x"):match("[a") --> error: string.match: malformed pattern (missing ']')
---
("x"):match("%") --> error: string.match: malformed pattern (ends with '%')
---
("x"):match("(x") --> error: string.match: malformed pattern ('(' is not closed)
---
("x"):match("x)") --> error: string.match: malformed pattern (')' without '(')
---
("x"):gsub("x", "%2") --> error: string.gsub: capture %2 does not exist
---
("x"):gsub("x", function() return {} end) --> error: string.gsub: the replacement is a table, want a string, number, false or nil
---
-- rep, byte, unpack, concat.
assert(("ab"):rep(3) == "ababab" and ("x"):rep(0) == "" and ("x"):rep(-1) == "" and ("a"):rep(3, ",") == "a,a,a")
assert((""):rep(1e9) == "" and ("abc"):byte(-1) == 99 and select("#", ("abc"):byte(1, -1)) == 3 and ("abc"):byte(10) == nil)
assert(select("#", unpack({}, 1, 3)) == 3 and select("#", unpack({ 1, nil, 3 }, 1, 3)) == 3)
local big = {}
for i = 1, 50000 do big[i] = i end
assert(select("#", unpack(big)) == 50000 and math.max(unpack(big)) == 50000)
assert(table.concat({ 1, 2, "x" }, "-") == "1-2-x" and table.concat({}) == "" and table.concat({ 1, 2, 3 }, ",", 2, 3) == "2,3")
---
table.concat({ 1, {}, 3 }) --> error: table.concat: element 2: got a table, want a string or a number
---
unpack({}, 1, 1e8) --> error: unpack: too many results (100000000)
---
-- load and loadstring.
assert(loadstring("return 1 + 1")() == 2 and load("return ...")(5) == 5)
local parts = { "return ", "7" }
assert(load(function() return table.remove(parts, 1) end)() == 7)
local f, e = loadstring("x =", "=chunk")
assert(f == nil and e:find("^chunk:1: unexpected end of file"), e)
local f, e = loadstring("local x = = 1", "=chunk")
assert(f == nil and e:find('^chunk:1: unexpected "="'), e)
---
-- What reaches past the host is not there.
for name in pairs(io) do assert(name == "write", name) end
for _, name in ipairs { "dofile", "loadfile", "module", "newproxy", "_printregs" } do
  assert(_G[name] == nil, name)
end
for _, name in ipairs { "execute", "remove", "rename", "setenv", "tmpname", "setlocale" } do
  assert(os[name] == nil, name)
end
local exited, why = pcall(os.exit, 1)
assert(not exited and why:find("return from the script", 1, true), why)
assert(package.loadlib == nil and string.dump == nil)
assert(os.time() > 1e9 and os.clock() >= 0 and os.date("!%Y-%m-%d %H:%M:%S", 0) == "1970-01-01 00:00:00")
local d = os.date("!*t", 86400)
assert(d.year == 1970 and d.month == 1 and d.day == 2 and d.yday == 2 and d.wday == 6)
assert(os.date("!%a %A %b %B %j", 0) == "Thu Thursday Jan January 001")
assert(os.time { year = 2024, month = 1, day = 1, hour = 0 } < os.time { year = 2024, month = 1, day = 2, hour = 0 })
---
os.date("%Q") --> error: os.date: unknown directive '%Q'
---
os.time { year = 2024.5, month = 1, day = 1 } --> error: os.time: field "year": got 2024.5, want a whole number
---
-- math.random.
math.randomseed(7)
local a, b = math.random(1000), math.random()
math.randomseed(7)
assert(math.random(1000) == a and math.random() == b)
for _ = 1, 100 do local r = math.random(3, 5); assert(r >= 3 and r <= 5) end
---
math.random(0) --> error: math.random: the interval from 1 to 0 is empty
---
-- goto is there.
for i = 1, 3 do
  if i == 2 then goto continue end
  assert(i ~= 2)
  ::continue::
end
