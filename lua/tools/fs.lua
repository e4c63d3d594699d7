--- tools.fs: tools over the files below a folder.
--
-- allow lists which of them there are:
--
--    read{ path, from?, to? }                     the text, or its lines from to to
--    read{ path, byte }                           a part of it, for very long lines
--    list{ path? }                                names, folders with a / behind
--    glob{ pattern }                              the paths that match
--    grep{ pattern, path?, glob?, ignore_case? }  the lines that match
--    write{ path, text }                          replaces or makes a file
--    append{ path, text }                         adds to its end
--    search_replace{ path, search, replace, all? } changes an exact piece of text
--
-- root (default: the project root) is where paths count from and what they
-- cannot leave, links included; paths narrows that to some files and folders
-- below it. Nothing reaches the folder of a store. A refusal is an answer
-- { ok = false, reason, message, … }; a search_replace that finds nothing says up
-- to where the text agreed. Two of them on one file take turns, in one knl process
-- and in several: neither undoes the other. Other programs know no turns. Text is
-- UTF-8, in files of at most 8 MB, and at most 256 KB of it are answered at once.
--
-- Example:
--
--    local set = tools.fs{ root = "work", allow = { "read", "search_replace" }, paths = { "src" } }

local T = require("lshape.t")
local edit = require("tools.edit")
local knl = require("knl")
local options = require("lshape.options")
local refusal = require("tools.refusal")
local scope = require("tools.scope")
local search = require("tools.search")
local std = require("std")

local M = {}

M.shapes = {
  fs_opts = T.shape({
    root = T.string:min_len(1)
      :describe("a folder, from the project root (that root)"):is_optional(),
    allow = T.array_of(T.one_of({
      "append", "glob", "grep", "list", "read", "search_replace", "write",
    })):min_len(1):describe("the tools to make"),
    paths = T.array_of(T.string:min_len(1)):min_len(1)
      :describe("files and folders below root, with all that is in them"):is_optional(),
  }, { open = false }),
}

M.api = {
  doc = "Makes tools over the files below a folder.",
  args = { { M.shapes.fs_opts, "which, and where", name = "opts" } },
  returns = "table<string, knl.tool_entry>",
}

local READABLE = 8 * 1024 * 1024
local PART = 64 * 1024 -- bytes that read answers from byte on
local TRIES = 100 -- of an edit that meets another one

local function of_kind(raised, kind)
  return type(raised) == "userdata" and raised.kind == kind
end

-- The text of a file, or a refusal.
local function text_of(files, path)
  local ok, text, more = pcall(files.read, files, path, { max_bytes = READABLE, utf8 = true })
  if not ok and of_kind(text, "validation") then
    return nil, refusal.of("not_text", text.message)
  elseif not ok then
    error(text, 0)
  end
  if more then
    return nil, refusal.of("too_large", ("the file is larger than %d bytes"):format(READABLE))
  end
  return text
end

