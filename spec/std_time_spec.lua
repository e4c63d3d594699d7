-- std.time: clocks and waiting, in seconds.

local time = std.time

describe("std.time.now", function()
  it("is seconds since 1970", function()
    assert.near(os.time(), time.now(), 5)
    assert.is_true(time.now() > 1.7e9)
  end)
end)

describe("std.time.monotonic", function()
  it("never goes back", function()
    local a = time.monotonic()
    time.sleep(0.001)
    assert.is_true(a >= 0)
    assert.is_true(time.monotonic() >= a + 0.001)
  end)
end)

describe("std.time.sleep", function()
  it("takes fractions and nothing at all", function()
    time.sleep(0.001)
    time.sleep(0)
    assert.equal(0, select("#", time.sleep(0)))
  end)

  it("lets other tasks run, and ends when its task is cancelled", function()
    local h = std.task.spawn(function() time.sleep(3600) end)
    time.sleep(0.001)
    h:cancel()
    assert.has_error(function() h:join() end, "task cancelled")
  end)

  it("wants seconds, not below zero", function()
    assert.errors_at_line(function() time.sleep(-1) end, 0,
      "std.time.sleep: argument 1 (seconds): got -1, want seconds, 0 or more")
    assert.errors_at_line(function() time.sleep() end, 0, "got nil, want seconds")
    assert.errors_at_line(function() time.sleep("1") end, 0, 'got "1", want seconds')
    assert.errors_at_line(function() time.sleep(0 / 0) end, 0, "want seconds")
    assert.errors_at_line(function() time.sleep(math.huge) end, 0, "want seconds")
  end)
end)
