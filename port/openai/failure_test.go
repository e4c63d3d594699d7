package openai_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/openai"
	"github.com/knl-run/knl/port/wiretest"
)

// exceeded is what Google says of any quota.
const exceeded = "You exceeded your current quota, please check your plan and billing details."

func TestErrors(t *testing.T) {
	for name, c := range map[string]struct {
		dialect string
		reply   wiretest.Reply
		kind    kernel.CallKind
		wait    float64
		says    string
	}{
		"rate":        {"openai", wiretest.Reply{Status: 429, Error: "rate_limit_exceeded", Say: "slow down", Header: map[string]string{"retry-after": "7"}}, kernel.RateLimited, 7, "slow down"},
		"long wait":   {"openai", wiretest.Reply{Status: 429, Error: "rate_limit_exceeded", Say: "slow down", Header: map[string]string{"retry-after": "86400"}}, kernel.RateLimited, 86400, ""},
		"in ms":       {"openai", wiretest.Reply{Status: 429, Error: "rate_limit_exceeded", Say: "slow down", Header: map[string]string{"retry-after-ms": "250", "retry-after": "1"}}, kernel.RateLimited, 0.25, ""},
		"quota":       {"openai", wiretest.Reply{Status: 429, Error: "insufficient_quota", Say: "You exceeded your current quota"}, kernel.Auth, 0, ""},
		"key":         {"openai", wiretest.Reply{Status: 401, Error: "invalid_api_key", Say: "Incorrect API key provided: " + key}, kernel.Auth, 0, "Incorrect API key provided: ***"},
		"overflow":    {"openai", wiretest.Reply{Status: 400, Error: "context_length_exceeded", Say: "too long"}, kernel.ContextOverflow, 0, ""},
		"vllm's":      {"vllm", wiretest.Reply{Status: 400, Error: "BadRequestError", Say: "This model's maximum context length is 4096 tokens."}, kernel.ContextOverflow, 0, ""},
		"old vllm's":  {"vllm", wiretest.Reply{Status: 400, Raw: `{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}`}, kernel.ContextOverflow, 0, "This model's maximum context length is 4096 tokens."},
		"llama's":     {"llamacpp", wiretest.Reply{Status: 400, Error: "exceed_context_size_error", Say: "the request exceeds the available context size"}, kernel.ContextOverflow, 0, ""},
		"loading":     {"llamacpp", wiretest.Reply{Status: 503, Error: "unavailable_error", Say: "Loading model"}, kernel.Overloaded, 0, "Loading model"},
		"not pulled":  {"ollama", wiretest.Reply{Status: 404, Raw: `{"error":"model \"x\" not found"}`}, kernel.InvalidRequest, 0, `model "x" not found`},
		"a minute's":  {"vllm", wiretest.Reply{Status: 429, Raw: `[{"error":{"code":429,"message":"` + exceeded + `","status":"RESOURCE_EXHAUSTED","details":[{"@type":"x","violations":[{"quotaId":"GenerateRequestsPerMinute"}]},{"retryDelay":"34s"}]}}]`}, kernel.RateLimited, 34, exceeded + " (GenerateRequestsPerMinute)"},
		"a day's":     {"vllm", wiretest.Reply{Status: 429, Raw: `{"error":{"code":429,"message":"` + exceeded + `","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerDay"}]},{"retryDelay":"34s"}]}}`}, kernel.Auth, 34, exceeded + " (GenerateRequestsPerDay)"},
		"relayed one": {"openrouter", wiretest.Reply{Status: 429, Raw: `{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"{\"error\":{\"code\":429,\"message\":\"` + exceeded + `\",\"status\":\"RESOURCE_EXHAUSTED\",\"details\":[{\"retryDelay\":\"34.5s\"}]}}","provider_name":"Google"}}}`}, kernel.RateLimited, 34.5, "Provider returned error (Google): " + exceeded},
		"no key":      {"vllm", wiretest.Reply{Status: 400, Raw: `[{"error":{"code":400,"message":"API key expired. Please renew the API key.","status":"INVALID_ARGUMENT","details":[{"@type":"x","reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}]`}, kernel.Auth, 0, "API key expired. Please renew the API key."},
		"reset":       {"openrouter", wiretest.Reply{Status: 429, Raw: `{"error":{"message":"Rate limit exceeded: free-models-per-min. ","code":429,"metadata":{"headers":{"X-RateLimit-Limit":"20","X-RateLimit-Reset":"1"}}}}`}, kernel.RateLimited, 0, ""},
		"odd details": {"vllm", wiretest.Reply{Status: 429, Raw: `{"error":{"code":429,"message":"slow down","status":429,"details":"none"}}`}, kernel.RateLimited, 0, "slow down"},
		"no credit":   {"openrouter", wiretest.Reply{Status: 402, Error: "payment", Say: "Insufficient credits"}, kernel.Auth, 0, ""},
		"fastapi":     {"vllm", wiretest.Reply{Status: 422, Raw: `{"detail":[{"loc":["body"],"msg":"field required"}]}`}, kernel.InvalidRequest, 0, `[{"loc":["body"],"msg":"field required"}]`},
		"a page":      {"openai", wiretest.Reply{Status: 502, Type: "text/html", Raw: "<html>\n<b>Bad  Gateway</b></html>"}, kernel.Server, 0, "the server answered 502 Bad Gateway: <html> <b>Bad Gateway</b></html>"},
		"nothing":     {"openai", wiretest.Reply{Status: 500, Raw: " "}, kernel.Server, 0, "the server answered 500 Internal Server Error"},
		"a list":      {"openai", wiretest.Reply{Status: 500, Raw: `[]`}, kernel.Server, 0, "the server answered 500 Internal Server Error: []"},
		"redirect":    {"openai", wiretest.Reply{Status: 302, Raw: "x", Header: map[string]string{"location": "http://127.0.0.1:1/v2?key=" + key}}, kernel.Unknown, 0, "the server answered 302 Found and points to http://127.0.0.1:1/v2, and no redirect is followed: want the address there in conf.base_url"},
		"to nowhere":  {"openai", wiretest.Reply{Status: 304, Raw: "x"}, kernel.Unknown, 0, "the server answered 304 Not Modified"},
		"no more":     {"openai", wiretest.Reply{Status: 429, Error: "rate_limit_exceeded", Say: "x", Header: map[string]string{"x-should-retry": "false"}}, kernel.RateLimited, 0, ""},
		"200, code":   {"openrouter", wiretest.Reply{Raw: `{"error":{"code":502,"message":"Provider returned error"}}`}, kernel.Server, 0, "Provider returned error"},
		"200, word":   {"openai", wiretest.Reply{Raw: `{"error":{"code":"server_error","message":"oops"}}`}, kernel.Server, 0, "oops"},
		"200, text":   {"ollama", wiretest.Reply{Raw: `{"error":"it broke"}`}, kernel.Server, 0, "it broke"},
		"in choice":   {"openrouter", wiretest.Reply{Raw: `{"choices":[{"index":0,"finish_reason":"error","error":{"code":429,"message":"busy"},"message":{"content":"x"}}]}`}, kernel.RateLimited, 0, "busy"},
		"no JSON":     {"openai", wiretest.Reply{Raw: "hello"}, kernel.Server, 0, "the answer is not what Chat Completions writes: hello"},
		"no choice":   {"openai", wiretest.Reply{Raw: "{}"}, kernel.Server, 0, "the answer has no choice: {}"},
		"cut":         {"openai", wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say("some text")}, Cut: 2}, kernel.Transport, 0, "the stream ended before the answer was whole"},
		"quiet":       {"openai", wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say("some text")}, Quiet: true}, kernel.Transport, 0, "the stream ended before the answer was whole"},
		"in a stream": {"openai", wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say("some text")}, Error: "server_error", Say: "oops"}, kernel.Server, 0, "oops"},
		"by type":     {"vllm", wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say("some text")}, Error: "overloaded_error", Say: "oops"}, kernel.Overloaded, 0, "oops"},
		"garbage":     {"openai", wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say("x")}, Mangle: func(string, string) (string, string) { return "", "{" }}, kernel.Server, 0, "the answer is not what Chat Completions writes: {"},
		"a list of":   {"openai", wiretest.Reply{Status: 429, Raw: `[{"error":{"code":429,"message":"Resource exhausted","status":"RESOURCE_EXHAUSTED"}}]`}, kernel.RateLimited, 0, "Resource exhausted"},
		"relayed":     {"openrouter", relayed(`"{\"error\":{\"message\":\"maximum context length is 8192 tokens\",\"code\":\"x\"}}"`), kernel.ContextOverflow, 0, "Provider returned error (Azure): maximum context length is 8192 tokens"},
		"relayed, as": {"openrouter", relayed(`{"message":"maximum context length is 8192 tokens"}`), kernel.ContextOverflow, 0, "Provider returned error (Azure): maximum context length is 8192 tokens"},
		"a page of":   {"openrouter", relayed(`"<html>\n<b>Bad  Gateway"`), kernel.InvalidRequest, 0, "Provider returned error (Azure): <html> <b>Bad Gateway"},
		"bare":        {"vllm", events(`data: {"choices":[{"index":0,"delta":{"content":"x"}}]}`, `data: {"object":"error","message":"EngineCore died","type":"InternalServerError","param":null,"code":500}`, "data: [DONE]"), kernel.Server, 0, "EngineCore died"},
		"field":       {"llamacpp", events(`data: {"choices":[{"index":0,"delta":{"content":"x"}}]}`, `error: {"code":500,"message":"failed to decode","type":"server_error"}`), kernel.Server, 0, "failed to decode"},
		"field, text": {"llamacpp", events(`error: it broke`), kernel.Server, 0, "it broke"},
		"no event":    {"ollama", events(`data: {"choices":[{"index":0,"delta":{"content":"x"}}]}`, `{"error":"CUDA error"}`), kernel.Server, 0, "CUDA error"},
		"as events":   {"vllm", wiretest.Reply{Type: "text/event-stream", Raw: `{"error":{"message":"busy","code":503}}`}, kernel.Overloaded, 0, "busy"},
		"detail, 200": {"vllm", wiretest.Reply{Raw: `{"detail":"not here"}`}, kernel.Server, 0, "not here"},
		"no room":     {"vllm", wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say("some")}, Stop: "insufficient_system_resource"}, kernel.Overloaded, 0, "the provider broke the answer off: insufficient_system_resource"},
		"half event":  {"vllm", wiretest.Reply{Type: "text/event-stream", Raw: "data: {\"choices\":[{\"finish_reason\":\"st"}, kernel.Transport, 0, "the stream ended before the answer was whole"},
		"no finish":   {"openai", wiretest.Reply{Mangle: func(_, data string) (string, string) { return "", strings.Replace(data, `"stop"`, `null`, 1) }, Blocks: []wiretest.Block{wiretest.Say("x")}}, kernel.Transport, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := failed(t, c.dialect, c.reply)
			require.Equal(t, c.kind, got.Kind, "%v", got)
			require.Equal(t, c.wait, got.RetryAfter)
			require.Contains(t, got.Message, c.says)
			require.NotContains(t, got.Message, key)
		})
	}
	require.False(t, failed(t, "openai", wiretest.Reply{Status: 429, Error: "x", Header: map[string]string{"x-should-retry": "false"}}).Retryable())
}

