package anthropic_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/anthropic"
	"github.com/knl-run/knl/port/wiretest"
)

func TestFailures(t *testing.T) {
	page := "<html>\n<h1>Bad   Gateway</h1></html>"
	for name, c := range map[string]struct {
		reply wiretest.Reply
		want  kernel.CallError
	}{
		"a bad request":        {wiretest.Reply{Status: 400, Error: "invalid_request_error", Say: "no"}, kernel.CallError{Kind: kernel.InvalidRequest, Message: "no", Status: 400}},
		"an overflow":          {wiretest.Reply{Status: 400, Error: "invalid_request_error", Say: "prompt is too long: 210000 tokens > 200000 maximum"}, kernel.CallError{Kind: kernel.ContextOverflow, Message: "prompt is too long: 210000 tokens > 200000 maximum", Status: 400}},
		"no credit":            {wiretest.Reply{Status: 400, Error: "invalid_request_error", Say: "Your credit balance is too low"}, kernel.CallError{Kind: kernel.Auth, Message: "Your credit balance is too low", Status: 400}},
		"a bill":               {wiretest.Reply{Status: 402, Error: "billing_error", Say: "pay"}, kernel.CallError{Kind: kernel.Auth, Message: "pay", Status: 402}},
		"a wrong key":          {wiretest.Reply{Status: 401, Error: "authentication_error", Say: "invalid x-api-key " + theKey}, kernel.CallError{Kind: kernel.Auth, Message: "invalid x-api-key ***", Status: 401}},
		"no permission":        {wiretest.Reply{Status: 403, Error: "permission_error", Say: "no"}, kernel.CallError{Kind: kernel.Auth, Message: "no", Status: 403}},
		"an unknown model":     {wiretest.Reply{Status: 404, Error: "not_found_error", Say: "model: x"}, kernel.CallError{Kind: kernel.InvalidRequest, Message: "model: x", Status: 404}},
		"too large":            {wiretest.Reply{Status: 413, Error: "request_too_large", Say: "big"}, kernel.CallError{Kind: kernel.ContextOverflow, Message: "big", Status: 413}},
		"a rate limit":         {wiretest.Reply{Status: 429, Error: "rate_limit_error", Say: "slow down", Header: map[string]string{"retry-after": "7"}}, kernel.CallError{Kind: kernel.RateLimited, Message: "slow down", RetryAfter: 7, Status: 429}},
		"a long wait":          {wiretest.Reply{Status: 429, Error: "rate_limit_error", Say: "x", Header: map[string]string{"retry-after": "86400"}}, kernel.CallError{Kind: kernel.RateLimited, Message: "x", RetryAfter: 86400, Status: 429}},
		"a wait in ms":         {wiretest.Reply{Status: 429, Error: "rate_limit_error", Say: "x", Header: map[string]string{"retry-after": "1", "retry-after-ms": "250"}}, kernel.CallError{Kind: kernel.RateLimited, Message: "x", RetryAfter: 0.25, Status: 429}},
		"a spent budget":       {wiretest.Reply{Status: 429, Raw: `{"type":"error","error":{"type":"rate_limit_error","message":"spent","details":{"error_code":"contract_spend_limit_reached"}}}`}, kernel.CallError{Kind: kernel.Auth, Message: "spent", Status: 429}},
		"no repeating":         {wiretest.Reply{Status: 500, Error: "api_error", Say: "x", Header: map[string]string{"x-should-retry": "false"}}, kernel.CallError{Kind: kernel.Server, Message: "x", Status: 500, Retry: new(bool)}},
		"a fault of theirs":    {wiretest.Reply{Status: 500, Error: "api_error", Say: "oops"}, kernel.CallError{Kind: kernel.Server, Message: "oops", Status: 500}},
		"a timeout of theirs":  {wiretest.Reply{Status: 504, Error: "timeout_error", Say: "late"}, kernel.CallError{Kind: kernel.Transport, Message: "late", Status: 504}},
		"overloaded":           {wiretest.Reply{Status: 529, Error: "overloaded_error", Say: "busy", Header: map[string]string{"retry-after": "3"}}, kernel.CallError{Kind: kernel.Overloaded, Message: "busy", RetryAfter: 3, Status: 529}},
		"unavailable":          {wiretest.Reply{Status: 503, Error: "api_error", Say: "busy"}, kernel.CallError{Kind: kernel.Overloaded, Message: "busy", Status: 503}},
		"a page of a proxy":    {wiretest.Reply{Status: 502, Raw: page, Type: "text/html"}, kernel.CallError{Kind: kernel.Server, Message: "the server answered 502 Bad Gateway: <html> <h1>Bad Gateway</h1></html>", Status: 502}},
		"a failure said empty": {wiretest.Reply{Status: 500, Raw: " "}, kernel.CallError{Kind: kernel.Server, Message: "the provider answered 500", Status: 500}},
		"a page under 200":     {wiretest.Reply{Raw: page, Type: "text/html"}, kernel.CallError{Kind: kernel.Server, Message: "the server answered what is no message of the Messages API: <html> <h1>Bad Gateway</h1></html>"}},
		"JSON of another kind": {wiretest.Reply{Raw: `{"choices":[]}`}, kernel.CallError{Kind: kernel.Server, Message: `the server answered what is no message of the Messages API: {"choices":[]}`}},
		"an error under 200":   {wiretest.Reply{Error: "overloaded_error", Say: "busy"}, kernel.CallError{Kind: kernel.Overloaded, Message: "busy"}},
		"an overflow of 200":   {wiretest.Reply{Error: "invalid_request_error", Say: "prompt is too long"}, kernel.CallError{Kind: kernel.ContextOverflow, Message: "prompt is too long"}},
		"an error of no kind":  {wiretest.Reply{Error: "gremlin_error", Say: "boo"}, kernel.CallError{Kind: kernel.Server, Message: "boo"}},
		"a block of no type":   {wiretest.Reply{Blocks: []wiretest.Block{{Raw: []byte(`{"text":"x"}`)}}}, kernel.CallError{Kind: kernel.Server, Message: `the server answered a block that cannot be read: {"text":"x"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, conf port.Conf) {
				r := newRig(t)
				r.server.Reply(c.reply)
				a, err := r.call(conf, hello(), nil)
				require.Nil(t, a)
				require.Equal(t, &c.want, failure(t, err))
				require.Len(t, r.server.Requests(), 1, "the client repeats nothing")
			})
		})
	}
}

func TestRetryAfterADate(t *testing.T) {
	r := newRig(t)
	r.server.Reply(wiretest.Reply{Status: 529, Error: "overloaded_error", Header: map[string]string{"retry-after": time.Now().Add(2 * time.Hour).UTC().Format(http.TimeFormat)}})
	_, err := r.call(port.Conf{}, hello(), nil)
	require.InDelta(t, 7200, failure(t, err).RetryAfter, 5)
}

// What was paid for is not lost because of what a server counts.
func TestOddUsage(t *testing.T) {
	for said, want := range map[string]kernel.Usage{
		`{"output_tokens":12}`:                                     {Input: 10, Output: 12},
		`{"output_tokens":12.0,"input_tokens":null}`:               {Input: 10, Output: 12},
		`{"output_tokens":"x","input_tokens":7}`:                   {Input: 7, Output: 1},
		`{"output_tokens":-3,"output_tokens_details":"x"}`:         {Input: 10, Output: 1},
		`{"output_tokens":9,"output_tokens_details":null}`:         {Input: 10, Output: 9},
		`{"output_tokens":9,"cache_read_input_tokens":1e3}`:        {Input: 10, Output: 9, CacheRead: 1000},
		`{"output_tokens_details":{"thinking_tokens":1e99},"a":1}`: {Input: 10, Output: 1},
		`7`: {Input: 10, Output: 1},
	} {
		r := newRig(t)
		r.server.Reply(wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say("hello")}, Mangle: func(name, data string) (string, string) {
			switch name {
			case "message_start":
				return name, `{"type":"message_start","message":{"type":"message","role":"assistant","content":[],"usage":{"input_tokens":10,"output_tokens":1}}}`
			case "message_delta":
				return name, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":` + said + `}`
			}
			return name, data
		}})
		a, err := r.call(port.Conf{}, hello(), func(kernel.Delta) {})
		require.NoError(t, err, said)
		require.Equal(t, want, a.Usage, said)
	}
}

