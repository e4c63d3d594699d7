package port_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
)

func TestParseConf(t *testing.T) {
	got, err := port.ParseConf(json.RawMessage(`{"model":"m","base_url":"u","api_key_env":"K","timeout":1.5,"stream":false,"cache":false,
		"dialect":"ollama","api":"responses","context_window":1000,"headers":{"x":"y"},"max_tokens":10,"temperature":0,"top_p":0.5,"top_k":3,
		"stop":"END","seed":-1,"thinking":{"effort":"low","budget_tokens":2000},"response_format":{"type":"text"}}`))
	require.NoError(t, err)
	zero, half, seed := 0.0, 0.5, int64(-1)
	require.Equal(t, port.Conf{
		Model: "m", BaseURL: "u", APIKeyEnv: "K", Timeout: 1.5, NoStream: true, NoCache: true, Dialect: "ollama", API: "responses",
		ContextWindow: 1000, Headers: map[string]string{"x": "y"}, MaxTokens: 10, Temperature: &zero, TopP: &half, TopK: 3,
		Stop: []string{"END"}, Seed: &seed, Thinking: port.Thinking{On: true, Effort: "low", BudgetTokens: 2000},
		ResponseFormat: json.RawMessage(`{"type":"text"}`),
	}, got)
}

func TestParseConfEmpty(t *testing.T) {
	for _, raw := range []string{``, `{}`, `{"stream":true,"cache":true}`} {
		got, err := port.ParseConf(json.RawMessage(raw))
		require.NoError(t, err)
		require.Equal(t, port.Conf{}, got)
	}
}

func TestParseConfRefuses(t *testing.T) {
	for raw, want := range map[string]string{
		`[]`:                          `conf: got a list, want an object`,
		`"gpt"`:                       `conf: got a string, want an object`,
		`{"modle":"m"}`:               `conf: unknown key "modle" (did you mean "model"?)`,
		`{"model":1}`:                 `conf.model: got 1, want a string`,
		`{"model":null}`:              `conf.model: got null, want a string`,
		`{"timeout":"5"}`:             `conf.timeout: got a string, want a number >= 0`,
		`{"timeout":-1}`:              `conf.timeout: got -1, want a number >= 0`,
		`{"max_tokens":2.5}`:          `conf.max_tokens: got 2.5, want a whole number >= 1`,
		`{"max_tokens":0}`:            `conf.max_tokens: got 0, want a whole number >= 1`,
		`{"context_window":1e99}`:     `conf.context_window: got 1e99, want a whole number >= 1`,
		`{"temperature":1e999}`:       `conf.temperature: got 1e999, want a number >= 0`,
		`{"stream":"yes"}`:            `conf.stream: got a string, want true or false`,
		`{"api":"chats"}`:             `conf.api: got "chats" (did you mean "chat"?), want one of chat, responses`,
		`{"stop":[1]}`:                `conf.stop: got a list, want a string or a list of strings, none of them empty`,
		`{"stop":""}`:                 `conf.stop: got a string, want a string or a list of strings, none of them empty`,
		`{"stop":[null]}`:             `conf.stop: got a list, want a string or a list of strings, none of them empty`,
		`{"thinking":1}`:              `conf.thinking: got 1, want true, false or { effort?, budget_tokens? }`,
		`{"thinking":{"efort":"x"}}`:  `conf.thinking: unknown key "efort" (did you mean "effort"?)`,
		`{"thinking":{"effort":"x"}}`: `conf.thinking.effort: got "x", want one of minimal, low, medium, high, xhigh, max`,
		`{"response_format":"json"}`:  `conf.response_format: got a string, want an object`,
		`{"headers":{"a":1}}`:         `conf.headers: got an object, want an object of strings`,
		`{"headers":["a"]}`:           `conf.headers: got a list, want an object of strings`,
	} {
		_, err := port.ParseConf(json.RawMessage(raw))
		require.EqualError(t, err, want, raw)
	}
	_, err := port.ParseConf(json.RawMessage(`{"model":"a","model":"b"}`))
	require.ErrorContains(t, err, "conf: not JSON")
}

func TestRegistry(t *testing.T) {
	r := port.Registry{"script": nil, "anthropic": nil}
	_, conf, err := r.From("anthropic:ft:small", port.Conf{MaxTokens: 5})
	require.NoError(t, err)
	require.Equal(t, port.Conf{Model: "ft:small", MaxTokens: 5}, conf)
	for spec, want := range map[string]string{
		"script":         `model "script": got no model name, want "provider:model" with a provider out of anthropic, script`,
		"script:":        `model "script:": got no model name, want "provider:model" with a provider out of anthropic, script`,
		"antropic:opus":  `model "antropic:opus": unknown provider "antropic" (did you mean "anthropic"?), want one of anthropic, script`,
		"nobody:unknown": `model "nobody:unknown": unknown provider "nobody", want one of anthropic, script`,
	} {
		_, _, err := r.From(spec, port.Conf{})
		require.EqualError(t, err, want)
	}
}

