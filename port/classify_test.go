package port_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
)

// A prompt that is too long is one in the words of each server.
func TestOverflowInTheWordsOfEachServer(t *testing.T) {
	for server, said := range map[string]string{
		"OpenAI":            "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8000 in the messages, 1000 in the completion).",
		"OpenAI, Responses": "Your input exceeds the context window of this model. Please adjust your input and try again.",
		"OpenAI, a limit":   "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.",
		"Kimi":              "Invalid request: Your request exceeded model token limit: 262144 (requested: 270000)",
		"Z.ai":              "Prompt exceeds max length",
		"DashScope":         "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]",
		"Copilot":           "prompt token count of 129001 exceeds the limit of 128000",
		"TensorRT-LLM":      "Prompt length (5000) exceeds maximum input length (4096). Set log level to info",
		"vllm":              "Input prompt (5000 tokens) is too long and exceeds limit of 4096",
		"vllm, both":        "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 8192 tokens and your request has 6000 input tokens (4096 > 8192 - 6000).",
		"SGLang":            "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
		"Mistral":           "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
		"MiniMax":           "invalid params, context window exceeds limit (2013)",
		"Cerebras":          "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
		"Cohere":            "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000",
		"Cloudflare":        "The estimated number of input and maximum output tokens (30000) exceeded this model context window limit (24000).",
		"ollama":            "prompt too long; exceeded max context length by 12 tokens",
		"Fireworks":         "The prompt is too long: 140000, model maximum context length: 131071",
		"LM Studio":         "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens",
	} {
		require.Equal(t, kernel.ContextOverflow, port.Classify(port.Failure{Status: 400, Message: said}, time.Now()).Kind, server)
	}
	require.Equal(t, kernel.ContextOverflow, port.Classify(port.Failure{Status: 400, Code: "model_max_prompt_tokens_exceeded"}, time.Now()).Kind)
	for what, said := range map[string]string{
		"vllm, the completion alone":       "'max_tokens' or 'max_completion_tokens' is too large: 100000. This model's maximum context length is 32768 tokens and your request has 20 input tokens (100000 > 32768 - 20).",
		"vllm, new":                        "This model's maximum context length is 32768 tokens. However, you requested 100000 output tokens and your prompt contains at least 20 input tokens, for a total of at least 100020 tokens.",
		"OpenAI":                           "This model's maximum context length is 8192 tokens. However, you requested 9020 tokens (20 in the messages, 9000 in the completion).",
		"openrouter":                       "This endpoint's maximum context length is 131072 tokens. However, you requested about 200010 tokens (10 of text input, 200000 in the output).",
		"a parameter of that name":         "Unrecognized request argument supplied: context_length",
		"a parameter of the wrong type":    "context_window: Input should be a valid integer",
		"a model that is trained for less": "context size must be a multiple of 256",
	} {
		require.Equal(t, kernel.InvalidRequest, port.Classify(port.Failure{Status: 400, Message: said}, time.Now()).Kind, what)
	}
}