// relayed is a failure that openrouter hands on.
func relayed(raw string) wiretest.Reply {
	return wiretest.Reply{Status: 400, Raw: `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":` + raw + `,"provider_name":"Azure"}},"user_id":"u"}`}
}

func events(events ...string) wiretest.Reply {
	return wiretest.Reply{Type: "text/event-stream", Raw: strings.Join(events, "\n\n") + "\n\n"}
}

// The limit of openrouter itself says when it is over, and not how long that is.
func TestTheResetOfOpenrouter(t *testing.T) {
	moment := time.Now().Add(20 * time.Second).UnixMilli()
	for _, reset := range []string{strconv.FormatInt(moment, 10), `"` + strconv.FormatInt(moment, 10) + `"`} {
		s := wiretest.New(t).Reply(wiretest.Reply{Status: 429, Raw: `{"error":{"message":"Rate limit exceeded: free-models-per-min. ","code":429,"metadata":{"headers":{"X-RateLimit-Reset":` + reset + `}}}}`})
		p, conf := at(s, "openrouter")
		_, _, err := call(t, p, conf, requestOf(ask))
		var e *kernel.CallError
		require.ErrorAs(t, err, &e)
		require.InDelta(t, 20, e.RetryAfter, 5)
	}
}

func TestErrorsOfItems(t *testing.T) {
	for name, c := range map[string]struct {
		reply wiretest.Reply
		kind  kernel.CallKind
		says  string
		more  []func(*port.Conf)
	}{
		"cut":       {wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say("some text")}, Cut: 3}, kernel.Transport, "ended before", nil},
		"quiet":     {wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say("some text")}, Quiet: true}, kernel.Transport, "ended before", nil},
		"inside":    {wiretest.Reply{Error: "rate_limit_exceeded", Say: "slow down"}, kernel.RateLimited, "slow down", nil},
		"failed":    {wiretest.Reply{Raw: `{"status":"failed","error":{"code":"server_error","message":"oops"}}`}, kernel.Server, "oops", []func(*port.Conf){whole}},
		"queued":    {wiretest.Reply{Raw: `{"status":"queued","output":[]}`}, kernel.Server, "the answer has the status queued, want completed or incomplete", []func(*port.Conf){whole}},
		"no status": {wiretest.Reply{Raw: `{"choices":[]}`}, kernel.Server, "the answer is not what the Responses API writes", []func(*port.Conf){whole}},
		"no reason": {wiretest.Reply{Raw: `{"status":"failed","error":null,"output":[]}`}, kernel.Server, "the provider says that the response failed, and not why", []func(*port.Conf){whole}},
		"overflow":  {wiretest.Reply{Status: 400, Error: "context_length_exceeded"}, kernel.ContextOverflow, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := failed(t, "openai", c.reply, append(c.more, asItems)...)
			require.Equal(t, c.kind, got.Kind, "%v", got)
			require.Contains(t, got.Message, c.says)
		})
	}
}

