package luabind

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
)

// fetch is one request, checked.
type fetch struct {
	method    string
	url       *url.URL
	header    http.Header
	body      string
	timeout   time.Duration
	limit     int64
	cuts      bool // a longer body is cut, not refused
	redirects int
	hosts     []string // nil: any
	public    bool
}

// fetched is what the server answered.
type fetched struct {
	status    int
	header    http.Header
	body      []byte
	url       string
	truncated bool
}

// fetcher asks servers for one VM.
type fetcher struct {
	mask *Masker         // the secrets that a URL may hold
	open *http.Transport // for requests that may go anywhere
}

func newFetcher(mask *Masker) *fetcher {
	return &fetcher{mask, &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
		MaxIdleConns: 16, IdleConnTimeout: 30 * time.Second,
		TLSHandshakeTimeout: 30 * time.Second, MaxResponseHeaderBytes: 1 << 20,
	}}
}

// transport answers what carries f. One that must not reach private addresses
// shares no connection with others and takes no proxy: it looks at the address
// it is about to dial, which no name server can change any more.
func (s *fetcher) transport(f *fetch) (t *http.Transport, done func()) {
	if !f.public {
		return s.open, func() {}
	}
	t = s.open.Clone()
	t.Proxy, t.DisableKeepAlives, t.DialContext = nil, true, f.dial
	return t, t.CloseIdleConnections
}

func (s *fetcher) fetch(ctx context.Context, f *fetch) (*fetched, error) {
	within, stop := context.WithTimeout(ctx, f.timeout)
	defer stop()
	answer, err := s.ask(within, f)
	if err != nil && ctx.Err() == nil {
		return nil, f.fault(within, err)
	}
	return answer, err
}

func (s *fetcher) ask(ctx context.Context, f *fetch) (*fetched, error) {
	if err := f.permits(f.url); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, f.method, f.url.String(), strings.NewReader(f.body))
	if err != nil {
		return nil, err
	}
	req.Header = f.header.Clone()
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "knl")
	}
	t, done := s.transport(f)
	defer done()
	client := &http.Client{Transport: unupgraded{t}, CheckRedirect: f.follow}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return f.read(resp)
}

func (f *fetch) read(resp *http.Response) (*fetched, error) {
	body, err := readUpTo(resp.Body, min(max(resp.ContentLength, 0), 1<<20), f.limit)
	if err != nil {
		return nil, err
	}
	at := *resp.Request.URL
	at.User = nil // the name alone may be a token
	a := &fetched{status: resp.StatusCode, header: resp.Header, body: body, url: at.String()}
	if int64(len(body)) > f.limit {
		if !f.cuts {
			return nil, &stdError{kind: overSize, text: fmt.Sprintf("%s: got a body above %d MB, give max_bytes to read its start", f.name(), f.limit>>20)}
		}
		a.body, a.truncated = wholeText(body[:f.limit]), true
	}
	return a, nil
}

// harmless are the headers that another server may see.
var harmless = []string{"Accept", "Accept-Language", "Content-Type", "User-Agent"}

// follow decides about a redirect. What the script sent to one server is not
// for another, whatever the header's name: keys come under many.
func (f *fetch) follow(req *http.Request, via []*http.Request) error {
	if f.redirects == 0 {
		return http.ErrUseLastResponse
	}
	if len(via) > f.redirects {
		return &stdError{kind: transport, text: fmt.Sprintf("%s: redirected more than %d times", f.name(), f.redirects)}
	}
	if err := f.permits(req.URL); err != nil {
		return err
	}
	away := func(r *http.Request) bool { return r.URL.Scheme != f.url.Scheme || r.URL.Host != f.url.Host }
	if away(req) && req.ContentLength > 0 {
		return f.denied("redirected to %s://%s with the body, which is not for another server; ask that one yourself", req.URL.Scheme, req.URL.Host)
	}
	if away(req) || slices.ContainsFunc(via, away) {
		for name := range req.Header {
			if !slices.Contains(harmless, name) {
				req.Header.Del(name)
			}
		}
	}
	return nil
}

// permits refuses what the rules of f say by name.
func (f *fetch) permits(u *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" {
		return f.denied("leads to the scheme %q, want http or https", u.Scheme)
	}
	if f.hosts == nil || slices.ContainsFunc(f.hosts, func(rule string) bool { return hostMatches(rule, withPort(u)) }) {
		return nil
	}
	return f.denied("host %q is not among %s", u.Host, strings.Join(f.hosts, ", "))
}

