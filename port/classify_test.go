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
		"OpenAI":             "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8000 in the messages, 1000 in the completion).",
		"OpenAI, Responses":  "Your input exceeds the context window of this model. Please adjust your input and try again.",
		"OpenAI, a limit":    "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.",
		"Kimi":               "Invalid request: Your request exceeded model token limit: 262144 (requested: 270000)",
		"Z.ai":               "Prompt exceeds max length",
		"DashScope":          "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]",
		"Copilot":            "prompt token count of 129001 exceeds the limit of 128000",
		"TensorRT-LLM":       "Prompt length (5000) exceeds maximum input length (4096). Set log level to info",
		"vllm":               "Input prompt (5000 tokens) is too long and exceeds limit of 4096",
		"vllm, both":         "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 8192 tokens and your request has 6000 input tokens (4096 > 8192 - 6000).",
		"SGLang, allowed":    "Input length (9000 tokens) exceeds the maximum allowed length (8186 tokens). Use a shorter input or enable --allow-auto-truncate.",
		"vllm, pictures":     "The prompt (total length 5000) is too long to fit into the model (context length 4096).",
		"LMDeploy":           "length of prompt_tokens (40000) must be less than max_seq_len (32768).",
		"Vertex, only up to": "Unable to submit request because the input token count is 1048600 but the model supports only up to 1048576.",
		"in fewest words":    "The model's context window has been exceeded.",
		"or fewer":           "Context length exceeded",
		"a reduction":        "Please reduce the length of the input prompt.",
		"SGLang":             "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
		"Mistral":            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
		"MiniMax":            "invalid params, context window exceeds limit (2013)",
		"Cerebras":           "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
		"Cohere":             "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000",
		"Cloudflare":         "The estimated number of input and maximum output tokens (30000) exceeded this model context window limit (24000).",
		"ollama":             "prompt too long; exceeded max context length by 12 tokens",
		"Fireworks":          "The prompt is too long: 140000, model maximum context length: 131071",
		"llama.cpp":          "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
		"llama.cpp, older":   "the request exceeds the available context size. try increasing the context size or enable context shift",
		"llama.cpp, full":    "Context size has been exceeded.",
		"SGLang, both":       "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of 40000 tokens: 39000 tokens from the input messages and 1000 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.",
		"Anthropic":          "prompt is too long: 210000 tokens > 200000 maximum",
		"Anthropic, both":    "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again",
		"Bedrock":            "Input is too long for requested model.",
		"Bedrock, Nova":      "Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.",
		"Gemini":             "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
		"Gemini, bare":       "The input token count exceeds the maximum number of tokens allowed 1048576.",
		"Vertex":             "Unable to submit request because the input token count is 1,200,000 but model only supports up to 1048576. Reduce the input token count and try again.",
		"xAI":                "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
		"vllm, the model":    "The decoder prompt (length 40000) is longer than the maximum model length of 32768. Make sure that `max_model_len` is no smaller than the number of text tokens plus multimodal tokens.",
		"vllm, passed":       "You passed 9001 input tokens and requested 1000 output tokens. However, the model's context length is only 8192 tokens, resulting in a maximum input length of 7192 tokens. Please reduce the length of the input prompt.",
		"TGI":                "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens and 512 `max_new_tokens`",
		"ollama, input":      "the input length exceeds the context length",
		"LiteLLM":            "litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: OpenAIException - too much",
		"a gateway":          "Error code: 400 - {'error': {'message': 'too much', 'type': 'invalid_request_error', 'code': 'context_length_exceeded'}}",
		"LM Studio, keeps":   "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 5000>= n_ctx: 4096).",
		"LM Studio":          "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens",
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
		"SGLang":                           "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of 40000 tokens: 1000 tokens from the input messages and 39000 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.",
		"Anthropic":                        "input length and `max_tokens` exceed context limit: 500 + 250000 > 200000, decrease input length or `max_tokens` and try again",
		"vllm, passed":                     "You passed 20 input tokens and requested 100000 output tokens. However, the model's context length is only 8192 tokens, resulting in a maximum input length of 7192 tokens.",
		"TGI":                              "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9 `inputs` tokens and 9000 `max_new_tokens`",
		"a completion that is too long":    "max_tokens (9000) is larger than the model's context; set max_tokens smaller",
		"a completion, by its name":        "max_tokens exceeds the model's context length",
		"a link":                           "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size",
		"a tool's name":                    "Invalid schema for function 'stackoverflow_search': In context=('properties', 'tags'), array schema missing items.",
		"a format's name":                  "Invalid schema for response_format 'overflow_report': In context=(), 'additionalProperties' is required to be supplied and to be false.",
		"a tool called like a code":        "Invalid schema for function 'context_length_exceeded': array schema missing items.",
		"a tool called like a quota":       "Invalid schema for function 'insufficient_quota_PerDay': array schema missing items.",
		"a schema":                         "tools.3.custom.input_schema: JSON schema exceeds the maximum size allowed in the model context",
		"a strict schema":                  "Invalid schema: the number of properties exceeds the limit in the context of strict mode",
		"images":                           "Too many images in context: 101 images exceeds the limit of 100",
		"a description":                    "The maximum input length for a tool description is 1024",
		"a string":                         "Invalid 'input': string too long. Expected a string with maximum length 10485760, but got a string with length 11000000 instead.",
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
		"Kimi's account":         {port.Failure{Status: 429, Type: "exceeded_current_quota_error", Message: "Your account org-x is suspended, please check your plan and billing details"}, kernel.Auth, 0},
		"Z.ai's account":         {port.Failure{Status: 429, Code: "1113", Message: "Insufficient balance or no resource package. Please recharge."}, kernel.Auth, 0},
		"an account not active":  {port.Failure{Status: 429, Code: "billing_not_active", Message: "Your account is not active, please check your billing details on our website."}, kernel.Auth, 0},
		"DashScope's account":    {port.Failure{Status: 400, Code: "Arrearage", Message: "Access denied, please make sure your account is in good standing."}, kernel.Auth, 0},
		"LiteLLM's budget":       {port.Failure{Status: 400, Type: "budget_exceeded", Message: "Budget has been exceeded! Current cost: 10.2, Max budget: 10.0"}, kernel.Auth, 0},
		"openrouter's day":       {port.Failure{Status: 429, Message: "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day"}, kernel.Auth, 0},
		"openrouter's minute":    {port.Failure{Status: 429, Message: "Rate limit exceeded: free-models-per-min. "}, kernel.RateLimited, 0},
		"a key that is none":     {port.Failure{Status: 400, Code: "API_KEY_INVALID", Type: "INVALID_ARGUMENT", Message: "API key expired. Please renew the API key."}, kernel.Auth, 0},
		"Groq's day":             {port.Failure{Status: 429, Message: "Rate limit reached for model x on tokens per day (TPD): Limit 100000, Used 99000, Requested 2000. Please try again in 14m24s."}, kernel.RateLimited, 864},
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
	require.True(t, port.Failure{Code: "1301", Message: "The system has detected potentially unsafe or sensitive content in the input or generation."}.Filtered())
	for _, code := range []string{"invalid_prompt", "bio_policy", "misalignment_policy_violation", "image_content_policy_violation", "data_inspection_failed"} {
		require.True(t, port.Failure{Code: code}.Filtered(), code)
		require.True(t, port.Failure{Code: "x", Type: code}.Filtered(), code)
	}
}