// Nothing that a server repeats of a secret is kept: not of the key, not of a
// header, not in a refusal.
func TestSecretsStayOut(t *testing.T) {
	s := wiretest.New(t)
	p, conf := at(s, "openai")
	conf.Headers = map[string]string{"X-Auth-Token": "canary-header"}
	echo := "got " + key + " and canary-header"
	for _, reply := range []wiretest.Reply{
		{Status: 401, Error: "invalid_api_key", Say: echo}, {Raw: echo}, {Error: "server_error", Say: echo},
		{Status: 500, Type: "text/html", Raw: echo}, {Status: 400, Error: "content_filter", Say: echo},
	} {
		s.Reply(reply)
		a, _, err := call(t, p, conf, requestOf(ask))
		said := ""
		if err != nil {
			said = err.Error()
		} else {
			said = a.RefusalDetail
		}
		require.Contains(t, said, "got *** and ***")
	}
	require.Equal(t, "canary-header", s.Last().Header.Get("x-auth-token"))
}

// A stream that never ends is ended by conf.timeout, by the deadline of the
// beat, and by the caller.
func TestEndless(t *testing.T) {
	for name, dialect := range map[string]string{"chat": "vllm", "responses": "openai"} {
		t.Run(name, func(t *testing.T) {
			s := wiretest.New(t)
			p, conf := at(s, dialect)
			if name == "responses" {
				asItems(&conf)
			}
			ask := func(ctx context.Context, timeout float64, deadline time.Time) *kernel.CallError {
				s.Reply(wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say("x")}, Never: true})
				conf.Timeout = timeout
				llm, err := p.Open(conf)
				require.NoError(t, err)
				_, err = llm.Call(ctx, requestOf(ask), kernel.CallOptions{Deadline: deadline})
				var call *kernel.CallError
				require.True(t, errors.As(err, &call), "got %v", err)
				return call
			}
			got := ask(context.Background(), 0.05, time.Time{})
			require.Equal(t, kernel.Transport, got.Kind)
			require.Equal(t, "no whole answer within 0.05 seconds: conf.timeout sets how long a call may take", got.Message)
			require.Equal(t, kernel.Transport, ask(context.Background(), 0, time.Now().Add(50*time.Millisecond)).Kind)
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(50*time.Millisecond, cancel)
			require.Equal(t, kernel.Cancelled, ask(ctx, 0, time.Time{}).Kind)
		})
	}
}

