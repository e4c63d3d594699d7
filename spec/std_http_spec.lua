-- std.http: requests to web servers. What a server answers is tested beside the
-- host, which can start one; here is what a script sees without any.

local http = std.http

local function bad(text, opts)
  assert.errors_at_line(function() http.request(opts) end, 0, "std.http.request: " .. text)
end

describe("std.http.request", function()
  it("wants a url of http or https", function()
    assert.errors_at_line(function() http.request() end, 0,
      "std.http.request: argument 1 (opts): got nil, want a table")
    bad('option "url": got nil, want a string', {})
    bad('option "url": got the scheme "file", want http://host/… or https://host/…',
      { url = "file:///etc/passwd" })
    bad('option "url": got no host', { url = "http://" })
    bad('option "url": got a space or control character', { url = "http://h/\r\nx: y" })
  end)

  it("refuses headers that would write into the request", function()
    bad('option "headers": x-a: got a line end or control character in its value',
      { url = "http://h/", headers = { ["x-a"] = "1\r\nx-b: 2" } })
    bad('option "headers": got "x a" as a name, want letters, digits and -',
      { url = "http://h/", headers = { ["x a"] = "1" } })
    bad('option "headers": Host comes from the request itself',
      { url = "http://h/", headers = { Host = "other" } })
  end)

  it("names a misspelt option", function()
    bad('unknown option "metod" (did you mean "method"?)', { url = "http://h/", metod = "GET" })
  end)

  it("raises a value with a kind when there is no answer", function()
    local ok, raised = pcall(http.request, { url = "http://127.0.0.1:1/?key=hidden" })
    assert.is_false(ok)
    assert.same({ "transport", true }, { raised.kind, raised.retryable })
    assert.equal("GET http://127.0.0.1:1/: nobody listens there", raised.message)
  end)

  it("asks only hosts that are listed, and no private address when told", function()
    local ok, raised = pcall(http.request,
      { url = "http://127.0.0.1:1/", hosts = { "example.com" } })
    assert.same({ false, "denied" }, { ok, raised.kind })
    assert.matches('host "127.0.0.1:1" is not among example.com', raised.message)
    ok, raised = pcall(http.request, { url = "http://127.0.0.1:1/", public = true })
    assert.same({ false, "denied" }, { ok, raised.kind })
    ok, raised = pcall(http.request,
      { url = "http://127.0.0.1:1/", public = true, hosts = { "127.0.0.1" } })
    assert.same({ false, "transport" }, { ok, raised.kind })
  end)

  it("ends with its task", function()
    local h = std.task.spawn(function()
      std.task.checkpoint()
      return http.request{ url = "http://127.0.0.1:1/" }
    end)
    h:cancel()
    assert.has_error(function() h:join() end, "task cancelled")
  end)
end)

describe("std.http.url_fault", function()
  it("says what request does not take", function()
    assert.equal("got text that is no URL", http.url_fault("http://h\\@x/"))
    assert.equal('got the scheme "ftp"', http.url_fault("ftp://h/"))
    assert.is_nil(http.url_fault("https://h/a?b#c"))
  end)
end)

describe("std.http.host_fault", function()
  it("says why no host can match a rule", function()
    assert.is_nil(http.host_fault("example.com:443"))
    assert.is_nil(http.host_fault("*.example.com"))
    assert.equal('"*" is no name of a host', http.host_fault("*:443"))
    assert.equal('"abc" is no port', http.host_fault("localhost:abc"))
    assert.equal('"0443" is no port', http.host_fault("localhost:0443"))
    assert.equal('"1.2.3" is no name of a host', http.host_fault("1.2.3"))
    assert.equal('"-x.com" is no name of a host', http.host_fault("-x.com"))
    bad('option "hosts": [1]: got "*", want name, name:port or *.name: "*" is no name of a host',
      { url = "http://h/", hosts = { "*" } })
  end)
end)
