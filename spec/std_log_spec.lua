-- std.log: lines for whoever looks after the run. Where they go, and their
-- form, is the host's; a script cannot read them back.

for _, level in ipairs{ "debug", "info", "warn", "error" } do
  local log = std.log[level]
  local place = "std.log." .. level

  describe(place, function()
    it("takes a message and fields, and answers nothing", function()
      assert.equal(0, select("#", log("a line of a spec")))
      assert.equal(0, select("#", log("a line\nof a spec", { n = 1, list = { true } })))
      log("", nil)
    end)

    it("wants a text and a table that JSON can say", function()
      assert.errors_at_line(function() log() end, 0,
        place .. ": argument 1 (message): got nil, want a string")
      assert.errors_at_line(function() log({ "x" }) end, 0, "got a table, want a string")
      assert.errors_at_line(function() log("x", "y") end, 0,
        place .. ': argument 2 (fields): got "y", want a table')
      assert.errors_at_line(function() log("x", { f = print }) end, 0,
        place .. ": fields.f: got a function, want a JSON value")
      assert.errors_at_line(function() log("x", { n = 0 / 0 }) end, 0, "fields.n: got NaN")
    end)
  end)
end
