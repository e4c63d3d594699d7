--- supervisor.merge: a fold over several sessions, for the beat that reads what
--- others have found.
--
--    merge(parent, sessions, { limit?, timeout_ms? }) -> fold(events, device)
--
-- sessions are ids or handles. The request holds the conversation of each, in
-- the order given, then that of the parent; system and tools are the device's.
-- Each session is folded by itself, so that a call that one left unanswered is
-- not closed by a result of another. A call id that two of them use is renamed in
-- the later one, on both halves: no provider takes an id twice. An id that names
-- no session adds nothing; one that is listed twice is there twice.
--
-- The sessions are read at every fold, whole: limit refuses a session of more
-- rows, timeout_ms a read that takes longer. It writes nothing; the parent's
-- beat records the request as its own.
--
-- Example:
--
--    local fold = supervisor.merge(s, ids)
--    local o = knl.beat(s, device:with{ fold = fold })

local T = require("lshape").t
local caller = require("supervisor.caller")
local knl = require("knl")
local options = require("lshape.options")
local shapes = require("supervisor.shapes")

local PLACE = "supervisor.merge"

local M = {}

M.api = {
  doc = "Answers a fold that puts the conversations of sessions in front of the parent's.",
  args = {
    { shapes.session, "the parent", name = "parent" },
    { shapes.sessions, "ids or sessions", name = "sessions" },
    { shapes.merge_opts, "of the reads", name = "opts", optional = true },
  },
  returns = "fun(events: knl.event[], device?: knl.device): knl.request",
  members = {
    fold = {
      doc = "The fold, for knl.device.",
      args = {
        { T.table, "the parent's", name = "events" },
        { T.any, "what it is folded for", name = "device", optional = true },
      },
      returns = "knl.request",
    },
  },
}

-- The id of a session, or nil.
local function id_of(session)
  if type(session) == "string" then
    return session ~= "" and session or nil
  elseif not knl.is_session(session) then
    return nil
  end
  local ok, id = pcall(session.id, session)
  return ok and type(id) == "string" and id or nil
end

-- Answers the ids of a list that has neither holes nor names.
local function ids_of(sessions)
  local got = type(sessions)
  local ids, keys = {}, 0
  if got == "table" then
    for i, session in ipairs(sessions) do
      ids[i] = id_of(session)
      if not ids[i] then
        options.fail(PLACE, "sessions[%d]: a session must be its id, or a knl session handle that"
          .. " answers one, got %s", i, type(session))
      end
    end
    for _ in pairs(sessions) do
      keys = keys + 1
    end
    got = keys == 0 and "an empty table" or "a table with holes or names"
  end
  if #ids == 0 or #ids ~= keys then
    options.fail(PLACE, "the second argument must be a non-empty array of sessions, got %s", got)
  end
  return ids
end

local function read(parent, id, limit)
  local rows, truncated = parent:scan{ sessions = { id }, limit = limit }
  if truncated then
    error(("%s: the read hit the row limit — session %s has more than %d events: raise limit, or"
      .. " merge what it came to"):format(PLACE, id, limit), 0)
  end
  return rows
end

-- Reads the events of every session, in the order of ids.
local function read_all(parent, ids, opts)
  local logs = {}
  for i, id in ipairs(ids) do
    logs[i] = read(parent, id, opts.limit)
  end
  return logs
end

-- Visits the blocks that are tables; a log may hold anything.
local function each_block(messages, visit)
  for _, message in ipairs(messages) do
    for _, block in ipairs(type(message.content) == "table" and message.content or {}) do
      if type(block) == "table" then
        visit(block)
      end
    end
  end
end

local function is_call(block)
  return block.type == "tool_use" and type(block.id) == "string"
end

-- A name for a call whose id is taken; own are the ids of its conversation.
local function fresh(id, used, own)
  local n, name = 1, nil
  repeat
    n = n + 1
    name = ("%s_%d"):format(id, n)
  until not used[name] and not own[name]
  return name
end

-- Renames the calls of one conversation whose ids the ones before it use.
local function rename(messages, used)
  local own, names = {}, {}
  each_block(messages, function(block)
    if is_call(block) then
      own[block.id] = true
    end
  end)
  each_block(messages, function(block)
    if is_call(block) then
      local id = block.id
      names[id] = used[id] and fresh(id, used, own) or id
      own[names[id]], block.id = true, names[id]
    elseif block.type == "tool_result" then
      block.tool_use_id = names[block.tool_use_id] or block.tool_use_id
    end
  end)
  for _, name in pairs(names) do
    used[name] = true
  end
end

-- The request of the last log, with the messages of all of them.
local function joined(logs, device)
  local messages, used, request = knl.array(), {}, nil
  for _, log in ipairs(logs) do
    request = knl.fold(log, device)
    rename(request.messages, used)
    for _, message in ipairs(request.messages) do
      messages[#messages + 1] = message
    end
  end
  request.messages = messages
  return request
end

--- Answers a fold over the sessions and the parent.
---@param parent knl.session
---@param sessions (knl.session|string)[]
---@param opts? { limit?: integer, timeout_ms?: integer }
---@return fun(events: knl.event[], device?: knl.device): knl.request
function M.merge(parent, sessions, opts)
  caller.session(PLACE, parent)
  local ids = ids_of(sessions)
  opts = options.check(PLACE, opts == nil and {} or opts, shapes.merge_opts,
    { opts = "{ limit?, timeout_ms? }", hints = { sessions = "they are the second argument" } })
  local limits = { limit = opts.limit }
  local timeout = opts.timeout_ms
  local task = timeout and caller.nursery(PLACE, "with_timeout")
  return function(events, device)
    local logs
    if timeout then
      logs = task.with_timeout(timeout, function() return read_all(parent, ids, limits) end)
    else
      logs = read_all(parent, ids, limits)
    end
    logs[#logs + 1] = events
    return joined(logs, device)
  end
end

return M
