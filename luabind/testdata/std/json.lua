-- Encoding is canonical.
local json = std.json
assert(json.encode({ b = 1, a = { true, "x" } }) == '{"a":[true,"x"],"b":1}')
assert(json.encode({}) == "{}")
assert(json.encode(json.decode("[]")) == "[]")
assert(json.encode(nil) == "null")
assert(json.encode(2 ^ 53) == "9007199254740992")
assert(json.encode(1e15) == "1000000000000000")
assert(json.encode({ a = { 1 }, b = {} }, { pretty = true }) == '{\n  "a": [\n    1\n  ],\n  "b": {}\n}')
assert(json.encode({ 1 }, { pretty = false }) == "[1]")
---
-- A text that was read is written byte for byte.
local text = '{"big":12345678901234567890,"empty":[],"list":[null,{},null],"small":0.1}'
assert(std.json.encode(std.json.decode(text)) == text)
---
-- null is a value: true in a condition, equal to itself, and it keeps lengths.
local list = std.json.decode("[null, 1, null]")
assert(#list == 3 and list[1] == list[3] and list[1] and list[1] ~= false)
assert(tostring(list[1]) == "null")
---
-- Large integers print, compare and join as their digits.
local v = std.json.decode('{"a":9007199254740993,"b":9007199254740993,"c":9007199254740995}')
assert(tostring(v.a) == "9007199254740993")
assert(v.a == v.b and v.a ~= v.c and v.a < v.c)
assert("id " .. v.a == "id 9007199254740993")
---
local v = std.json.decode("9007199254740993")
local sum = v + 1 --> error: integer 9007199254740993: got arithmetic, which would lose digits
---
local v = std.json.decode("-9007199254740993")
local sum = 2 * v --> error: integer -9007199254740993: got arithmetic
---
local v = std.json.decode("9007199254740993")
local sum = -v --> error: integer 9007199254740993: got arithmetic
---
std.json.encode() --> error: std.json.encode: got no argument, want a value
---
std.json.encode({ items = { 1, { x = print } } }) --> error: std.json.encode: value.items[2].x: got a function, want a JSON value
---
std.json.encode({ n = 0 / 0 }) --> error: value.n: got NaN, want a finite number
---
std.json.encode({ 1, 2, x = 1 }) --> error: value: got key "x" beside a list of 2, want a list or a record
---
std.json.encode({ 1, nil, 3 }) --> error: value: got a list with nothing at 2
---
local t = {}
t.t = t
std.json.encode(t) --> error: value.t: got a table that contains itself, want a tree
---
std.json.encode({}, { prety = true }) --> error: std.json.encode: unknown option "prety" (did you mean "pretty"?)
---
std.json.encode({}, { pretty = 1 }) --> error: std.json.encode: option "pretty": got 1, want true or false
---
std.json.decode(5) --> error: std.json.decode: argument 1 (text): got 5, want a string
---
std.json.decode('{"a":1,"a":2}') --> error: std.json.decode: 1:8: key "a" stands twice in one record
---
std.json.decode('{\n  "a": tru\n}') --> error: std.json.decode: 2:8: got 't', want a JSON value
---
-- What was raised is a value with a kind.
local ok, err = pcall(std.json.decode, "[1")
assert(not ok and err.kind == "validation" and err.method == "std.json.decode")
assert(err.message == "1:3: got the end of the text, want ',' or ']'", err.message)
