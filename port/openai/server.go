package openai

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/internal/field"
	"github.com/knl-run/knl/port/internal/wire"
)

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
	where, ambient, err := s.locate(conf)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	s.chooseKey(ambient, name != "")
	s.Announce()
	return s, nil
}

// locate sets the address, and the dialect where nothing has named it. where
// says what gave the address; ambient, that it was the environment's for OpenAI.
func (s *server) locate(conf port.Conf) (where string, ambient bool, err error) {
	raw := conf.BaseURL
	where = "conf.base_url"
	if raw == "" {
		usual := s.dialect
		if usual.name == "" {
			usual = dialects[0]
		}
		raw, where = s.Env(usual.baseEnv), usual.baseEnv
		ambient = raw != "" && usual.name == Name
		if raw == "" {
			raw, s.dialect = usual.base, usual
		}
	}
	if s.base, err = wire.Base(raw); err != nil {
		return where, ambient, err
	}
	if s.dialect.name == "" {
		s.dialect = dialectAt(s.base, ambient, conf)
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
	req, err := http.NewRequestWithContext(ctx, r.method, s.base.JoinPath(r.path).String(), bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	s.head(req, key)
	res, err := transport.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusSwitchingProtocols { // its body is the connection, which no context ends
		res.Body.Close()
		return nil, errors.New("the server switches to another protocol (101), which was not asked for")
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		said, _ := io.ReadAll(wire.Beginning(res.Body))
		return nil, s.failure(res, said, key != "" || s.Signed())
	}
	res.Body = wire.Cap(res.Body)
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

// ending is a stream that ended before the event that says so; err is nil where
// the server closed it.
type ending struct{ err error }

// Error answers what the call says of it.
func (e *ending) Error() string { return wire.Cut(e.err).Message }

// events calls visit with the data of each event until it says that the stream
// is done. The error of one that ends before is an *ending.
func events(res *http.Response, visit func(data []byte) (done bool, err error)) error {
	r := bufio.NewReader(res.Body)
	var data []byte
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, wire.ErrTooLong) {
			return wire.ErrTooLong
		}
		line = bytes.TrimRight(line, "\r\n")
		data = appendLine(data, line)
		if event := bytes.TrimSpace(data); len(event) > 0 && (err == nil && len(line) == 0 || err == io.EOF && isEvent(event)) {
			if done, err := visit(event); done || err != nil {
				return err
			}
			data = nil
		}
		switch {
		case err == io.EOF:
			return &ending{}
		case err != nil:
			return &ending{err}
		}
	}
}

// appendLine adds a line to the data of its event. llama.cpp says in a field of
// its own that it failed, and a few servers as bare JSON.
func appendLine(data, line []byte) []byte {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch {
	case string(name) == "data":
		return append(append(data, value...), '\n')
	case string(name) == "error":
		if !json.Valid(value) {
			value = field.Quoted(string(value))
		}
		return field.Map{"error": value}.JSON()
	case len(data) == 0 && bytes.HasPrefix(line, []byte("{")) && json.Valid(line):
		return line
	}
	return data
}

// isEvent says whether what a stream ends with is a whole event, although no
// empty line follows.
func isEvent(data []byte) bool { return string(data) == "[DONE]" || json.Valid(data) }
