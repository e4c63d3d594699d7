--- policy.carry: a word to the model on what failed in the beat before.
--
-- carry{ … }(session) is a filter. When a model call of the last beat failed, or
-- a tool call of it that failed(pair) names, one note of at most max_bytes bytes
-- stands in the request: in front of the first message, or with at = "tail"
-- behind the last complete pair, which leaves the provider's prompt cache warm.
-- Otherwise the very same request goes on. A reply that was cut or refused is a
-- reply and no failure. The note is never recorded as something that was said.
-- policy.window{ fit } counts it with; a fold of your own keeps max_bytes / 3 tokens
-- free for it.
--
-- pair is { beat, call_id?, name?, input?, result, ok }; name and input are
-- missing when the log has no call. Where the provider wants roles to take turns,
-- the port joins the note with its neighbour.
--
-- Example:
--
--    local device = knl.device{
--      llm = llm, tools = tools,
--      filters = { policy.carry{ at = "tail" }(session) },
--    }

local canonical = require("policy.canonical")
local knl = require("knl")
local log = require("policy.log")
local options = require("lshape.options")
local shapes = require("policy.shapes")
local T = require("lshape").t

local PLACE = "policy.carry"
local MAX_BYTES = 512
local HEAD = "The previous beat did not complete. "
local CUT = "..."

local M = {}

M.shapes = {
  carry_opts = T.shape({
    max_bytes = T.integer:min(1):describe("bytes of the note at most (default 512)"):is_optional(),
    failed = options.callable
      :describe("whether a pair counts as failed (default: ok is false)"):is_optional(),
    at = T.one_of{ "head", "tail" }:describe("where the note stands (default head)"):is_optional(),
  }, { open = false }),
}

M.api = {
  doc = "Makes a binder of filters that tell the model what failed in the beat before.",
  args = { { M.shapes.carry_opts, "what to tell, and where", name = "opts", optional = true } },
  returns = "fun(session: knl.session): fun(request: knl.request): knl.request",
  members = {
    bind = {
      doc = "Binds the filter to the session that it reads.",
      args = { { shapes.session, "the session", name = "session" } },
      returns = "fun(request: knl.request): knl.request",
    },
    filter = {
      doc = "Answers the request, or one with a note more.",
      args = { { shapes.request, "the request", name = "request" } },
      returns = shapes.request,
    },
    failed = {
      doc = "Says whether a tool call counts as failed; yours to give.",
      args = { { shapes.tool_pair, "a call with its result", name = "pair" } },
      returns = T.boolean:is_optional(),
    },
  },
}

local function flagged(pair)
  return pair.ok == false
end

local function says(failed, pair)
  local verdict = failed(pair)
  if verdict ~= nil and type(verdict) ~= "boolean" then
    options.fail(PLACE, "failed must answer true or false, got %s", type(verdict))
  end
  return verdict
end

local function of_call(event)
  local data = log.data(event)
  local kind = type(data.kind) == "string" and (" (%s)"):format(data.kind) or ""
  local why = type(data.error) == "string" and data.error or canonical.render(data.error)
  return ("the model call failed%s: %s"):format(kind, why)
end

local function of_pair(pair)
  local tool = pair.name and ("tool %s"):format(pair.name) or "a tool call"
  local why = type(pair.result) == "string" and pair.result or canonical.render(pair.result)
  return ("%s failed: %s"):format(tool, why)
end

-- What failed in a beat, as text.
local function reasons(record, failed)
  local out = {}
  for _, event in ipairs(log.of_kind(record, "llm_call_failed")) do
    out[#out + 1] = of_call(event)
  end
  for _, pair in ipairs(log.pairs(record)) do
    if pair.ok ~= nil and says(failed, pair) then
      out[#out + 1] = of_pair(pair)
    end
  end
  return out
end

-- The first n bytes of text at most, without a part of a character.
local function prefix(text, n)
  while n > 0 and (text:byte(n + 1) or 0) >= 0x80 and text:byte(n + 1) < 0xC0 do
    n = n - 1
  end
  return text:sub(1, n)
end

local function cut(text, max)
  if #text <= max then
    return text
  elseif max < #CUT then
    return prefix(text, max)
  end
  return prefix(text, max - #CUT) .. CUT
end

local function answers_calls(message)
  for _, block in ipairs(type(message.content) == "table" and message.content or {}) do
    if type(block) == "table" and block.type == "tool_result" then
      return true
    end
  end
end

-- How many messages stand in front of the note.
local function place(messages, at)
  if at == "head" then
    return 0
  end
  for i = #messages, 1, -1 do
    if answers_calls(messages[i]) then
      return i
    end
  end
  return #messages
end

-- A request with a message more; the one that is given stays as it is.
local function with_note(request, note, at)
  local own = {}
  for key, value in pairs(request) do
    own[key] = value
  end
  own.messages = knl.array()
  for i, message in ipairs(request.messages) do
    own.messages[i] = message
  end
  table.insert(own.messages, place(own.messages, at) + 1, { role = "user", content = note })
  return own
end

---@class policy.carry.opts
---@field max_bytes? integer bytes of the note at most (default 512)
---@field failed? fun(pair: table): boolean? whether a pair counts as failed
---@field at? "head"|"tail" where the note stands (default head)

--- Makes a binder of filters that tell the model what failed in the beat before.
---@param opts? policy.carry.opts
---@return fun(session: session): fun(request: table): table
function M.new(opts)
  opts = shapes.check_opts(PLACE, opts == nil and {} or opts, M.shapes.carry_opts, {
    hints = shapes.hints("the session is an argument: policy.carry{ … }(session)"),
    opts = "{ max_bytes?, failed?, at? }",
  })
  local max, failed, at = opts.max_bytes or MAX_BYTES, opts.failed or flagged, opts.at or "head"
  return function(session)
    log.check_session(PLACE, session)
    return function(request)
      local record = log.last(PLACE, session, 1)[1]
      local why = record and reasons(record, failed) or {}
      if #why == 0 then
        return request
      end
      return with_note(request, cut(HEAD .. table.concat(why, "; "), max), at)
    end
  end
end

return M
