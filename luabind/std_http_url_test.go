package luabind

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// switches answers 101, which nobody asked for, and hears when the connection ends.
func switches(t *testing.T, ended chan<- error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if !assert.NoError(t, err) {
			return
		}
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		_, err = conn.Read(make([]byte, 1))
		conn.Close()
		ended <- err
	}
}

// The body of a 101 is the connection, which no deadline ends.
func TestHTTPTakesNoUpgrade(t *testing.T) {
	ended := make(chan error, 1)
	h := newWebHost(t, map[string]http.HandlerFunc{"/": switches(t, ended)})
	kind, text := h.raised(t, `std.http.request{ url = base, timeout = 9 }`)
	assert.Equal(t, "transport", kind)
	assert.Contains(t, text, "the server switches to another protocol (101), which was not asked for")
	assert.ErrorIs(t, <-ended, io.EOF)
}

// The name in a URL may be a token as well as the password.
func TestHTTPShowsNoLogin(t *testing.T) {
	h := newWebHost(t, map[string]http.HandlerFunc{"/a": echo})
	values, err := h.RunString(context.Background(), "chunk", `return std.http.request{ url = "http://tok:pw@" .. host .. "/a?b=c" }.url`)
	require.NoError(t, err)
	assert.Equal(t, h.URL+"/a?b=c", values[0].String())
}

// A login with a / in it is read as a host and a path: what a secret begins with
// would be asked of the name server, and shown.
func TestURLWithASecretThatEndsTheHost(t *testing.T) {
	mask := &Masker{}
	for _, s := range []string{"Zq7Xv2/Lm9Rt4Wp1", "https://hooks.example.org/T0/Zq7Xv2Lm"} {
		mask.Add(s)
	}
	const why = "got a secret with one of / ? # in it in front of @, which is to be %-encoded there"
	for text, want := range map[string]string{
		"http://Zq7Xv2/Lm9Rt4Wp1@h.example.org/":            why,
		"http://Zq7Xv2%2FLm9Rt4Wp1@h.example.org/":          "",
		"http://h.example.org/Zq7Xv2/Lm9Rt4Wp1@1":           "",
		"https://hooks.example.org/T0/Zq7Xv2Lm":             "",
		"https://h.example.org/@scope/x?a=Zq7Xv2/Lm9Rt4Wp1": "",
		"http://u:Zq7Xv2/Lm9Rt4Wp1@h.example.org/":          "got text that is no URL",
		`http://h\@x/`: "got text that is no URL",
	} {
		_, got := webURL(text, mask)
		assert.Equal(t, want, got, text)
	}
}

func TestHostRulesThatMatchNothing(t *testing.T) {
	for rule, want := range map[string]string{
		"example.com": "", "*.example.com": "", "example.com:443": "", "*.example.com:8080": "", "localhost": "", "bücher.de": "", "a_b.c": "",
		"example.com.": "", "127.0.0.1": "", "127.0.0.1:80": "", "::1": "", "[::1]": "", "[::1]:80": "",
		"*": `"*" is no name of a host`, "*.": `"*." is no name of a host`, "api.*.com": `"api.*.com" is no name of a host`, "*:443": `"*" is no name of a host`,
		"": `"" is no name of a host`, "a..b": `"a..b" is no name of a host`, ":80": `"" is no name of a host`, "[::1": `"[::1" is no name of a host`,
		"http://h": `"//h" is no port`, "u@h": `"u@h" is no name of a host`, "h/x": `"h/x" is no name of a host`,
		"localhost:abc": `"abc" is no port`, "localhost:": `"" is no port`, "localhost:0": `"0" is no port`, "localhost:65536": `"65536" is no port`,
		"localhost:018099": `"018099" is no port`, "localhost:+80": `"+80" is no port`, "h:8_0": `"8_0" is no port`,
		"1.2.3": `"1.2.3" is no name of a host`, "0x7f.1": `"0x7f.1" is no name of a host`, "h.0x7F": `"h.0x7F" is no name of a host`, "127.0.0.01": `"127.0.0.01" is no name of a host`,
		"*.0.0.1": `"*.0.0.1" is no name of a host`, "1.2.3.4.5": `"1.2.3.4.5" is no name of a host`, "2130706433": `"2130706433" is no name of a host`,
		"-x.com": `"-x.com" is no name of a host`, "x-.com": `"x-.com" is no name of a host`, strings.Repeat("a", 64): `"` + strings.Repeat("a", 64) + `" is no name of a host`,
		"xn--bcher-kva.de": "", "1.example": "", "0x7f.com": "", "3com.com": "", "host-1": "", "example.0a": "",
	} {
		assert.Equal(t, want, hostFault(rule), "%q", rule)
	}
}

func TestHostRulesKnowThePortOfTheScheme(t *testing.T) {
	for _, c := range []struct {
		rule, url string
		want      bool
	}{
		{"api.x.com:443", "https://api.x.com/", true}, {"api.x.com:443", "http://api.x.com/", false}, {"api.x.com:80", "http://api.x.com/", true},
		{"*.x.com:443", "https://api.x.com/", true}, {"[::1]:80", "http://[::1]/", true}, {"api.x.com", "https://api.x.com/", true},
	} {
		u, why := webURL(c.url, &Masker{})
		require.Empty(t, why)
		f := &fetch{method: "GET", url: u, hosts: []string{c.rule}}
		assert.Equal(t, c.want, f.permits(u) == nil, "%s %s", c.rule, c.url)
	}
}

func TestHostRules(t *testing.T) {
	for _, c := range []struct {
		rule, host string
		want       bool
	}{
		{"example.com", "example.com", true}, {"example.com", "EXAMPLE.com.", true}, {"example.com", "example.com:8080", true},
		{"example.com:8080", "example.com:8080", true}, {"example.com:8080", "example.com", false}, {"example.com", "a.example.com", false},
		{"*.example.com", "a.example.com", true}, {"*.example.com", "a.b.example.com:1", true}, {"*.example.com", "example.com", false},
		{"*.example.com", "badexample.com", false}, {"example.com", "example.com.evil.org", false}, {"::1", "[::1]:80", true}, {"[::1]:80", "[::1]:80", true},
	} {
		assert.Equal(t, c.want, hostMatches(c.rule, c.host), "%s %s", c.rule, c.host)
	}
}

func TestPublicAddresses(t *testing.T) {
	for text, want := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "2606:4700::1111": true,
		"127.0.0.1": false, "127.9.9.9": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false,
		"0.0.0.0": false, "100.64.0.1": false, "255.255.255.255": false, "224.0.0.1": false, "198.18.0.1": false, "::": false, "::1": false,
		"fe80::1%eth0": false, "fc00::1": false, "ff02::1": false, "::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false,
		"64:ff9b::7f00:1": false, "2002:7f00:1::": false,
	} {
		assert.Equal(t, want, isPublic(netip.MustParseAddr(text)), text)
	}
}
