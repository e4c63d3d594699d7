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
	wire.Line
	dialect dialect
	base    *url.URL
}

// request is one HTTP request.
type request struct {
	method, path string
	body         []byte // nil: none
}

// server answers the way that conf names. It connects to nothing.
func (p *Port) server(conf port.Conf) (*server, error) {
	line, err := wire.NewLine(p.host, conf, "authorization", "api-key")
	if err != nil {
		return nil, err
	}
	s := &server{Line: line}
	name := conf.Dialect
	if name == "" {
		name = p.dialect
	}
	if name != "" {
		if s.dialect, err = dialectNamed(name); err != nil {
			return nil, err
		}
	}
	where, ambient, err := s.locate(conf.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	s.chooseKey(ambient, name != "")
	return s, nil
}

// locate sets the address, and the dialect where nothing has named it. where
// says what gave the address; ambient, that it was the environment.
func (s *server) locate(raw string) (where string, ambient bool, err error) {
	where = "conf.base_url"
	if raw == "" && (s.dialect.name == "" || s.dialect.name == Name) {
		raw = s.Env(baseVariable)
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
	case s.KeyEnv != "":
		s.Needs = true
	case ambient:
		s.KeyEnv, s.Needs = dialects[0].keyEnv, home
	case home || named:
		s.KeyEnv, s.Needs = s.dialect.keyEnv, home
	}
}

// transport follows no redirect: it would carry the key to wherever it points.
var transport = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// send makes one attempt and answers a response of status 200, its body unread.
func (s *server) send(ctx context.Context, r request) (*http.Response, error) {
	key, err := s.Key()
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
	for name, value := range s.Headers {
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

// ended answers why a call has no answer, with no secret in it.
func (s *server) ended(outer, inner context.Context, err error) error {
	var refusal *refusalError
	if errors.As(err, &refusal) && outer.Err() == nil {
		return &refusalError{s.Hide(&kernel.CallError{Message: refusal.detail}).Message}
	}
	return s.Ended(outer, inner, err)
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
