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
	wire.Line
	base   string
	client sdk.Client
}

// call is one HTTP request.
type call struct {
	method, path string
	body         []byte // nil: none
}

// server answers the way that conf names. It connects to nothing.
func (p *Port) server(conf port.Conf) (*server, error) {
	line, err := wire.NewLine(p.host, conf, "authorization", "x-api-key")
	if err != nil {
		return nil, err
	}
	s := &server{Line: line}
	if err := s.locate(conf.BaseURL); err != nil {
		return nil, err
	}
	s.Announce()
	s.client = sdk.NewClient(s.options()...)
	return s, nil
}

// locate sets the address and says which key goes there. A key belongs to its
// provider: it goes home and to where the environment points; to a server that
// a conf names goes the key that the conf names.
func (s *server) locate(raw string) error {
	name, own := "conf.base_url", raw != ""
	if !own {
		raw, name = s.Env(baseVariable), baseVariable
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
	s.Needs = s.base == home || s.KeyEnv != ""
	if s.KeyEnv == "" && (s.base == home || !own) {
		s.KeyEnv = keyVariable
	}
	return nil
}

// options are what every call to the server has. A redirect is not followed: it
// would carry the key to wherever it points.
func (s *server) options() []option.RequestOption {
	stay := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	opts := []option.RequestOption{
		option.WithoutEnvironmentDefaults(), option.WithoutOpenTelemetry(), option.WithMaxRetries(0),
		option.WithBaseURL(s.base), option.WithHTTPClient(stay), option.WithMiddleware(capped),
	}
	for name, value := range s.Headers {
		opts = append(opts, option.WithHeader(name, value))
	}
	return opts
}

// capped bounds the body of a response, a failure's too.
func capped(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	res, err := next(req)
	switch {
	case err != nil:
	case res.StatusCode == http.StatusOK:
		res.Body = wire.Cap(res.Body)
	default:
		res.Body = wire.Beginning(res.Body)
	}
	return res, err
}

// send makes one attempt and answers a response of status 200, its body unread.
func (s *server) send(ctx context.Context, c call) (*http.Response, error) {
	key, err := s.Key()
	if err != nil {
		return nil, err
	}
	var body any
	if c.body != nil {
		body = c.body
	}
	var res *http.Response
	if err := s.client.Execute(ctx, c.method, c.path, body, &res, s.credential(key)...); err != nil {
		return nil, s.failure(err, key != "" || s.Signed())
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
		return nil, s.Ended(ctx, ctx, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, s.Ended(ctx, ctx, err)
	}
	return body, nil
}

// credential answers how a call says who it is from: versions of the wire
// before the client's own have a header for the key.
func (s *server) credential(key string) []option.RequestOption {
	switch {
	case key == "" || s.Signed():
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
	for name, value := range s.Headers {
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
	if f.Filtered() {
		return &wire.Refusal{Detail: message}
	}
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