// The body of a 101 is the connection, which no deadline ends.
func TestNoUpgrade(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"))
		conn.Read(make([]byte, 1))
		conn.Close()
	}))
	t.Cleanup(server.Close)
	p, conf := at(wiretest.New(t), "vllm")
	conf.BaseURL, conf.Timeout = server.URL, 20
	llm, err := p.Open(conf)
	require.NoError(t, err)
	began := time.Now()
	_, err = llm.Call(context.Background(), requestOf(ask), kernel.CallOptions{})
	var call *kernel.CallError
	require.True(t, errors.As(err, &call), "got %v", err)
	require.Equal(t, kernel.Transport, call.Kind)
	require.Contains(t, call.Message, "switches to another protocol (101)")
	require.Less(t, time.Since(began), 15*time.Second)
}

func TestCancelledBefore(t *testing.T) {
	p, conf := at(wiretest.New(t), "openai")
	llm, err := p.Open(conf)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = llm.Call(ctx, requestOf(ask), kernel.CallOptions{})
	require.Equal(t, kernel.Cancelled, port.ClassifyError(err).Kind)
}

// An answer may be long in one piece.
func TestLongDelta(t *testing.T) {
	long := strings.Repeat("x", 10<<20)
	a, _ := answered(t, "openai", wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say(long)}, Chunk: len(long)})
	require.Greater(t, len(a.Content), len(long))
}