func TestClassify(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		in   port.Failure
		kind kernel.CallKind
		wait float64
	}{
		{port.Failure{Status: 400}, kernel.InvalidRequest, 0},
		{port.Failure{Status: 404}, kernel.InvalidRequest, 0},
		{port.Failure{Status: 413}, kernel.ContextOverflow, 0},
		{port.Failure{Status: 409}, kernel.Overloaded, 0},
		{port.Failure{Status: 425}, kernel.Overloaded, 0},
		{port.Failure{Status: 422}, kernel.InvalidRequest, 0},
		{port.Failure{Status: 401}, kernel.Auth, 0},
		{port.Failure{Status: 402}, kernel.Auth, 0},
		{port.Failure{Status: 403}, kernel.Auth, 0},
		{port.Failure{Status: 429, RetryAfter: "7"}, kernel.RateLimited, 7},
		{port.Failure{Status: 429, RetryAfter: "0.5"}, kernel.RateLimited, 0.5},
		{port.Failure{Status: 429, RetryAfter: "Fri, 02 Jan 2026 03:04:35 GMT"}, kernel.RateLimited, 30},
		{port.Failure{Status: 429, RetryAfter: "Fri, 02 Jan 2026 03:04:00 GMT"}, kernel.RateLimited, 0},
		{port.Failure{Status: 429, RetryAfter: "soon"}, kernel.RateLimited, 0},
		{port.Failure{Status: 429, RetryAfter: "-3"}, kernel.RateLimited, 0},
		{port.Failure{Status: 429, RetryAfter: "NaN"}, kernel.RateLimited, 0},
		{port.Failure{Status: 429, RetryAfter: "31536000"}, kernel.RateLimited, 31536000},
		{port.Failure{Status: 429, RetryAfter: "Sat, 02 Jan 2027 03:04:05 GMT"}, kernel.RateLimited, 31536000},
		{port.Failure{Status: 429, Message: "You exceeded your current quota"}, kernel.Auth, 0},
		{port.Failure{Status: 429, Message: "context window tokens per minute exceeded"}, kernel.RateLimited, 0},
		{port.Failure{Status: 400, Message: "Your credit balance is too low"}, kernel.Auth, 0},
		{port.Failure{Status: 503, RetryAfter: "2"}, kernel.Overloaded, 2},
		{port.Failure{Status: 529}, kernel.Overloaded, 0},
		{port.Failure{Status: 408}, kernel.Transport, 0},
		{port.Failure{Status: 504}, kernel.Transport, 0},
		{port.Failure{Status: 500}, kernel.Server, 0},
		{port.Failure{Status: 500, Message: "context window"}, kernel.Server, 0},
		{port.Failure{Status: 502}, kernel.Server, 0},
		{port.Failure{Status: 418}, kernel.Unknown, 0},
		{port.Failure{Status: 302}, kernel.Unknown, 0},
		{port.Failure{Code: "overloaded_error"}, kernel.Overloaded, 0},
		{port.Failure{Status: 200, Code: "overloaded_error"}, kernel.Overloaded, 0},
		{port.Failure{Code: "invalid_request_error", Message: "prompt is too long: 210000 tokens > 200000 maximum"}, kernel.ContextOverflow, 0},
		{port.Failure{Status: 400, Code: "context_length_exceeded"}, kernel.ContextOverflow, 0},
		{port.Failure{Status: 400, Message: "This model's maximum context length is 8192 tokens"}, kernel.ContextOverflow, 0},
		{port.Failure{Status: 400, Message: "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"}, kernel.ContextOverflow, 0},
		{port.Failure{Status: 400, Message: "the request exceeds the available context size"}, kernel.ContextOverflow, 0},
		{port.Failure{Status: 400, Message: "The input token count (1100000) exceeds the maximum number of tokens allowed"}, kernel.ContextOverflow, 0},
		{port.Failure{Status: 400, Message: "Input is too long for requested model."}, kernel.ContextOverflow, 0},
		{port.Failure{Status: 400, Message: "max_tokens: must be at least 1"}, kernel.InvalidRequest, 0},
		{port.Failure{Status: 400, Message: "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that max_model_len is no smaller"}, kernel.ContextOverflow, 0},
		{port.Failure{Status: 400, Message: "max_tokens must be at least 1, got -904."}, kernel.ContextOverflow, 0},
		{port.Failure{Status: 400, Message: "You passed 16385 input tokens and requested 1 output tokens. However, the model's context length is only 16384"}, kernel.ContextOverflow, 0},
		{port.Failure{Status: 400, Message: "This model's maximum prompt length is 131072 but the request contains 150000 tokens."}, kernel.ContextOverflow, 0},
		{port.Failure{Status: 422, Message: "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens"}, kernel.ContextOverflow, 0},
		{port.Failure{Status: 400, Message: "The number of tokens to keep from the initial prompt is greater than the context length."}, kernel.ContextOverflow, 0},
		{port.Failure{Status: 429, Code: "rate_limit_exceeded", Message: "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 45000."}, kernel.ContextOverflow, 0},
		{port.Failure{Status: 429, Message: "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 4500."}, kernel.RateLimited, 0},
		{port.Failure{Code: "server_is_overloaded"}, kernel.Overloaded, 0},
		{port.Failure{Code: "slow_down"}, kernel.Overloaded, 0},
		{port.Failure{Status: 200, Code: "service_unavailable"}, kernel.Overloaded, 0},
		{port.Failure{Code: "InternalServerError"}, kernel.Server, 0},
		{port.Failure{Code: "internal_server_error"}, kernel.Server, 0},
		{port.Failure{Message: "an error was encountered while running the model: CUDA error"}, kernel.Server, 0},
		{port.Failure{Code: "invalid_value", Type: "invalid_request_error"}, kernel.InvalidRequest, 0},
		{port.Failure{Code: "42", Type: "authentication_error"}, kernel.Auth, 0},
		{port.Failure{}, kernel.Server, 0},
	} {
		got := port.Classify(c.in, now)
		require.Equal(t, c.kind, got.Kind, "%+v", c.in)
		require.Equal(t, c.wait, got.RetryAfter, "%+v", c.in)
		require.Equal(t, c.in.Status, got.Status)
		require.NotEmpty(t, got.Message)
	}
	require.Equal(t, "the provider answered 529 overloaded_error", port.Classify(port.Failure{Status: 529, Code: "overloaded_error"}, now).Message)
}

