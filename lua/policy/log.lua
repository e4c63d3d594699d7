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

local knl = require("knl")
local options = require("lshape.options")

local M = {}

-- Whether v can be asked as a session can. A text has methods, too.
local function has(v, name)
  if type(v) == "string" then
    return false
  end
  local ok, method = pcall(function()
    return v[name]
  end)
  return ok and options.is_callable(method)
end

--- Raises unless session is one.
---@param place string the function that was handed it, as the script calls it
---@param session any
---@param method? string what it is asked for (default: beats)
function M.check_session(place, session, method)
  if not has(session, method or "beats") then
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

--- The newest beat of a session, nil when there is none.
---@param place string the function that reads
---@param session session
---@return { id: string, events: event[] }?
function M.newest(place, session)
  return M.last(place, session, 1)[1]
end

--- The record of a beat, which is looked for from the newest on.
---@param place string the function that reads
---@param session session
---@param id string
---@return { id: string, events: event[] }?
function M.beat(place, session, id)
  local beats, n = {}, 1
  repeat
    beats, n = M.last(place, session, n), n * 2
    for i = #beats, 1, -1 do
      if beats[i].id == id then
        return beats[i]
      end
    end
  until #beats < n / 2
end

--- What the fold of a beat reported of its request, {} when it said nothing.
---@param record? { id: string, events: event[] }
---@return table
function M.report(record)
  local requests = record and M.of_kind(record, "llm_request") or {}
  local report = #requests > 0 and M.data(requests[#requests]).window
  return type(report) == "table" and report or {}
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

-- The text of a summary event, nil when it says nothing: data.text, or the text of
-- data.content.
local function summary_text(event)
  local data = M.data(event)
  local text = M.text(data.text ~= nil and data.text or data.content)
  return text:find("%S") and text or nil
end

--- The newest summary of a log that says something, and the seq of the last event
--- that it stands for: data.through, or what was recorded before it.
---@param events any a session, what a fold is handed, or a list of events
---@return { seq: integer, text: string, through: integer }?
function M.summary(events)
  local before
  while true do
    local found = knl.tail(events, { since = "summary", before = before, last = 1 })
    local seq = found.since_seq
    local text = seq and summary_text(found.since)
    if not seq or text then
      local through = seq and M.data(found.since).through
      if type(through) ~= "number" or through % 1 ~= 0 or through < 0 or through > seq then
        through = seq
      end
      return seq and { seq = seq, text = text, through = through } or nil
    end
    before = seq
  end
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
