--- policy.result_cap: no result larger than the model has room for.
--
-- Stands around the handlers of a device's tools. A result is measured as the
-- model will read it, by the port, against a part of what a request may take.
-- Within the limit it passes untouched, a refusal of the tool's own included;
-- over it the model reads this in its place, and asks for less:
--
--    { ok = false, reason = "result_too_large", tokens, limit, error, kept? }
--
-- A room with beat_share also caps the results of one beat together: a call may
-- take what the results recorded in its beat have left, shared with the calls
-- that run beside it.
--
-- keep = true records the whole text as an event result_kept{ call_id, text }
-- of the beat, once by content hash when it is 4 KiB or more, and kept = { seq,
-- bytes } in the answer names it. Reading it is a tool of yours, below.
--
-- It shortens nothing by itself, and what cannot be recorded at all (a function,
-- NaN) is left to the kernel, which names it.
--
-- Example:
--
--    my_tools.read_kept = {
--      description = "Reads bytes from … to of a result that was too large, by its kept.seq.",
--      effects = "read",
--      handler = function(args, ctx)
--        local kept = { kinds = { "result_kept" }, from = args.seq, to = args.seq }
--        return ctx.session:scan(kept)[1].data.text:sub(args.from, args.to)
--      end,
--    }
--    local tools = policy.result_cap{ room = room, keep = true }(my_tools)

local knl = require("knl")
local log = require("policy.log")
local options = require("lshape.options")
local shapes = require("policy.shapes")
local space = require("policy.space")
local std = require("std")
local T = require("lshape").t
local toolset = require("policy.toolset")

local PLACE = "policy.result_cap"

local M = {}

M.shapes = {
  result_cap_opts = T.shape({
    port = space.fields.port,
    conf = space.fields.conf,
    reserve = space.fields.reserve,
    room = space.fields.room,
    share = T.number:describe("what part of a request one result may take (0.25)"):is_optional(),
    keep = T.boolean:describe("record what was too large"):is_optional(),
  }, { open = false }),
}

M.api = {
  doc = "Caps the results of tools by the room that the model has.",
  args = { { M.shapes.result_cap_opts, "by what", name = "opts" } },
  returns = T.fn,
  members = {
    bind = {
      doc = "Answers the tools with their results capped.",
      args = { { T.table, "name to entry", name = "tools" } },
      returns = T.table,
    },
  },
}

-- What the model will read as the result: text, or a list of content blocks.
local function rendered(result)
  local call = { type = "tool_use", id = "1", name = "t", input = {} }
  local request = knl.fold{
    { kind = "llm_response", beat = "1", data = { content = { call } } },
    { kind = "tool_result", beat = "1", data = { call_id = "1", ok = true, result = result } },
  }
  return request.messages[2].content[1].content
end

local function request_of(results)
  local messages = {}
  for i, content in ipairs(results) do
    messages[i] = { role = "user", content = content }
  end
  return { messages = messages }
end

-- The results recorded in the open beat, and how many calls of it have none.
local function recorded(ctx)
  local beat = log.beat(PLACE, ctx.session, ctx.beat)
  local results, open = {}, 0
  for _, pair in ipairs(beat and log.pairs(beat) or {}) do
    if pair.ok == nil then
      open = open + 1
    else
      results[#results + 1] = rendered(pair.result)
    end
  end
  return results, open
end

-- Tokens that the result of the call may take.
local function limit_of(settings, ctx)
  local limits = settings.room:limits()
  local limit = limits.result
  if not (limits.beat and ctx and ctx.session) then
    return limit
  end
  local results, open = recorded(ctx)
  local used = #results > 0 and settings.room:count(request_of(results)) or 0
  local left = math.max(0, limits.beat - used)
  return math.min(limit, math.floor(left / math.max(1, open)))
end

-- Records the text of a result and answers what names it.
local function keep(content, ctx)
  if not (ctx and ctx.session) then
    options.fail(PLACE, "keep needs the ctx that a beat hands to a handler, got none")
  end
  local text = type(content) == "string" and content or std.json.encode(content)
  local data = { call_id = ctx.call_id, text = text }
  local seq = ctx.session:append{ kind = "result_kept", beat = ctx.beat, data = data }
  return { seq = seq, bytes = #text }
end

local function refusal(settings, content, tokens, limit, ctx)
  local kept = settings.keep and keep(content, ctx) or nil
  local said = ("the result takes %d tokens and the limit is %d: ask for less, "
    .. "a part of it or a narrower question"):format(tokens, limit)
  if kept then
    said = said .. (", or read it where it was kept (seq %d)"):format(kept.seq)
  end
  return {
    ok = false,
    reason = "result_too_large",
    tokens = tokens,
    limit = limit,
    error = said,
    kept = kept,
  }
end

local function capped(settings, handler)
  return function(args, ctx)
    local result = handler(args, ctx)
    if result == nil then
      return ""
    end
    local readable, content = pcall(rendered, result)
    if not readable then
      return result
    end
    local tokens, limit = settings.room:count(request_of{ content }), limit_of(settings, ctx)
    if tokens <= limit then
      return result
    end
    return refusal(settings, content, tokens, limit, ctx)
  end
end

local function room_of(opts)
  if opts.room ~= nil and opts.share ~= nil then
    options.fail(PLACE, "room and share both given, want one: a room has its own result_share")
  end
  space.check_share(PLACE, "share", opts.share)
  return space.given(PLACE, {
    room = opts.room,
    port = opts.port,
    conf = opts.conf,
    reserve = opts.reserve,
    result_share = opts.share,
  })
end

---@class policy.result_cap.opts
---@field port? port
---@field conf? table
---@field reserve? integer tokens kept free for the reply, when that is more than max_output
---@field room? room in place of port, conf, reserve and share
---@field share? number what part of a request one result may take (default 0.25)
---@field keep? boolean record what was too large

--- Makes the function that caps tools.
---@param opts policy.result_cap.opts
---@return fun(tools: table<string, tool>): table<string, tool>
function M.new(opts)
  shapes.check_opts(PLACE, opts, M.shapes.result_cap_opts, {
    hints = shapes.hints("the session is in the ctx of a handler"),
    opts = "{ port, conf?, reserve?, share?, keep? } or { room, keep? }",
  })
  local settings = { room = room_of(opts), keep = opts.keep }
  return function(tools)
    return toolset.wrap(PLACE, tools, function(entry)
      return capped(settings, entry.handler)
    end)
  end
end

return M