// The limit of a minute is one, whatever it is called; what no wait brings back is
// the account's.
func TestQuotas(t *testing.T) {
	const gemini = "You exceeded your current quota, please check your plan and billing details."
	for name, c := range map[string]struct {
		in   port.Failure
		kind kernel.CallKind
		wait float64
	}{
		"a minute, in words":     {port.Failure{Status: 429, Type: "RESOURCE_EXHAUSTED", Message: gemini + "\nPlease retry in 34.07s."}, kernel.RateLimited, 34.07},
		"a minute, header":       {port.Failure{Status: 429, Message: gemini, RetryAfter: "12"}, kernel.RateLimited, 12},
		"header before words":    {port.Failure{Status: 429, Message: gemini + " Please retry in 34s.", RetryAfter: "12"}, kernel.RateLimited, 12},
		"a day":                  {port.Failure{Status: 429, Message: gemini + " Please retry in 34s. (GenerateRequestsPerDayPerProjectPerModel-FreeTier)"}, kernel.Auth, 0},
		"a quota of nothing":     {port.Failure{Status: 429, Message: gemini + "\n* Quota exceeded for metric: x/free_tier_requests, limit: 0, model: gemini-3-pro\nPlease retry in 34s."}, kernel.Auth, 0},
		"a quota of ten":         {port.Failure{Status: 429, Message: gemini + "\n* Quota exceeded for metric: x/free_tier_requests, limit: 10, model: gemini-3\nPlease retry in 34s."}, kernel.RateLimited, 34},
		"OpenAI's account":       {port.Failure{Status: 429, Code: "insufficient_quota", Message: gemini + " Please try again in 34s."}, kernel.Auth, 0},
		"OpenAI's account, bare": {port.Failure{Status: 429, Message: gemini}, kernel.Auth, 0},
		"Anthropic's limit":      {port.Failure{Status: 400, Type: "invalid_request_error", Message: "You have reached your specified API usage limits. You will regain access on 2026-02-01."}, kernel.Auth, 0},
		"inside a stream":        {port.Failure{Type: "RESOURCE_EXHAUSTED", Message: "Resource exhausted. Please try again later."}, kernel.RateLimited, 0},
	} {
		got := port.Classify(c.in, time.Now())
		require.Equal(t, c.kind, got.Kind, name)
		require.Equal(t, c.wait, got.RetryAfter, name)
	}
}

// A wait that only the words name is one.
func TestAWaitInWords(t *testing.T) {
	for said, want := range map[string]float64{
		"Please try again in 2s.":                   2,
		"Please try again in 450ms. Visit x":        0.45,
		"Please try again in 7m12.5s. Need 3 more?": 432.5,
		"Please try again in 1h2m3s":                3723,
		"Please retry after 20 seconds.":            20,
		"try again in 1 minute and 5 seconds":       65,
		"Please retry in 34.074824224s.":            34.074824224,
		"try again in 1 day, 2 hours":               93600,
		"try again in 3 parsecs":                    0,
		"try again in a while":                      0,
		"try again in 5s, 3 requests are left":      5,
		"":                                          0,
	} {
		require.InDelta(t, want, port.Classify(port.Failure{Status: 429, Message: said}, time.Now()).RetryAfter, 1e-9, said)
	}
	require.Zero(t, port.Classify(port.Failure{Status: 400, Message: "try again in 5s"}, time.Now()).RetryAfter, "what is not repeated waits for nothing")
	long := port.Classify(port.Failure{Status: 429, Message: "try again in " + strings.Repeat("9", 400) + " days"}, time.Now())
	require.False(t, long.Retryable())
}

// What the Responses API says of a response that failed: only its own failures and
// limits are worth asking again.
func TestCodesOfAFailedResponse(t *testing.T) {
	for code, want := range map[string]kernel.CallKind{
		"server_error": kernel.Server, "vector_store_timeout": kernel.Server, "rate_limit_exceeded": kernel.RateLimited,
		"data_residency_mismatch": kernel.InvalidRequest, "invalid_image": kernel.InvalidRequest, "invalid_image_format": kernel.InvalidRequest,
		"invalid_base64_image": kernel.InvalidRequest, "invalid_image_url": kernel.InvalidRequest, "image_too_large": kernel.InvalidRequest,
		"image_too_small": kernel.InvalidRequest, "image_parse_error": kernel.InvalidRequest, "invalid_image_mode": kernel.InvalidRequest,
		"image_file_too_large": kernel.InvalidRequest, "unsupported_image_media_type": kernel.InvalidRequest, "empty_image_file": kernel.InvalidRequest,
		"failed_to_download_image": kernel.InvalidRequest, "image_file_not_found": kernel.InvalidRequest,
	} {
		f := port.Failure{Code: code, Message: "x"}
		require.False(t, f.Filtered(), code)
		require.Equal(t, want, port.Classify(f, time.Now()).Kind, code)
	}
	for _, code := range []string{"invalid_prompt", "bio_policy", "misalignment_policy_violation", "image_content_policy_violation", "data_inspection_failed"} {
		require.True(t, port.Failure{Code: code}.Filtered(), code)
		require.True(t, port.Failure{Code: "x", Type: code}.Filtered(), code)
	}
}
