// Package wire is what adapters of HTTP providers share: which addresses and
// headers may be sent, how long and how large an answer may be, and what of a
// failure may be repeated.
//
//	Base       a base URL that is safe to send a key to
//	Headers    a conf's own headers, checked
//	Line       whose calls they are: the key, its headers, what of them is secret
//	Warner     says each thing once
//	Cap        a body that ends with an error behind its limit
//	Within     a context with a call's own bounds
//	Ended      why a call has no answer
//	Refusal    a failure that is the provider's no
//	Counter    tokens, as servers write them
//
// Nothing here knows a provider, or opens a connection.
package wire

import (
	"fmt"
	"net/url"
	"slices"
	"sort"
	"strings"
)

// Base answers a base URL without the slash at its end. A URL that carries a
// name, a query or a control character is refused; an error shows no part of it
// that may be secret.
func Base(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch shown := open(raw); {
	case strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return nil, fmt.Errorf("got %q, want a URL without space or control characters", shown)
	case err == nil && u.User != nil, err != nil && strings.Contains(raw, "@"):
		return nil, fmt.Errorf("got a URL with a name or password in it, want the key in a variable that conf.api_key_env names")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, fmt.Errorf("got %q, want http://host or https://host", shown)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(raw, "#"):
		return nil, fmt.Errorf("got %q with more behind it, want a URL without ? and #", shown)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = strings.TrimRight(u.RawPath, "/")
	return u, nil
}

// open answers what of a URL may be shown: nothing before an @ nor behind a ? or
// a #.
func open(raw string) string {
	raw = raw[strings.LastIndex(raw, "@")+1:]
	if i := strings.IndexAny(raw, "?#"); i >= 0 {
		raw = raw[:i]
	}
	return raw
}

// written are the headers of the client itself, which another value would break.
var written = []string{
	"host", "content-type", "content-length", "content-encoding", "transfer-encoding",
	"connection", "accept", "accept-encoding",
}

// isWritten says whether a client writes the header itself.
func isWritten(name string) bool {
	return slices.Contains(written, name) || strings.HasPrefix(name, "x-stainless-")
}

// isSecret says whether a header's name is that of one that holds a credential.
func isSecret(name string) bool {
	return slices.ContainsFunc([]string{"auth", "key", "token", "cookie", "secret"}, func(word string) bool {
		return strings.Contains(name, word)
	})
}

// isToken says whether a name is one that a header may have (RFC 9110, token).
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune("!#$%&'*+.^_`|~-", r)
	})
}

// Headers refuses a header that would be more than one, and answers the values
// that no error may repeat.
func Headers(headers map[string]string) (secrets []string, err error) {
	names := make([]string, 0, len(headers))
	for name := range headers {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		value, lower := headers[name], strings.ToLower(name)
		switch {
		case !isToken(name):
			return nil, fmt.Errorf("conf.headers: got the name %q, want letters, digits and -", name)
		case isWritten(lower):
			return nil, fmt.Errorf("conf.headers: got %q, want none that the port writes itself", name)
		case controls(value):
			return nil, fmt.Errorf("conf.headers.%s: got a value with a line break or control character, want one line", name)
		}
		if isSecret(lower) && len(value) >= 8 {
			secrets = append(secrets, value)
		}
	}
	return secrets, nil
}

func controls(value string) bool {
	return strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// Key says why a key cannot be sent, or nil; the error does not repeat it.
func Key(variable, key string) error {
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return fmt.Errorf("%s: holds a line break, a space or a letter that no key has, want the key alone", variable)
	}
	return nil
}