// A member of another type than the wire has it loses no answer, and an error that
// is text alone is heard.
func TestOddMembers(t *testing.T) {
	swapped := func(event, old, instead string) func(string, string) (string, string) {
		return func(name, data string) (string, string) {
			if name == event {
				return name, strings.Replace(data, old, instead, 1)
			}
			return name, data
		}
	}
	call := []wiretest.Block{wiretest.Use("77", "look", "{}")}
	for name, reply := range map[string]wiretest.Reply{
		"a number as an id": {Blocks: call, Mangle: swapped("content_block_start", `"id":"77"`, `"id":77`)},
		"details as text":   {Blocks: call, Mangle: swapped("message_delta", `"delta":{`, `"delta":{"stop_details":"why",`)},
	} {
		r := newRig(t)
		r.server.Reply(reply)
		a, err := r.call(port.Conf{}, hello(), nil)
		require.NoError(t, err, name)
		require.JSONEq(t, `[{"id":"77","input":{},"name":"look","type":"tool_use"}]`, string(a.Content), name)
	}
	for _, raw := range []string{`{"type":"error","error":"Overloaded"}`, `{"error":"Overloaded"}`} {
		r := newRig(t)
		r.server.Reply(wiretest.Reply{Status: 529, Raw: raw})
		_, err := r.call(port.Conf{}, hello(), nil)
		require.Equal(t, &kernel.CallError{Kind: kernel.Overloaded, Message: "Overloaded", Status: 529}, failure(t, err))
	}
	r := newRig(t)
	r.server.Reply(wiretest.Reply{Blocks: call, Mangle: func(name, data string) (string, string) {
		if name == "message_delta" {
			return "error", `{"type":"error","error":"Overloaded"}`
		}
		return name, data
	}})
	_, err := r.call(port.Conf{}, hello(), nil)
	require.Equal(t, "Overloaded", failure(t, err).Message)
}