// A wait that no run sits out is not one that may be left out either.
func TestAWaitOfMoreThanAYearIsNone(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, header := range []string{"31536001", "1e300", "Inf", "Fri, 02 Jan 2099 03:04:05 GMT"} {
		got := port.Classify(port.Failure{Status: 429, Message: "slow", RetryAfter: header}, now)
		require.Equal(t, []any{kernel.RateLimited, false, 31536000.0, "slow: it asks to wait for more than a year"},
			[]any{got.Kind, got.Retryable(), got.RetryAfter, got.Message}, header)
	}
}

func TestFiltered(t *testing.T) {
	for f, want := range map[port.Failure]bool{
		{Status: 400, Code: "content_filter"}: true,
		{Status: 400, Code: "invalid_prompt"}: true,
		{Status: 400, Code: "invalid_request_error", Message: "Output blocked by content filtering policy"}: true,
		{Status: 400, Code: "invalid_request_error", Message: "filters: got nothing"}:                       false,
	} {
		require.Equal(t, want, f.Filtered(), "%+v", f)
	}
}

func TestClassifyError(t *testing.T) {
	own := &kernel.CallError{Kind: kernel.Auth, Message: "no key"}
	require.Same(t, own, port.ClassifyError(fmt.Errorf("opening: %w", own)))
	require.Equal(t, kernel.Cancelled, port.ClassifyError(fmt.Errorf("post: %w", context.Canceled)).Kind)
	require.Equal(t, kernel.Transport, port.ClassifyError(context.DeadlineExceeded).Kind)
	require.Equal(t, &kernel.CallError{Kind: kernel.Transport, Message: "connection reset"}, port.ClassifyError(fmt.Errorf("connection reset")))
}

func TestEstimate(t *testing.T) {
	req := &kernel.Request{Messages: []json.RawMessage{json.RawMessage(`{"content":"hello","role":"user"}`)}}
	require.Equal(t, `{"messages":[{"content":"hello","role":"user"}]}`, string(req.Canonical()))
	require.Len(t, req.Canonical(), 48)
	require.Equal(t, int64(12), port.Estimate(req))
	req.Messages[0] = json.RawMessage(`{"content":"hello!","role":"user"}`)
	require.Equal(t, int64(13), port.Estimate(req))
}
