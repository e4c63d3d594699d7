package openai

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/internal/wire"
)

// baseVariable names where the server is when neither conf nor a dialect does.
const baseVariable = "OPENAI_BASE_URL"

// server is the way to one server: its address, the key's name, its headers.
type server struct {
	dialect dialect
	host    port.Host
	base    *url.URL
	keyEnv  string // empty: no key is sent
	needs   bool   // a call without a key is refused
	headers map[string]string
	secrets []string // values of headers that no error may repeat
}

// request is one HTTP request.
type request struct {
	method, path string
	body         []byte // nil: none
}

// server answers the way that conf names. It connects to nothing.
func (p *Port) server(conf port.Conf) (*server, error) {
	s := &server{host: p.host, keyEnv: conf.APIKeyEnv, headers: conf.Headers}
	name := conf.Dialect
	if name == "" {
		name = p.dialect
	}
	if name != "" {
		var err error
		if s.dialect, err = dialectNamed(name); err != nil {
			return nil, err
		}
	}
	where, ambient, err := s.locate(conf.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	if s.secrets, err = wire.Headers(conf.Headers); err != nil {
		return nil, err
	}
	for _, secret := range s.secrets {
		s.tell(secret)
	}
	s.chooseKey(ambient, name != "")
	return s, nil
}

// locate sets the address, and the dialect where nothing has named it. where
// says what gave the address; ambient, that it was the environment.
func (s *server) locate(raw string) (where string, ambient bool, err error) {
	where = "conf.base_url"
	if raw == "" && (s.dialect.name == "" || s.dialect.name == Name) {
		raw = s.env(baseVariable)
		where, ambient = baseVariable, raw != ""
	}
	if raw == "" {
		if s.dialect.name == "" {
			s.dialect = dialects[0]
		}
		raw = s.dialect.base
	}
	if s.base, err = wire.Base(raw); err != nil {
		return where, ambient, err
	}
	if s.dialect.name == "" {
		s.dialect = dialectAt(s.base)
	}
	if usual, _ := url.Parse(s.dialect.base); s.base.Path == "" {
		s.base.Path = usual.Path // people leave the version out
	}
	return where, ambient, nil
}

// chooseKey says which key goes to the server. A key belongs to its provider:
// it goes there, to a server that is called by the provider's name, and, with
// the address from the environment, to where the environment points. To any
// other server goes what conf.api_key_env names.
func (s *server) chooseKey(ambient, named bool) {
	usual, _ := url.Parse(s.dialect.base)
	home := s.base.Hostname() == usual.Hostname() && s.dialect.keyEnv != ""
	switch {
	case s.keyEnv != "":
		s.needs = true
	case ambient:
		s.keyEnv, s.needs = dialects[0].keyEnv, home
	case home || named:
		s.keyEnv, s.needs = s.dialect.keyEnv, home
	}
}

func (s *server) env(name string) string {
	if s.host.Env == nil || name == "" {
		return ""
	}
	value, _ := s.host.Env(name)
	return strings.TrimSpace(value)
}

// transport follows no redirect: it would carry the key to wherever it points.
var transport = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// send makes one attempt and answers a response of status 200, its body unread.
func (s *server) send(ctx context.Context, r request) (*http.Response, error) {
	key, err := s.key()
	if err != nil {
		return nil, err
	}
	under := *s.base
	under.Path += "/"
	at, err := under.Parse(r.path)
	if err != nil {
		panic("BUG: path " + r.path + ": " + err.Error())
	}
	req, err := http.NewRequestWithContext(ctx, r.method, at.String(), bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	s.head(req, key)
	res, err := transport.Do(req)
	if err != nil {
		return nil, err
	}
	res.Body = wire.Cap(res.Body)
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		said, _ := io.ReadAll(res.Body)
		return nil, s.failure(res, said)
	}
	return res, nil
}

func (s *server) head(req *http.Request, key string) {
	req.Header.Set("accept", "application/json, text/event-stream")
	req.Header.Set("user-agent", "knl")
	if req.ContentLength > 0 {
		req.Header.Set("content-type", "application/json")
	}
	if key != "" {
		req.Header.Set("authorization", "Bearer "+key)
	}
	for name, value := range s.headers {
		req.Header.Set(name, value)
	}
}

// fetch makes one attempt and answers the whole body.
func (s *server) fetch(ctx context.Context, r request) ([]byte, error) {
	res, err := s.send(ctx, r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return io.ReadAll(res.Body)
}

// key looks the key up and hands it to the masker before anything else sees it.
func (s *server) key() (string, error) {
	key := s.env(s.keyEnv)
	if key == "" {
		if s.needs && !s.signed() {
			return "", &kernel.CallError{Kind: kernel.Auth, Message: s.keyEnv + ": not set, want the key of the provider there, or in a variable that conf.api_key_env names"}
		}
		return "", nil
	}
	if err := wire.Key(s.keyEnv, key); err != nil {
		return "", &kernel.CallError{Kind: kernel.Auth, Message: err.Error()}
	}
	s.tell(key)
	return key, nil
}

// tell hands a secret to the masker.
func (s *server) tell(secret string) {
	if s.host.Secret != nil {
		s.host.Secret(secret)
	}
}

// signed says whether a header of conf carries what a key would.
func (s *server) signed() bool {
	for name := range s.headers {
		if strings.EqualFold(name, "authorization") || strings.EqualFold(name, "api-key") {
			return true
		}
	}
	return false
}

// ended answers why a call has no answer, with no secret in it.
func (s *server) ended(outer, inner context.Context, err error) error {
	secrets := append([]string{s.env(s.keyEnv)}, s.secrets...)
	var refusal *refusalError
	if errors.As(err, &refusal) && outer.Err() == nil {
		hidden := wire.Hide(&kernel.CallError{Message: refusal.detail}, secrets)
		return &refusalError{hidden.Message}
	}
	return wire.Hide(wire.Ended(outer, inner, err), secrets)
}

// isStream says whether a response is made of events.
func isStream(res *http.Response) bool {
	kind, _, _ := strings.Cut(res.Header.Get("content-type"), ";")
	return strings.EqualFold(strings.TrimSpace(kind), "text/event-stream")
}

// events calls visit with the data of each event until it says that the stream
// is done. A stream that ends before is cut.
func events(res *http.Response, visit func(data []byte) (done bool, err error)) error {
	dec := ssestream.NewDecoder(res)
	for dec.Next() {
		done, err := visit(bytes.TrimSpace(dec.Event().Data))
		if done || err != nil {
			return err
		}
	}
	switch err := dec.Err(); {
	case errors.Is(err, bufio.ErrTooLong), errors.Is(err, wire.ErrTooLong):
		return wire.ErrTooLong
	default:
		return wire.Cut(err)
	}
}