// Blocks that the log cannot hold as they are keep their text, and go back as
// they came where the provider takes them.
func TestBlocksThatALogCannotHold(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 150) + "1" + strings.Repeat("}", 150)
	for name, c := range map[string]struct {
		raw  string
		back bool
	}{
		"too deep":                  {`{"type":"server_thing","data":` + deep + `}`, true},
		"a provider of its own":     {`{"type":"server_thing","provider":"bing","n":1}`, true},
		"a key twice":               {`{"type":"server_thing","a":1,"a":2}`, false},
		"thinking of a half letter": {`{"type":"thinking","thinking":"a \ud83d b","signature":"sig"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.server.Reply(wiretest.Reply{Blocks: []wiretest.Block{{Raw: []byte(c.raw)}, wiretest.Say("so")}}, wiretest.Reply{})
			a, err := r.call(port.Conf{NoStream: true}, hello(), nil)
			require.NoError(t, err)
			next := hello()
			next.Messages = append(next.Messages, json.RawMessage(`{"content":`+string(a.Content)+`,"role":"assistant"}`), json.RawMessage(`{"content":"more","role":"user"}`))
			_, err = r.call(port.Conf{NoStream: true}, next, nil)
			require.NoError(t, err)
			require.Contains(t, string(a.Content), `"raw":`)
			require.Equal(t, c.back, strings.Contains(string(r.server.Last().Body), c.raw))
		})
	}
}

func TestAFilterIsARefusal(t *testing.T) {
	r := newRig(t)
	r.server.Reply(wiretest.Reply{Status: 400, Error: "invalid_request_error", Say: "Output blocked by content filtering policy, " + theKey})
	a, err := r.call(port.Conf{}, hello(), nil)
	require.NoError(t, err)
	require.Equal(t, []any{true, "content_filter", "Output blocked by content filtering policy, ***"}, []any{a.Refused, a.RefusalKind, a.RefusalDetail})
}

func TestAnEndlessFailureKeepsItsStatus(t *testing.T) {
	r := newRig(t)
	r.server.Reply(wiretest.Reply{Status: 503, Raw: strings.Repeat("x", 3<<20)})
	_, err := r.call(port.Conf{}, hello(), nil)
	require.Equal(t, []any{kernel.Overloaded, 503}, []any{failure(t, err).Kind, failure(t, err).Status})
}

func TestACutBody(t *testing.T) {
	r := newRig(t)
	r.server.Reply(wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say("hello")}, Cut: 40})
	a, err := r.call(port.Conf{NoStream: true}, hello(), nil)
	require.Nil(t, a)
	require.Equal(t, kernel.Transport, failure(t, err).Kind)
}

func TestNobodyThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	r := newRig(t)
	_, err = r.call(port.Conf{BaseURL: "http://" + l.Addr().String()}, hello(), nil)
	require.Equal(t, kernel.Transport, failure(t, err).Kind)
}

// A redirect would carry the key to a stranger.
func TestNoRedirect(t *testing.T) {
	reached := false
	stranger := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer stranger.Close()
	server := httptest.NewServer(http.RedirectHandler(stranger.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	r := newRig(t)
	_, err := r.call(port.Conf{BaseURL: server.URL}, hello(), nil)
	require.Contains(t, failure(t, err).Message, "the server answered 307, want 200")
	require.False(t, reached)
}

// A body without an end is read up to a limit.
func TestEndlessBody(t *testing.T) {
	for name, kind := range map[string]string{"stream": "text/event-stream", "whole": "application/json"} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("content-type", kind)
				line := []byte(": " + strings.Repeat("x", 1<<20) + "\n\n")
				for i := 0; i < 200; i++ {
					if _, err := w.Write(line); err != nil {
						return
					}
				}
			}))
			defer server.Close()
			r := newRig(t)
			_, err := r.call(port.Conf{BaseURL: server.URL}, hello(), nil)
			require.Equal(t, &kernel.CallError{Kind: kernel.Server, Message: "the answer is longer than knl takes: 64 MiB, and 32 MiB in one event", Retry: new(bool)}, failure(t, err))
		})
	}
}

func TestNoKey(t *testing.T) {
	p := anthropic.New(port.Host{})
	llm, err := p.Open(port.Conf{Model: "claude-opus-4-7"})
	require.NoError(t, err)
	_, err = llm.Call(context.Background(), hello(), kernel.CallOptions{})
	require.Equal(t, &kernel.CallError{Kind: kernel.Auth, Message: "ANTHROPIC_API_KEY: not set, want the key of the provider there, or in a variable that conf.api_key_env names"}, failure(t, err))
	err = p.Health(context.Background(), port.Conf{APIKeyEnv: "MY_KEY", BaseURL: "http://127.0.0.1:9"})
	require.Contains(t, err.Error(), "auth: MY_KEY: not set")
}

// A key goes to its provider and to where the environment points, and to
// another server only when the conf names it.
func TestWhoseKey(t *testing.T) {
	r := newRig(t)
	_, err := r.call(port.Conf{BaseURL: r.server.URL}, hello(), nil)
	require.EqualError(t, err, "auth: x-api-key header is required: no key was sent, want its variable in conf.api_key_env")
	require.Empty(t, r.secrets)
	r.server.Reply(wiretest.Reply{})
	_, err = r.call(port.Conf{BaseURL: r.server.URL, APIKeyEnv: "ANTHROPIC_API_KEY"}, hello(), nil)
	require.NoError(t, err)
}

func TestABadKey(t *testing.T) {
	p := anthropic.New(port.Host{Env: func(string) (string, bool) { return "sk-1\r\nx-evil: 1", true }})
	err := p.Health(context.Background(), port.Conf{BaseURL: "http://127.0.0.1:9", APIKeyEnv: "X"})
	require.Equal(t, kernel.Auth, failure(t, err).Kind)
	require.NotContains(t, err.Error(), "sk-1")
}

func TestBadConf(t *testing.T) {
	p := anthropic.New(port.Host{})
	for want, conf := range map[string]port.Conf{
		`conf.dialect: got "vllm", want none`:                                            {Model: "m", Dialect: "vllm"},
		`conf.api: got "responses", want none`:                                           {Model: "m", API: "responses"},
		`conf.model: got nothing`:                                                        {BaseURL: "http://x"},
		`conf.base_url: got "http://x\r\nx-evil: 1", want a URL without space`:           {Model: "m", BaseURL: "http://x\r\nx-evil: 1"},
		`conf.base_url: got "http://x y", want a URL without space`:                      {Model: "m", BaseURL: "http://x y"},
		`conf.base_url: got "ftp://x", want http://host`:                                 {Model: "m", BaseURL: "ftp://x"},
		`conf.base_url: got "localhost:8080", want http://host`:                          {Model: "m", BaseURL: "localhost:8080"},
		`conf.base_url: got a URL with a name or password in it`:                         {Model: "m", BaseURL: "https://user:pass@x"},
		`conf.base_url: got "https://x" with more behind it, want a URL without ? and #`: {Model: "m", BaseURL: "https://x?a=b"},
		`conf.headers: got the name "x y", want letters, digits and -`:                   {Model: "m", Headers: map[string]string{"x y": "1"}},
		`conf.headers: got the name "x\r\ny"`:                                            {Model: "m", Headers: map[string]string{"x\r\ny": "1"}},
		`conf.headers.x-a: got a value with a line break`:                                {Model: "m", Headers: map[string]string{"x-a": "1\r\nx-evil: 1"}},
		`conf.headers: got "Content-Length", want none that the port writes itself`:      {Model: "m", Headers: map[string]string{"Content-Length": "1"}},
	} {
		_, err := p.Open(conf)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "pass@")
	}
	env := anthropic.New(port.Host{Env: func(string) (string, bool) { return "nowhere", true }})
	_, err := env.Open(port.Conf{Model: "m"})
	require.EqualError(t, err, `ANTHROPIC_BASE_URL: got "nowhere", want http://host or https://host`)
}

