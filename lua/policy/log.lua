--- policy.log: what policies read of a session.
--
-- Reads of the last beats, in O(what is read). Logs are taken as they are: a
-- beat that was cut short, events of two drivers between each other, data that a
-- caller appended by hand. A read that the kernel refuses raises.
--
--    pair = { beat, call_id?, name?, input?, result?, ok? }
--
-- is a tool call with its result, both of one beat. name and input are missing
-- when the log has only the result, result and ok when it has only the call.
--
-- Example:
--
--    for _, pair in ipairs(log.pairs(log.last("policy.carry", session, 1)[1])) do
--      print(pair.name, pair.ok)
--    end

local options = require("lshape.options")

local M = {}

-- Whether v can be asked for beats as a session can.
local function reads_beats(v)
  local ok, method = pcall(function()
    return v.beats
  end)
  return ok and options.is_callable(method)
end

--- Raises unless session is one.
---@param place string the function that was handed it, as the script calls it
---@param session any
function M.check_session(place, session)
  if not reads_beats(session) then
    options.fail(place, "session must be a session, got %s", type(session))
  end
end

--- The last beats of a session, oldest first.
---@param place string the function that reads
---@param session session
---@param n integer at least 1
---@return { id: string, events: event[] }[]
function M.last(place, session, n)
  M.check_session(place, session)
  return session:beats{ last = n }
end

--- The data of an event, {} when it has none.
---@param event event
---@return table
function M.data(event)
  return type(event.data) == "table" and event.data or {}
end

--- The events of a beat that have this kind, in log order.
---@param record { id: string, events: event[] }
---@param kind string
---@return event[]
function M.of_kind(record, kind)
  local found = {}
  for _, event in ipairs(record.events) do
    if event.kind == kind then
      found[#found + 1] = event
    end
  end
  return found
end

--- The text of a message's content: the text itself, or that of its blocks.
---@param content any
---@return string
function M.text(content)
  if type(content) == "string" then
    return content
  end
  local parts = {}
  for _, block in ipairs(type(content) == "table" and content or {}) do
    if type(block) == "table" and block.type == "text" and type(block.text) == "string" then
      parts[#parts + 1] = block.text
    end
  end
  return table.concat(parts, "\n")
end

--- The text of a summary event, "" when it says nothing: data.text, or the text
--- of data.content.
---@param event event
---@return string
function M.summary(event)
  local data = M.data(event)
  local text = M.text(data.text ~= nil and data.text or data.content)
  return text:find("%S") and text or ""
end

-- The pair that a result belongs to: the first of its id that is open, or whose
-- call was interrupted and run again.
local function pair_of(pairs_, id, interrupted)
  for _, pair in ipairs(pairs_) do
    if pair.call_id == id and (pair.ok == nil or interrupted[pair]) then
      return pair
    end
  end
end

local function known(pairs_, id)
  for _, pair in ipairs(pairs_) do
    if pair.call_id == id then
      return true
    end
  end
end

local function text_or_nil(v)
  return type(v) == "string" and v or nil
end

--- The tool calls of a beat with their results, in the order of the calls.
---@param record { id: string, events: event[] }
---@return table[] pairs
function M.pairs(record)
  local out, interrupted = {}, {}
  for _, event in ipairs(record.events) do
    local data = M.data(event)
    local id = text_or_nil(data.call_id)
    if event.kind == "tool_call" and data.rerun ~= true then
      out[#out + 1] = { beat = record.id, call_id = id, name = text_or_nil(data.name),
        input = data.args }
    elseif event.kind == "tool_result" then
      local pair = id and pair_of(out, id, interrupted)
      if not pair and not (id and known(out, id)) then
        pair = { beat = record.id, call_id = id }
        out[#out + 1] = pair
      end
      if pair then
        pair.result, pair.ok = data.result, data.ok ~= false
        interrupted[pair] = data.interrupted == true or nil
      end
    end
  end
  return out
end

return M
