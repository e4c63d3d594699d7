-- std.env: variables of the environment.

local env = std.env

describe("std.env.get", function()
  it("is the value, nil when it is not set", function()
    assert.equal(os.getenv("PATH"), env.get("PATH"))
    assert.is_nil(env.get("KNL_SPEC_IS_NOT_SET"))
    assert.is_nil(env.get(""))
  end)

  it("wants a name", function()
    assert.errors_at_line(function() env.get() end, 0,
      "std.env.get: argument 1 (name): got nil, want a string")
    assert.errors_at_line(function() env.get(5) end, 0, "got 5, want a string")
  end)
end)

describe("std.env.secret", function()
  it("wants the variable to be set", function()
    local raised = assert.errors_at_line(function() env.secret("KNL_SPEC_IS_NOT_SET") end, 0,
      'std.env.secret: "KNL_SPEC_IS_NOT_SET": not set')
    assert.equal("not_found", raised.kind)
    -- It may be the secret itself that stands where its name should.
    for _, name in ipairs{ "sk-0123456789", "a b", "1a", "" } do
      raised = assert.errors_at_line(function() env.secret(name) end, 0,
        ("std.env.secret: got %d bytes that name no variable (not shown), want the name of one")
          :format(#name))
      assert.equal("not_found", raised.kind)
    end
    assert.errors_at_line(function() env.secret() end, 0,
      "std.env.secret: argument 1 (name): got nil, want a string")
  end)

  -- The last case of the file: from here on commands do not see PATH.
  it("is the value, which commands do not get to see any more", function()
    local function seen()
      return std.sh.run({ "/usr/bin/env" }).stdout:find("\nPATH=", 1, true) ~= nil
        or std.sh.run({ "/usr/bin/env" }).stdout:find("^PATH=") ~= nil
    end
    assert.is_true(seen())
    assert.equal(os.getenv("PATH"), env.secret("PATH"))
    assert.is_false(seen())
  end)
end)
