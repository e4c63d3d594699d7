package luabind

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// Bounds of a request that names none.
const (
	httpTimeout   = time.Minute
	httpRedirects = 10
	bodyLimit     = 64 << 20
)

// stdHTTP is std.http: one request, its answer whole.
func stdHTTP(mask *Masker) *Module {
	return &Module{
		Name: "std.http",
		Doc:  "Requests to web servers.",
		Funcs: []Func{{
			Name: "request",
			Args: []Arg{{Name: "opts", Kind: Table, Fields: []Arg{
				{Name: "method", Kind: Text, Optional: true, Doc: "in capitals (default GET)"},
				{Name: "url", Kind: Text, Doc: "http or https"},
				{Name: "headers", Kind: Table, Optional: true, Type: "table<string, string>", Doc: "to send; to another server a redirect takes none of them"},
				{Name: "body", Kind: Text, Optional: true, Doc: "any bytes"},
				{Name: "timeout", Kind: Seconds, Optional: true, Doc: "for all of it, redirects and body included (default 60)"},
				{Name: "max_bytes", Kind: Whole, Optional: true, Doc: "kept of the body"},
				{Name: "redirects", Kind: Whole, Optional: true, Doc: "to follow, 0 answers the first itself (default 10)"},
				{Name: "hosts", Kind: Table, Optional: true, Type: "string[]", Doc: "that may be asked, also by a redirect: name, name:port, *.name (default: any)"},
				{Name: "public", Kind: Flag, Optional: true, Doc: "refuse addresses of private networks and of this machine, unless hosts has the very name"},
			}}},
			Returns: "{ status: integer, headers: table<string, string>, body: string, url: string, truncated?: true, not_text?: integer }",
			Doc: "Asks once and answers what the server said, whatever the status is. Names of headers are in small letters; several of one name are " +
				"joined by a comma, set-cookie by line ends. url is where the last redirect led. truncated says that max_bytes cut the body; without it a body above 64 MB raises. " +
				"not_text is the first byte of the body that is no UTF-8, or zero. A redirect that would take the body to another server raises (denied). " +
				"Raises (kind not_found, denied, timeout, transport, too_large) when there is no answer.",
			Fn: httpRequest,
		}, {
			Name: "url_fault", Returns: "string?", Fn: httpURLFault,
			Args: []Arg{{Name: "url", Kind: Text}},
			Doc:  "What is wrong with a url that request does not take, nil for one that it does.",
		}, {
			Name: "host_fault", Returns: "string?", Fn: httpHostFault,
			Args: []Arg{{Name: "rule", Kind: Text, Doc: "as in hosts: name, name:port, *.name"}},
			Doc:  "What is wrong with a rule that no host can match, nil for one that may.",
		}},
		Open:  func(*VM) (any, error) { return newFetcher(mask), nil },
		Close: func(state any) error { state.(*fetcher).open.CloseIdleConnections(); return nil },
		Fault: stdFault,
	}
}

func httpRequest(c *Call) (int, error) {
	f, err := fetchOf(c, c.Options(1))
	if err != nil {
		return 0, err
	}
	answer, err := blockFor(c, func(ctx context.Context) (*fetched, error) {
		return c.State().(*fetcher).fetch(ctx, f)
	})
	if err != nil {
		return 0, err
	}
	return c.Return(answer.table(c.L))
}

func httpURLFault(c *Call) (int, error) {
	if _, why := webURL(c.String(1), c.State().(*fetcher).mask); why != "" {
		return c.Return(lua.LString(why))
	}
	return c.Return(lua.LNil)
}

func httpHostFault(c *Call) (int, error) {
	if why := hostFault(c.String(1)); why != "" {
		return c.Return(lua.LString(why))
	}
	return c.Return(lua.LNil)
}

// fetchOf reads the options of a request.
func fetchOf(c *Call, opts Options) (*fetch, error) {
	f := &fetch{
		method: opts.String("method", http.MethodGet), body: opts.String("body", ""),
		timeout: opts.Seconds("timeout", httpTimeout), public: opts.Bool("public", false),
		redirects: int(opts.Int("redirects", httpRedirects)), limit: opts.Int("max_bytes", bodyLimit), cuts: opts.Has("max_bytes"),
	}
	switch {
	case !isToken(f.method) || f.method == http.MethodConnect:
		return nil, c.Mistake("option %q: got %s, want a method such as GET", "method", show(opts.Value("method")))
	case f.timeout <= 0:
		return nil, c.Mistake("option %q: got %s, want seconds above 0", "timeout", show(opts.Value("timeout")))
	case f.redirects < 0 || f.redirects > 50:
		return nil, c.Mistake("option %q: got %d, want 0 to 50", "redirects", f.redirects)
	case f.limit < 0 || f.limit > 1<<30:
		return nil, c.Mistake("option %q: got %d, want 0 to %d", "max_bytes", f.limit, 1<<30)
	}
	var why string
	if f.url, why = webURL(opts.String("url", ""), c.State().(*fetcher).mask); why != "" {
		return nil, c.Mistake("option %q: %s, want http://host/… or https://host/…", "url", why)
	}
	var err error
	if f.header, err = headersOf(c, opts.Table("headers")); err == nil {
		f.hosts, err = hostsOf(c, opts.Table("hosts"))
	}
	return f, err
}

