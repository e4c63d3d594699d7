-- Tries again when a call fails in a way that passes: it waits as long as the
-- provider asks for, else twice as long each time. A wait that would end past the
-- run's deadline is not begun.
--
-- Use it around every beat of a loop that nobody watches.
--
--    knl run examples/backoff.lua
local knl, policy, ports = require("knl"), require("policy"), require("ports")

local port = ports.default(ports.script{
  { fail = { kind = "overloaded" } },
  { fail = { kind = "rate_limited", retry_after = 0.2 } },
  { text = "Here I am." },
})

local retry = policy.retry{ max = 6 }
local until_s = std.time.monotonic() + 3600

-- One beat and its attempts. Each attempt is a beat of its own in the log.
local function beat(s, device, base)
  local attempt, waited = 0, 0
  while true do
    local o = knl.beat(s, device)
    attempt = attempt + 1
    local again, delay = retry(o, attempt)
    if not again then return o, attempt, waited end
    delay = delay or base * 2 ^ (attempt - 1)
    if std.time.monotonic() + delay > until_s then
      return knl.Outcome.stopped("deadline", o.detail.message), attempt, waited
    end
    std.log.warn(o.detail.message, { attempt = attempt, wait_seconds = delay })
    std.time.sleep(delay)
    waited = waited + delay
  end
end

return knl.session({ session = arg.session, budget = { amount = 20 } }, function(s)
  if #s:scan{ kinds = { "msg_user" } } == 0 then
    s:append{ kind = "msg_user", data = { content = "Are you there?" } }
  end
  local o, attempts, waited = beat(s, knl.device{ llm = port:open() }, 0.05)
  if o.status ~= "ok" then return o end
  for _, block in ipairs(o.out.content) do -- a model that thinks says that first
    if block.type == "text" then print(block.text) end
  end
  return { ok = true, attempts = attempts, waited = waited }
end)
