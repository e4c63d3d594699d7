--- tools.kv: tools over the small values that outlive a run.
--
--    kv_get{ key }            the value, null when there is none
--    kv_set{ key, value }     keeps any JSON value, at most 64 KB of it
--    kv_delete{ key }         forgets a key
--    kv_list{ prefix? }       the keys, at most 256 KB of them
--
-- They stand in std.kv, which every run on the store shares. prefix is put in
-- front of every key: the model sees those keys alone, without the prefix. Two
-- devices with one prefix share their notes.
--
-- Example:
--
--    local set = tools.kv{ prefix = "notes/" }

local T = require("lshape.t")
local knl = require("knl")
local options = require("lshape.options")
local refusal = require("tools.refusal")
local std = require("std")

local M = {}

M.shapes = {
  kv_opts = T.shape({
    prefix = T.string:max_len(128)
      :describe("of every key, hidden from the model (none)"):is_optional(),
  }, { open = false }),
}

M.api = {
  doc = "Makes tools over the small values that outlive a run.",
  args = { { M.shapes.kv_opts, "which keys", name = "opts", optional = true } },
  returns = "table<string, knl.tool_entry>",
}

local KEY = 128 -- bytes of a key, without the prefix

local function get(prefix, args)
  local value = std.kv.get(prefix .. args.key)
  return value == nil and knl.null or value
end

local function set(prefix, args)
  std.kv.set(prefix .. args.key, args.value)
  return { ok = true }
end

local function delete(prefix, args)
  return { ok = true, deleted = std.kv.delete(prefix .. args.key) }
end

local function list(prefix, args)
  local keys = knl.array()
  for i, key in ipairs(std.kv.list(prefix .. (args.prefix or ""))) do
    keys[i] = key:sub(#prefix + 1)
  end
  return refusal.bounded(keys, "give a longer prefix")
end

local key = { type = "string", minLength = 1, maxLength = KEY, description = "of the value" }

local catalog = {
  kv_get = {
    run = get, effects = "read",
    description = "Answers the value that was kept under a key, null when there is none.",
    properties = { key = key }, required = { "key" },
  },
  kv_set = {
    run = set, effects = "write",
    description = "Keeps a value under a key, also for later runs, in place of the one there.",
    properties = { key = key, value = { description = "any JSON value" } },
    required = { "key", "value" },
  },
  kv_delete = {
    run = delete, effects = "write",
    description = "Forgets the value under a key.",
    properties = { key = key }, required = { "key" },
  },
  kv_list = {
    run = list, effects = "read",
    description = "Answers the keys that begin with prefix.",
    properties = { prefix = { type = "string", description = "of the keys (all)" } },
    required = {},
  },
}

-- Control characters are those of Unicode: ASCII's and U+0080 to U+009F.
local function has_controls(text)
  return text:find("%c") ~= nil or text:find("\194[\128-\159]") ~= nil
end

-- What std.kv would raise as the script's mistake is here the model's.
local function bad_key(args)
  local text = args.key or args.prefix or ""
  if #text > KEY or has_controls(text) then
    return refusal.of("bad_key", "a key is text of at most 128 bytes without control characters")
  end
end

local function entry(tool, prefix)
  return {
    description = tool.description,
    input_schema = {
      type = "object",
      properties = tool.properties,
      required = knl.array(tool.required),
      additionalProperties = false,
    },
    effects = tool.effects,
    idempotent = true,
    strict = true,
    handler = function(args)
      return bad_key(args) or refusal.try(function() return tool.run(prefix, args) end)
    end,
  }
end

---@class tools.kv.opts
---@field prefix? string of every key, hidden from the model (none)

--- Makes the tools kv_get, kv_set, kv_delete and kv_list.
---@param opts? tools.kv.opts
---@return table<string, tool>
function M.new(opts)
  if opts == nil then
    opts = {}
  end
  options.check("tools.kv", opts, M.shapes.kv_opts, { opts = "{ prefix? }" })
  local prefix = opts.prefix or ""
  if has_controls(prefix) then
    options.fail("tools.kv", "prefix must be text without control characters, got %q", prefix)
  end
  local made = {}
  for name, tool in pairs(catalog) do
    made[name] = entry(tool, prefix)
  end
  return made
end

return M