// webURL answers the URL, or what is wrong with it. The text of the URL is not
// repeated: it may hold a password. One with a / in it would be read as a host
// and a path.
func webURL(text string, mask *Masker) (*url.URL, string) {
	if i := strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }); i >= 0 {
		return nil, "got a space or control character in it"
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, "got text that is no URL"
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, "got the scheme " + show(lua.LString(u.Scheme))
	case u.Hostname() == "":
		return nil, "got no host"
	case cutsLogin(text, mask):
		return nil, "got a secret with one of / ? # in it in front of @, which is to be %-encoded there"
	}
	u.Fragment, u.RawFragment = "", ""
	return u, ""
}

// cutsLogin says whether a secret stands in a URL as a login does, but the host
// ends within it.
func cutsLogin(text string, mask *Masker) bool {
	begin := strings.Index(text, "://") + len("://")
	end := begin + strings.IndexAny(text[begin:]+"/", "/?#")
	return slices.ContainsFunc(mask.found(text), func(s hiddenPart) bool {
		return s.from >= begin && s.from < end && end < s.to && strings.HasPrefix(text[s.to:], "@")
	})
}

// ownHeaders are what a request decides itself.
var ownHeaders = []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Trailer", "Te"}

func headersOf(c *Call, given *lua.LTable) (http.Header, error) {
	header := http.Header{}
	if given == nil {
		return header, nil
	}
	var wrong error
	given.ForEach(func(key, value lua.LValue) {
		name, isText := key.(lua.LString)
		text, isValue := value.(lua.LString)
		switch {
		case !isText || !isToken(string(name)):
			wrong = c.Mistake("option %q: got %s as a name, want letters, digits and -", "headers", show(key))
		case slices.Contains(ownHeaders, http.CanonicalHeaderKey(string(name))):
			wrong = c.Mistake("option %q: %s comes from the request itself", "headers", string(name))
		case !isValue:
			wrong = c.Mistake("option %q: %s: got %s, want a string", "headers", string(name), show(value))
		case strings.IndexFunc(string(text), func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) >= 0:
			wrong = c.Mistake("option %q: %s: got a line end or control character in its value", "headers", string(name))
		default:
			header.Set(string(name), string(text))
		}
	})
	return header, wrong
}

// isToken says whether text may be a method or the name of a header.
func isToken(text string) bool {
	return text != "" && strings.IndexFunc(text, func(r rune) bool {
		return !(r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	}) < 0
}

func hostsOf(c *Call, given *lua.LTable) ([]string, error) {
	if given == nil {
		return nil, nil
	}
	hosts := make([]string, given.MaxN())
	for i := range hosts {
		name, ok := given.RawGetInt(i + 1).(lua.LString)
		if !ok {
			return nil, c.Mistake("option %q: [%d]: got %s, want name, name:port or *.name", "hosts", i+1, show(given.RawGetInt(i+1)))
		}
		if why := hostFault(string(name)); why != "" {
			return nil, c.Mistake("option %q: [%d]: got %s, want name, name:port or *.name: %s", "hosts", i+1, show(name), why)
		}
		hosts[i] = strings.ToLower(string(name))
	}
	if len(hosts) == 0 || keyBeside(given, len(hosts)) != lua.LNil {
		return nil, c.Mistake("option %q: got %s, want a list of names", "hosts", show(given))
	}
	return hosts, nil
}

func (a *fetched) table(l *lua.LState) *lua.LTable {
	headers := l.CreateTable(0, len(a.header))
	for name, values := range a.header {
		glue := ", "
		if name == "Set-Cookie" { // its values hold commas
			glue = "\n"
		}
		headers.RawSetString(strings.ToLower(name), lua.LString(strings.Join(values, glue)))
	}
	t := l.CreateTable(0, 5)
	t.RawSetString("status", lua.LNumber(a.status))
	t.RawSetString("headers", headers)
	t.RawSetString("body", lua.LString(a.body))
	t.RawSetString("url", lua.LString(a.url))
	if a.truncated {
		t.RawSetString("truncated", lua.LTrue)
	}
	if at := notText(a.body); at >= 0 {
		t.RawSetString("not_text", lua.LNumber(at+1))
	}
	return t
}