func (f *fetch) denied(format string, args ...any) error {
	return &stdError{kind: denied, text: f.name() + ": " + fmt.Sprintf(format, args...)}
}

// withPort answers the host of a URL with its port, which the scheme gives where
// the URL does not.
func withPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// hostFault answers what is wrong with a rule that can match no host, or "".
func hostFault(rule string) string {
	name, port, err := net.SplitHostPort(rule)
	if err != nil { // without a port
		name, port = rule, "80"
		if strings.HasPrefix(rule, "[") && strings.HasSuffix(rule, "]") {
			name = rule[1 : len(rule)-1]
		}
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 || strconv.Itoa(n) != port {
		return fmt.Sprintf("%q is no port", port)
	}
	if _, err := netip.ParseAddr(name); err == nil || isHostName(strings.TrimSuffix(strings.TrimPrefix(name, "*."), ".")) {
		return ""
	}
	return fmt.Sprintf("%q is no name of a host", name)
}

// isHostName knows names of hosts. One whose last label is a number would be an
// address, and is none.
func isHostName(name string) bool {
	labels := strings.Split(name, ".")
	wrong := func(label string) bool {
		return label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' ||
			strings.IndexFunc(label, func(r rune) bool { return !inHostName(r) }) >= 0
	}
	last := labels[len(labels)-1]
	return len(name) <= 253 && !slices.ContainsFunc(labels, wrong) && !isNumber(last)
}

// isNumber knows the numbers that addresses are made of, 0x… too.
func isNumber(label string) bool {
	hex, isHex := strings.CutPrefix(strings.ToLower(label), "0x")
	return isHex && strings.Trim(hex, "0123456789abcdef") == "" || strings.TrimFunc(label, unicode.IsDigit) == ""
}

func inHostName(r rune) bool {
	return r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r)
}

// hostMatches holds a host with its port against name, name:port or *.name.
func hostMatches(rule, host string) bool {
	host = strings.ToLower(host)
	name, port := splitHost(host)
	want, wantPort := splitHost(rule)
	if wantPort != "" && wantPort != port {
		return false
	}
	if below, ok := strings.CutPrefix(want, "*."); ok {
		return strings.HasSuffix(name, "."+below)
	}
	return name == want
}

// splitHost answers name and port; a name in brackets loses them, as it does
// its final dot.
func splitHost(host string) (name, port string) {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.Trim(host, "[]"), ""
	}
	return strings.TrimSuffix(name, "."), port
}

// dial connects to a public address, or to a private one when the rules have
// its very name.
func (f *fetch) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := &net.Dialer{}
	listed := slices.ContainsFunc(f.hosts, func(rule string) bool {
		return !strings.HasPrefix(rule, "*.") && hostMatches(rule, addr)
	})
	if !listed {
		d.ControlContext = func(_ context.Context, _, at string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(at)
			if err != nil || !isPublic(ap.Addr()) {
				return f.denied("%s is no public address, list its host to allow it", at)
			}
			return nil
		}
	}
	return d.DialContext(ctx, network, addr)
}

// special are ranges of addresses that net/netip takes for public ones: of
// carriers, of protocols, of documentation, of tests, and those that hold an
// IPv4 address inside.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("fec0::/10"),
}

func isPublic(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return a.IsGlobalUnicast() && !a.IsPrivate() && !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(a) })
}

// name is the request as errors call it: without the query and the password,
// which may be keys.
func (f *fetch) name() string {
	return fmt.Sprintf("%s %s://%s%s", f.method, f.url.Scheme, f.url.Host, f.url.EscapedPath())
}

// fault gives an error of the request its form.
func (f *fetch) fault(ctx context.Context, err error) error {
	var ours *stdError
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var web *url.Error
	if errors.As(err, &ours) {
		return ours
	}
	if errors.As(err, &web) {
		err = web.Err // without the URL
	}
	say := func(kind string, again bool, format string, args ...any) error {
		return &stdError{kind: kind, text: f.name() + ": " + fmt.Sprintf(format, args...), cause: err, again: again}
	}
	switch {
	case ctx.Err() != nil, errors.Is(err, os.ErrDeadlineExceeded):
		return say(timedOut, true, "no whole answer within %s", f.timeout)
	case errors.As(err, &dns) && dns.IsNotFound:
		return say(notFound, false, "no such host")
	case errors.As(err, &cert):
		return say(denied, false, "%s", cert)
	case errors.Is(err, syscall.ECONNREFUSED):
		return say(transport, true, "nobody listens there")
	}
	return say(transport, true, "%s", err)
}