local function lines_of(text, from, to)
  local picked, n = {}, 0
  for line in text:gmatch("[^\n]*\n?") do
    if line ~= "" then
      n = n + 1
      if n >= from and n <= to then
        picked[#picked + 1] = line
      end
    end
  end
  return table.concat(picked), n
end

-- The first byte of a character at or after i.
local function character(text, i)
  while i <= #text and text:byte(i) >= 0x80 and text:byte(i) < 0xC0 do
    i = i + 1
  end
  return i
end

-- What stands from a byte on, whole characters of it.
local function part_of(text, args)
  if args.from or args.to then
    return refusal.of("bad_range", "byte goes without from and to")
  end
  if args.byte > #text then
    local message = "there is no byte %d, the file has %d"
    return refusal.of("no_such_lines", message:format(args.byte, #text), { bytes = #text })
  end
  local first = character(text, args.byte)
  local after = character(text, first + PART)
  return {
    text = text:sub(first, after - 1), bytes = #text, next = after <= #text and after or nil,
  }
end

local function read(files, path, args)
  local text, refused = text_of(files, path)
  if refused then
    return refused
  end
  if args.byte then
    return part_of(text, args)
  end
  if args.from or args.to then
    local from, to = args.from or 1, args.to or math.huge
    local part, n = lines_of(text, from, to)
    if from > to or from > math.max(n, 1) then
      local last = args.to and ("%d"):format(args.to) or "the end"
      return refusal.of("no_such_lines",
        ("there are no lines %d to %s, the file has %d"):format(from, last, n), { lines = n })
    end
    text = part
  end
  if #text > refusal.ANSWERED then
    local _, n = lines_of(text, 1, 0)
    local message = "%d bytes in %d lines, at most %d are answered at once: "
      .. "give from and to, or byte where a line is longer"
    return refusal.of("too_large", message:format(#text, n, refusal.ANSWERED),
      { bytes = #text, lines = n })
  end
  return text
end

local function list(files, path)
  local names = knl.array()
  for i, entry in ipairs(files:list(path)) do
    names[i] = entry.name .. (entry.kind == "folder" and "/" or "")
  end
  return refusal.bounded(names, "use glob with a pattern that is narrower")
end

local function make_room(files, path)
  files:mkdir(std.path.dirname(path))
end

local function write(files, path, args)
  make_room(files, path)
  files:write(path, args.text)
  return { ok = true, bytes = #args.text }
end

local function append(files, path, args)
  make_room(files, path)
  files:append(path, args.text)
  return { ok = true, bytes = #args.text }
end

-- Writes text in place of what was read; false when that stands there no more.
local function put(files, path, change)
  local ok, raised = pcall(files.write, files, path, change.text, { expect = change.was })
  if not ok and not of_kind(raised, "conflict") then
    error(raised, 0)
  end
  return ok
end

local function search_replace(files, path, args)
  for _ = 1, TRIES do
    local text, refused = text_of(files, path)
    if refused then
      return refused
    end
    local changed, answer = edit.replace(text, args)
    if not changed or put(files, path, { text = changed, was = text }) then
      return answer
    end
  end
  return refusal.of("conflict", "others change the file all the time: try again later")
end

local function text(description)
  return { type = "string", description = description }
end

local path = { type = "string", minLength = 1, description = "from the root, with /" }
local line = { type = "integer", minimum = 1 }

-- What there is, by name. The schema of a tool is closed: a misspelt argument
-- is an answer to the model and not a surprise.
local catalog = {
  read = {
    run = read, effects = "read", idempotent = true, parallel = true,
    description = "Reads a text file; with from and to only those lines, counted from 1. With byte "
      .. "it answers { text, bytes, next? }: 64 KB from that byte on, and where it goes on.",
    properties = { path = path, from = line, to = line, byte = line }, required = { "path" },
  },
  list = {
    run = list, effects = "read", idempotent = true, parallel = true,
    description = "Lists a folder; the names of folders end in /.",
    properties = { path = path }, required = {},
  },
  glob = {
    run = search.glob, scoped = true, effects = "read", idempotent = true, parallel = true,
    description = "Answers the paths that match: * and ? within a name, ** for any folders.",
    properties = { pattern = text("from the root, as in src/**/*.go") },
    required = { "pattern" },
  },
  grep = {
    run = search.grep, scoped = true, effects = "read", idempotent = true, parallel = true,
    description = "Answers the lines that match a regular expression, as path:line:text; "
      .. "more is true when there are others.",
    properties = {
      pattern = text("a regular expression (RE2), for one line at a time"),
      path = path,
      glob = text("of the files to look through, as in *.go"),
      ignore_case = { type = "boolean", description = "a for A" },
    },
    required = { "pattern" },
  },
  write = {
    run = write, effects = "write", idempotent = true,
    description = "Writes a file, in place of what stands there. Missing folders are made.",
    properties = { path = path, text = text("the whole new content") },
    required = { "path", "text" },
  },
  append = {
    run = append, effects = "write",
    description = "Adds text to the end of a file, which is made when it is missing.",
    properties = { path = path, text = text("what to add") },
    required = { "path", "text" },
  },
  search_replace = {
    run = search_replace, effects = "write",
    description = "Replaces an exact piece of a text; it must occur once, unless all is true.",
    properties = {
      path = path,
      search = text("what stands in the file, blanks and line ends included"),
      replace = text("what stands there after"),
      all = { type = "boolean", description = "replace every occurrence" },
    },
    required = { "path", "search", "replace" },
  },
}

local function entry(tool, places)
  return {
    description = tool.description,
    input_schema = {
      type = "object",
      properties = tool.properties,
      required = knl.array(tool.required),
      additionalProperties = false,
    },
    effects = tool.effects,
    idempotent = tool.idempotent,
    parallel = tool.parallel,
    strict = true,
    handler = function(args)
      return refusal.try(function()
        if tool.scoped then
          return tool.run(places, args)
        end
        local at, refused = places:resolve(args.path or ".")
        return refused or tool.run(places.files, at, args)
      end)
    end,
  }
end

---@class tools.fs.opts
---@field root? string a folder, from the project root (that root)
---@field allow string[] read, list, glob, grep, write, append, search_replace
---@field paths? string[] files and folders below root, with all that is in them

--- Makes the file tools that allow names.
---@param opts tools.fs.opts
---@return table<string, tool>
function M.new(opts)
  options.check("tools.fs", opts, M.shapes.fs_opts, { opts = "{ allow, root?, paths? }" })
  local places, wrong = scope.new(opts.root or ".", opts.paths)
  if not places then
    options.fail("tools.fs", wrong)
  end
  local set = {}
  for _, name in ipairs(opts.allow) do
    set[name] = entry(catalog[name], places)
  end
  return set
end

return M