func TestHeaders(t *testing.T) {
	r := newRig(t)
	r.server.Reply(wiretest.Reply{}, wiretest.Reply{}, wiretest.Reply{Status: 401, Error: "authentication_error", Say: "bad token Bearer abc-123-secret"})
	_, err := r.call(port.Conf{BaseURL: r.server.URL + "/v1/", APIKeyEnv: "ANTHROPIC_API_KEY", Headers: map[string]string{"x-team": "a"}}, hello(), nil)
	require.NoError(t, err)
	h := r.server.Last().Header
	require.Equal(t, []string{"Bearer " + theKey, "", "a", "2026-10-21"}, []string{h.Get("authorization"), h.Get("x-api-key"), h.Get("x-team"), h.Get("anthropic-version")})

	_, err = r.call(port.Conf{Headers: map[string]string{"Anthropic-Version": "2023-06-01"}}, hello(), nil)
	require.NoError(t, err)
	h = r.server.Last().Header
	require.Equal(t, []string{"", theKey, "2023-06-01"}, []string{h.Get("authorization"), h.Get("x-api-key"), h.Get("anthropic-version")})

	p := anthropic.New(port.Host{})
	llm, err := p.Open(port.Conf{Model: "m", BaseURL: r.server.URL, Headers: map[string]string{"Authorization": "Bearer abc-123-secret"}})
	require.NoError(t, err)
	_, err = llm.Call(context.Background(), hello(), kernel.CallOptions{})
	require.EqualError(t, err, "auth: bad token ***")
	require.Empty(t, r.server.Last().Header.Get("x-api-key"))
}
