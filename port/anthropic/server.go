package anthropic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/internal/wire"
)

const (
	keyVariable  = "ANTHROPIC_API_KEY"
	baseVariable = "ANTHROPIC_BASE_URL"
	home         = "https://api.anthropic.com"
)

// server is the way to one server: its address, the key's name, the client.
type server struct {
	host    port.Host
	base    string
	keyEnv  string // empty: no key is sent
	needs   bool   // a call without a key is refused
	headers map[string]string
	secrets []string // values of headers that no error may repeat
	client  sdk.Client
}

// call is one HTTP request.
type call struct {
	method, path string
	body         []byte // nil: none
}

// server answers the way that conf names. It connects to nothing.
func (p *Port) server(conf port.Conf) (*server, error) {
	s := &server{host: p.host, keyEnv: conf.APIKeyEnv, headers: conf.Headers}
	if err := s.locate(conf.BaseURL); err != nil {
		return nil, err
	}
	var err error
	if s.secrets, err = wire.Headers(conf.Headers); err != nil {
		return nil, err
	}
	s.client = sdk.NewClient(s.options()...)
	return s, nil
}

// locate sets the address and says which key goes there. A key belongs to its
// provider: it goes home and to where the environment points; to a server that
// a conf names goes the key that the conf names.
func (s *server) locate(raw string) error {
	name, own := "conf.base_url", raw != ""
	if !own {
		raw, name = s.env(baseVariable), baseVariable
	}
	if raw == "" {
		raw = home
	}
	base, err := wire.Base(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	base.Path = strings.TrimSuffix(base.Path, "/v1") // the client writes the version itself
	s.base = base.String()
	s.needs = s.base == home || s.keyEnv != ""
	if s.keyEnv == "" && (s.base == home || !own) {
		s.keyEnv = keyVariable
	}
	return nil
}

func (s *server) env(name string) string {
	if s.host.Env == nil || name == "" {
		return ""
	}
	value, _ := s.host.Env(name)
	return strings.TrimSpace(value)
}

// options are what every call to the server has. A redirect is not followed: it
// would carry the key to wherever it points.
func (s *server) options() []option.RequestOption {
	stay := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	opts := []option.RequestOption{
		option.WithoutEnvironmentDefaults(), option.WithoutOpenTelemetry(), option.WithMaxRetries(0),
		option.WithBaseURL(s.base), option.WithHTTPClient(stay), option.WithMiddleware(capped),
	}
	for name, value := range s.headers {
		opts = append(opts, option.WithHeader(name, value))
	}
	return opts
}

// capped bounds the body of a response, a failure's too.
func capped(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	res, err := next(req)
	if err == nil {
		res.Body = wire.Cap(res.Body)
	}
	return res, err
}

// send makes one attempt and answers a response of status 200, its body unread.
func (s *server) send(ctx context.Context, c call) (*http.Response, error) {
	key, err := s.key()
	if err != nil {
		return nil, err
	}
	var body any
	if c.body != nil {
		body = c.body
	}
	var res *http.Response
	if err := s.client.Execute(ctx, c.method, c.path, body, &res, s.credential(key)...); err != nil {
		return nil, s.failure(err, key != "" || s.signed())
	}
	if res.StatusCode != http.StatusOK {
		_ = res.Body.Close()
		return nil, port.Classify(port.Failure{Status: res.StatusCode, Message: fmt.Sprintf("the server answered %d, want 200: does %s speak the Messages API?", res.StatusCode, s.base)}, time.Now())
	}
	return res, nil
}

// fetch makes one attempt and answers the whole body.
func (s *server) fetch(ctx context.Context, c call) ([]byte, error) {
	res, err := s.send(ctx, c)
	if err != nil {
		return nil, s.ended(ctx, ctx, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, s.ended(ctx, ctx, err)
	}
	return body, nil
}

// ended answers why a call has no answer, without what must not be repeated: an
// error is recorded.
func (s *server) ended(outer, inner context.Context, err error) error {
	return wire.Hide(wire.Ended(outer, inner, err), append([]string{s.env(s.keyEnv)}, s.secrets...))
}

// key looks the key up and hands it to the masker before anything else sees it.
func (s *server) key() (string, error) {
	key := s.env(s.keyEnv)
	if key == "" && s.needs && !s.signed() {
		return "", &kernel.CallError{Kind: kernel.Auth, Message: fmt.Sprintf("%s: not set, want the key of the provider there, or in a variable that conf.api_key_env names", s.keyEnv)}
	}
	if err := wire.Key(s.keyEnv, key); err != nil {
		return "", &kernel.CallError{Kind: kernel.Auth, Message: err.Error()}
	}
	if key != "" && s.host.Secret != nil {
		s.host.Secret(key)
	}
	return key, nil
}

// signed says whether a header of conf carries what a key would.
func (s *server) signed() bool {
	for name := range s.headers {
		if strings.EqualFold(name, "authorization") || strings.EqualFold(name, "x-api-key") {
			return true
		}
	}
	return false
}

// credential answers how a call says who it is from: versions of the wire
// before the client's own have a header for the key.
func (s *server) credential(key string) []option.RequestOption {
	switch {
	case key == "" || s.signed():
		return nil
	case s.version() < newWire:
		return []option.RequestOption{option.WithHeader("x-api-key", key)}
	}
	return []option.RequestOption{option.WithAPIKey(key)}
}

// newWire is the version of the wire that the client speaks. A header of conf
// may name an older one.
const newWire = "2026-10-21"

// version answers the version of the wire that calls name.
func (s *server) version() string {
	for name, value := range s.headers {
		if strings.EqualFold(name, "anthropic-version") {
			return value
		}
	}
	return newWire
}

// failure answers what the client raised as the error of a call. Only what the
// provider said is taken from it: the client's text repeats the request. known
// says whether the call said who it is from.
func (s *server) failure(err error, known bool) error {
	var api *sdk.Error
	if !errors.As(err, &api) {
		return err
	}
	code, message := spoken(api)
	f := port.Failure{Status: api.StatusCode, Code: code, Message: message}
	again := ""
	if api.Response != nil {
		f.RetryAfter, again = wire.Waiting(api.Response.Header), api.Response.Header.Get("x-should-retry")
	}
	out := port.Classify(f, time.Now())
	switch {
	case strings.HasSuffix(string(api.ErrorCode()), "spend_limit_reached"):
		out.Kind = kernel.Auth // a spent budget comes as 429, and no waiting helps
	case out.Kind == kernel.Auth && !known:
		out.Message += ": no key was sent, want its variable in conf.api_key_env"
	case again == "false" && out.Retryable():
		out.Retry = new(bool)
	}
	return out
}
