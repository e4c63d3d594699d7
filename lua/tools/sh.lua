--- tools.sh: a tool that runs commands.
--
-- The one tool is sh{ command }: text, or a list of words. With allow a command
-- runs without a shell, and its first word must be one of the list; text is
-- then split into words, quotes are heeded, and what only a shell understands
-- (pipes, variables, globs) is refused. Without allow text goes to /bin/sh.
-- The answer is { code, stdout, stderr, timed_out?, left? }; of a long output the
-- head and the tail are kept. A code that is not 0 is an answer like any other;
-- left says what of the command could not be ended, as what sudo starts.
--
-- It is no sandbox: a permitted program does what it can, and go run runs
-- anything. Give the whole host less where that matters.
--
-- Example:
--
--    local set = tools.sh{ allow = { "go", "git" }, timeout = 60, cwd = "work" }

local T = require("lshape.t")
local options = require("lshape.options")
local refusal = require("tools.refusal")
local std = require("std")

local M = {}

M.shapes = {
  sh_opts = T.shape({
    allow = T.array_of(T.string:min_len(1)):min_len(1)
      :describe("the first words that may run (any, through a shell)"):is_optional(),
    timeout = T.number:describe("seconds (120)"):is_optional(),
    cwd = T.string:min_len(1):describe("the working folder, from the project root"):is_optional(),
  }, { open = false }),
}

M.api = {
  doc = "Makes a tool that runs commands.",
  args = { { M.shapes.sh_opts, "which, and where", name = "opts", optional = true } },
  returns = "table<string, knl.tool_entry>",
}

local TIMEOUT = 120 -- seconds
local KEPT = 32 * 1024 -- bytes of each output

local NEEDS_SHELL = "[;&|<>$`(){}%[%]*?~#!\n]"

-- One quoted piece from position i of text, and where it ends.
local function quoted(text, i)
  local quote = text:sub(i, i)
  local close = text:find(quote, i + 1, true)
  local piece = close and text:sub(i + 1, close - 1)
  if piece and quote == '"' and piece:find('[\\$`]') then
    piece = nil
  end
  return piece, close
end

-- Splits text into words as a shell would, when it needs nothing else of one.
local function split(text)
  local words, word, i = {}, nil, 1
  while i <= #text do
    local c = text:sub(i, i)
    if c == "'" or c == '"' then
      local piece, close = quoted(text, i)
      if not piece then
        return nil, text:sub(i)
      end
      word = (word or "") .. piece
      i = close
    elseif c == "\\" or c:find(NEEDS_SHELL) then
      return nil, c
    elseif c:find("%s") then
      words[#words + 1] = word
      word = nil
    else
      word = (word or "") .. c
    end
    i = i + 1
  end
  words[#words + 1] = word
  return words
end

local function permitted(command, allowed)
  local words, shell = command, nil
  if type(command) == "string" then
    words, shell = split(command)
  end
  if not words then
    local message = "the command needs a shell (%q), which is not allowed: give a program and words"
    return nil, refusal.of("shell_not_allowed", message:format(shell))
  end
  for _, name in ipairs(allowed) do
    if words[1] == name then
      return words
    end
  end
  local message = ("%q is not allowed, allowed are: "):format(words[1] or "")
  return nil, refusal.of("command_not_allowed", message .. table.concat(allowed, ", "))
end

local function runner(opts)
  return function(args)
    local command = args.command
    if opts.allow then
      local refused
      command, refused = permitted(command, opts.allow)
      if refused then
        return refused
      end
    end
    return refusal.try(function()
      return std.sh.run(command, {
        cwd = opts.cwd,
        timeout = opts.timeout or TIMEOUT,
        max_bytes = KEPT,
      })
    end)
  end
end

local function description(opts)
  local text = "Runs a command to its end and answers { code, stdout, stderr }; code 0 is success."
  if not opts.allow then
    return text .. " Text goes to /bin/sh. What it leaves in the background ends with it; "
      .. "a server that must stay is started with setsid: setsid server >server.log 2>&1 &"
  end
  return text .. " There is no shell; the programs are: " .. table.concat(opts.allow, ", ") .. "."
end

---@class tools.sh.opts
---@field allow? string[] the first words that may run (any, through a shell)
---@field timeout? number seconds (120)
---@field cwd? string the working folder, from the project root

--- Makes the tool sh.
---@param opts? tools.sh.opts
---@return table<string, tool>
function M.new(opts)
  if opts == nil then
    opts = {}
  end
  options.check("tools.sh", opts, M.shapes.sh_opts, { opts = "{ allow?, timeout?, cwd? }" })
  if opts.timeout and opts.timeout <= 0 then
    options.fail("tools.sh", "timeout must be seconds above 0, got %s", tostring(opts.timeout))
  end
  return {
    sh = {
      description = description(opts),
      input_schema = {
        type = "object",
        properties = {
          command = {
            description = "a program with its words",
            anyOf = {
              { type = "string", minLength = 1 },
              { type = "array", items = { type = "string" }, minItems = 1 },
            },
          },
        },
        required = { "command" },
        additionalProperties = false,
      },
      effects = "external",
      strict = true,
      handler = runner(opts),
    },
  }
end

return M
