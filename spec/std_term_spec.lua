-- std.term: the human at the terminal. A spec has none.

local term = std.term

describe("std.term.ask", function()
  it("raises when there is no terminal", function()
    local raised = assert.errors_at_line(function() term.ask("go on? ") end, 0,
      "std.term.ask: there is no terminal to ask at")
    assert.equal("unsupported", raised.kind)
  end)

  it("wants a prompt and a timeout above 0", function()
    assert.errors_at_line(function() term.ask() end, 0,
      "std.term.ask: argument 1 (prompt): got nil, want a string")
    assert.errors_at_line(function() term.ask("?", { timeout = 0 }) end, 0,
      'std.term.ask: option "timeout": got 0, want seconds above 0')
    assert.errors_at_line(function() term.ask("?", { timout = 1 }) end, 0,
      'unknown option "timout" (did you mean "timeout"?)')
  end)
end)