func TestKeys(t *testing.T) {
	local := wiretest.New(t)
	for name, c := range map[string]struct {
		conf port.Conf
		env  map[string]string
		sent string // the authorization that arrives
		want string // or the error
	}{
		"named":             {port.Conf{APIKeyEnv: "MINE"}, map[string]string{"MINE": " k1 \n"}, "Bearer k1", ""},
		"named, not set":    {port.Conf{APIKeyEnv: "MINE"}, nil, "", "auth: MINE: not set, want the key of the provider there, or in a variable that conf.api_key_env names"},
		"of another":        {port.Conf{}, map[string]string{"OPENAI_API_KEY": "k2"}, "", ""},
		"by the name":       {port.Conf{Dialect: "openrouter"}, map[string]string{"OPENROUTER_API_KEY": "k3", "OPENAI_API_KEY": "k2"}, "Bearer k3", ""},
		"by the name, none": {port.Conf{Dialect: "openrouter"}, nil, "", ""},
		"two lines":         {port.Conf{APIKeyEnv: "MINE"}, map[string]string{"MINE": "k1\nx: y"}, "", "auth: MINE: holds a line break, a space or a letter that no key has, want the key alone"},
		"in a header":       {port.Conf{APIKeyEnv: "MINE", Headers: map[string]string{"Authorization": "Basic abc"}}, nil, "Basic abc", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.conf.Model, c.conf.BaseURL = "m", local.URL+"/vllm/v1"
			if c.conf.Dialect != "" {
				c.conf.BaseURL = local.URL + "/" + c.conf.Dialect + "/v1"
			}
			var told []string
			host := environment(c.env)
			host.Secret = func(v string) { told = append(told, v) }
			if c.want == "" {
				local.Reply(say(wiretest.Say("x")))
			}
			_, _, err := call(t, openai.New(host), c.conf, requestOf(ask))
			if c.want != "" {
				require.EqualError(t, err, c.want)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.sent, local.Last().Header.Get("authorization"))
			if strings.HasPrefix(c.sent, "Bearer ") {
				require.Equal(t, []string{strings.TrimPrefix(c.sent, "Bearer ")}, slices.Compact(told))
			}
		})
	}
	_, _, err := call(t, openai.New(environment(nil)), port.Conf{Model: "m"}, requestOf(ask))
	require.ErrorContains(t, err, "auth: OPENAI_API_KEY: not set")
}

// The environment may say where the server is, and then its key goes there.
func TestBaseOfEnvironment(t *testing.T) {
	s := wiretest.New(t).Reply(say(wiretest.Say("x")))
	p := openai.New(environment(map[string]string{"OPENAI_BASE_URL": s.URL, "OPENAI_API_KEY": key}))
	_, _, err := call(t, p, port.Conf{Model: "m"}, requestOf(ask))
	require.NoError(t, err)
	require.Equal(t, "/v1/chat/completions", s.Last().Path)
	require.Equal(t, "Bearer "+key, s.Last().Header.Get("authorization"))
}

