--- tools.http: a tool that fetches from web servers.
--
-- The one tool is http{ url, method?, body? }, with GET alone unless methods
-- lists more. hosts lists who may be asked: name, name:port or *.name, redirects
-- included; without it any public server. An address of a private network, or of
-- this machine, is asked only when hosts has its very name: a name that leads
-- there is refused when it is dialled. The answer is { status, body,
-- content_type, url, truncated?, note? }; a status of 404 is an answer like any other.
-- What the model fetches it believes: a page may hold instructions. No header of
-- the model's is sent; headers that every request needs are an option, and
-- another server that a redirect leads to gets none of them.
--
-- Example:
--
--    local set = tools.http{ hosts = { "api.example.com" }, max_bytes = 100000 }

local T = require("lshape.t")
local knl = require("knl")
local options = require("lshape.options")
local refusal = require("tools.refusal")
local std = require("std")

local M = {}

M.shapes = {
  http_opts = T.shape({
    hosts = T.array_of(T.string:min_len(1)):min_len(1)
      :describe("who may be asked: name, name:port, *.name (every public server)"):is_optional(),
    max_bytes = T.integer:min(1):max(16 * 1024 * 1024)
      :describe("of a body that are answered (65536)"):is_optional(),
    methods = T.array_of(T.one_of({ "DELETE", "GET", "HEAD", "PATCH", "POST", "PUT" })):min_len(1)
      :describe("that the model may use (GET)"):is_optional(),
    headers = T.map_of(T.string, T.string):describe("sent with every request"):is_optional(),
    timeout = T.number:describe("seconds (30)"):is_optional(),
  }, { open = false }),
}

M.api = {
  doc = "Makes a tool that fetches from web servers.",
  args = { { M.shapes.http_opts, "whom, and how much", name = "opts", optional = true } },
  returns = "table<string, knl.tool_entry>",
}

local TIMEOUT = 30 -- seconds
local KEPT = 64 * 1024 -- bytes of a body

-- What the model may not say of a URL, or nil.
local function bad_url(url)
  local why = std.http.url_fault(url)
  if why then
    return refusal.of("bad_url", why .. ", want http://host/… or https://host/…")
  end
end

-- The answer as the model reads it. Bytes that are no text would be mended into
-- nonsense, so they are counted and left out; text in another encoding is shown
-- as far as it goes, and the model is told.
local function told(answer)
  local body, kind = answer.body, answer.headers["content-type"]
  local note
  if body:find("\0", 1, true) then
    return refusal.of("not_text", "the body holds zero bytes, so it is no text",
      { status = answer.status, content_type = kind, bytes = #body })
  elseif answer.not_text then
    note = ("the body is no UTF-8 from byte %d on: characters are lost in it")
      :format(answer.not_text)
  end
  return {
    status = answer.status,
    body = body,
    content_type = kind,
    url = answer.url,
    truncated = answer.truncated,
    note = note,
  }
end

local function fetcher(opts)
  return function(args)
    local bad = bad_url(args.url)
    if bad then
      return bad
    end
    return refusal.try(function()
      return told(std.http.request{
        url = args.url,
        method = args.method or (opts.methods or { "GET" })[1],
        body = args.body,
        headers = opts.headers,
        hosts = opts.hosts,
        public = true,
        max_bytes = opts.max_bytes or KEPT,
        timeout = opts.timeout or TIMEOUT,
      })
    end)
  end
end

local function reads_only(methods)
  for _, method in ipairs(methods) do
    if method ~= "GET" and method ~= "HEAD" then
      return false
    end
  end
  return true
end

local function schema(methods)
  local properties = {
    url = { type = "string", minLength = 1, description = "http:// or https://" },
    method = {
      type = "string", enum = knl.array(methods), description = methods[1] .. " if absent",
    },
  }
  if not reads_only(methods) then
    properties.body = { type = "string", description = "what to send" }
  end
  return {
    type = "object",
    properties = properties,
    required = { "url" },
    additionalProperties = false,
  }
end

local function description(opts)
  local text = "Asks a web server and answers { status, body }."
  if opts.hosts then
    text = text .. " The servers are: " .. table.concat(opts.hosts, ", ") .. "."
  end
  return text
end

---@class tools.http.opts
---@field hosts? string[] who may be asked: name, name:port, *.name (every public server)
---@field max_bytes? integer of a body that are answered (65536)
---@field methods? string[] that the model may use (GET)
---@field headers? table<string, string> sent with every request
---@field timeout? number seconds (30)

--- Makes the tool http.
---@param opts? tools.http.opts
---@return table<string, tool>
function M.new(opts)
  if opts == nil then
    opts = {}
  end
  options.check("tools.http", opts, M.shapes.http_opts,
    { opts = "{ hosts?, max_bytes?, methods?, headers?, timeout? }" })
  if opts.timeout and opts.timeout <= 0 then
    options.fail("tools.http", "timeout must be seconds above 0, got %s", tostring(opts.timeout))
  end
  for i, rule in ipairs(opts.hosts or {}) do
    local why = std.http.host_fault(rule)
    if why then
      local message = "hosts[%d] must be name, name:port or *.name, got %q: %s"
      options.fail("tools.http", message, i, rule, why)
    end
  end
  local methods = opts.methods or { "GET" }
  return {
    http = {
      description = description(opts),
      input_schema = schema(methods),
      effects = "external",
      idempotent = reads_only(methods) or nil,
      parallel = reads_only(methods) or nil,
      strict = true,
      handler = fetcher(opts),
    },
  }
end

return M