func TestOpenRefuses(t *testing.T) {
	p := openai.New(environment(nil))
	for want, conf := range map[string]port.Conf{
		`conf.model: got nothing, want the name of a model, "gpt-5" for one`:                                             {},
		`conf.dialect: got "olama" (did you mean "ollama"?), want one of openai, vllm, llamacpp, ollama, openrouter`:     {Model: "m", Dialect: "olama"},
		`conf.base_url: got "ftp://x", want http://host or https://host`:                                                 {Model: "m", BaseURL: "ftp://x"},
		`conf.base_url: got "http://x/v1\r\nHost: y", want a URL without space or control characters`:                    {Model: "m", BaseURL: "http://x/v1\r\nHost: y"},
		`conf.base_url: got "http://x/" with more behind it, want a URL without ? and #`:                                 {Model: "m", BaseURL: "http://x/?k=v"},
		`conf.base_url: got a URL with a name or password in it, want the key in a variable that conf.api_key_env names`: {Model: "m", BaseURL: "http://u:secret@x"},
		`conf.headers.a: got a value with a line break or control character, want one line`:                              {Model: "m", Headers: map[string]string{"a": "b\r\nc: d"}},
		`conf.headers: got the name "a b", want letters, digits and -`:                                                   {Model: "m", Headers: map[string]string{"a b": "c"}},
		`conf.headers: got "Host", want none that the port writes itself`:                                                {Model: "m", Headers: map[string]string{"Host": "c"}},
		`conf.api: got "responses" with the dialect ollama, want "chat": only openai is asked that way`:                  {Model: "m", Dialect: "ollama", API: "responses"},
	} {
		_, err := p.Open(conf)
		require.EqualError(t, err, want)
	}
}

// A key that nobody sent is not called a wrong one.
func TestNoKeySent(t *testing.T) {
	s := wiretest.New(t).Reply(wiretest.Reply{Status: 401, Error: "invalid_api_key", Say: "Incorrect API key provided"}, wiretest.Reply{Status: 401, Error: "invalid_api_key", Say: "Incorrect API key provided"})
	p := openai.New(environment(map[string]string{"OPENAI_API_KEY": key, "MINE": key}))
	conf := port.Conf{Model: "m", BaseURL: s.URL + "/vllm/v1"}
	_, _, err := call(t, p, conf, requestOf(ask))
	require.EqualError(t, err, "auth: Incorrect API key provided: no key was sent, want its variable in conf.api_key_env")
	conf.APIKeyEnv = "MINE"
	_, _, err = call(t, p, conf, requestOf(ask))
	require.EqualError(t, err, "auth: Incorrect API key provided")
}

// A connection that breaks behind the usage took nothing of the answer; one that
// breaks before may have.
func TestBrokenBehindTheAnswer(t *testing.T) {
	const stop, counted = `data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}`, `data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}}`
	for body, want := range map[string]string{stop + "\n\n" + counted + "\n\n": "", stop + "\n\n": "transport: the stream ended before the answer was whole: unexpected EOF"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("content-type", "text/event-stream")
			w.Header().Set("content-length", "10000")
			_, _ = w.Write([]byte(body))
		}))
		a, _, err := call(t, openai.New(environment(nil)), port.Conf{Model: "m", BaseURL: server.URL}, requestOf(ask))
		server.Close()
		if want != "" {
			require.EqualError(t, err, want)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, kernel.Usage{Input: 10, Output: 5}, a.Usage)
	}
}

// The path of a base URL goes to the server as it is written.
func TestEscapedPath(t *testing.T) {
	asked := make(chan string, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.EscapedPath()
		_, _ = w.Write([]byte(`{"choices":[{"message":{"content":"x"}}],"data":[]}`))
	}))
	defer server.Close()
	p, conf := openai.New(environment(nil)), port.Conf{Model: "m", BaseURL: server.URL + "/a%2Fb/v1/", Dialect: "llamacpp"}
	_, _, err := call(t, p, conf, requestOf(ask))
	require.NoError(t, err)
	require.Equal(t, "/a%2Fb/v1/chat/completions", <-asked)
	_, _ = p.Profile(context.Background(), conf)
	require.Equal(t, "/a%2Fb/props", <-asked)
}
