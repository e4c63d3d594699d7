package port

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/knl-run/knl/kernel"
)

// Failure is what a provider answered instead of a completion.
type Failure struct {
	Status     int    // HTTP status; 0 inside a stream
	Code       string // the provider's own word: "overloaded_error", "context_length_exceeded"
	Type       string // a broader word of its beside Code: "invalid_request_error"; may be empty
	Message    string
	RetryAfter string // the retry-after header: seconds or an HTTP date
}

// Classify answers f as the error of a call. now is what a date in RetryAfter
// is compared with. A wait of more than a year is none: the call is not worth
// repeating.
//
// The kind decides whether a call is repeated, so what the provider says goes
// before its status: a spent quota comes as 429 and no waiting helps, and an
// overflow comes as 400 and a shorter request does help.
func Classify(f Failure, now time.Time) *kernel.CallError {
	message := f.Message
	if message == "" {
		message = strings.TrimSpace("the provider answered " + strings.TrimSpace(strconv.Itoa(f.Status)+" "+f.Code))
	}
	e := &kernel.CallError{Kind: f.kind(), Message: message, RetryAfter: f.wait(now), Status: f.Status}
	if e.RetryAfter > maxWait {
		e.RetryAfter, e.Retry = maxWait, new(bool)
		e.Message += ": it asks to wait for more than a year"
	}
	return e
}

// Filtered says whether a filter of the provider's stopped the prompt or the
// answer: that is a refusal, and no mistake of the request.
func (f Failure) Filtered() bool {
	return filterWords[f.Code] || filterWords[f.Type] || strings.Contains(strings.ToLower(f.Message), "blocked by content filtering")
}

// filterWords are the words of filters.
var filterWords = map[string]bool{
	"content_filter":                 true,
	"content_policy_violation":       true,
	"invalid_prompt":                 true,
	"bio_policy":                     true, // of the Responses API, as the next two
	"misalignment_policy_violation":  true,
	"image_content_policy_violation": true,
	"data_inspection_failed":         true, // of DashScope, as the next
	"DataInspectionFailed":           true,
}

// Refusal answers the Answer that a filtered prompt is.
func Refusal(detail string) *kernel.Answer {
	return &kernel.Answer{
		Refused: true, RefusalKind: "content_filter", RefusalDetail: detail,
		Content: json.RawMessage("[]"), StopReason: "refusal",
	}
}

// ClassifyError answers a fault of the connection, of its deadline or of its
// caller as the error of a call. A *kernel.CallError stays what it is.
func ClassifyError(err error) *kernel.CallError {
	var call *kernel.CallError
	switch {
	case errors.As(err, &call):
		return call
	case errors.Is(err, context.Canceled):
		return &kernel.CallError{Kind: kernel.Cancelled, Message: err.Error()}
	}
	return &kernel.CallError{Kind: kernel.Transport, Message: err.Error()}
}

// overflows are the words for a prompt that is too long, server by server. A word of
// a context alone is none: a request may have it wrong in other ways. The texts are
// compiled when the first call fails: a start does not pay for them.
var overflows = sync.OnceValue(func() *regexp.Regexp {
	return anyOf(
		`context_length_exceeded`, `exceed_context_size`, // the codes of OpenAI and of llama.cpp
		`maximum (context|model|prompt|input) length`,                        // OpenAI, vllm, Mistral, xAI, TensorRT-LLM
		`(exceed|longer|larger|greater|too long|overflow).*context`,          // OpenAI, llama.cpp, ollama, LM Studio, SGLang
		`context (length|window|size|limit).*(exceed|only|reached|too )`,     // vllm, MiniMax, Cloudflare
		`input tokens exceed the configured limit`,                           // OpenAI
		`(prompt|input|prompt \(\d+ tokens\)) is too long`,                   // Anthropic, Bedrock, Fireworks, vllm
		`input (token count|length).*exceed`,                                 // Gemini, Anthropic
		`reduce the length of the (messages|prompt)`,                         // Azure, Groq, Cerebras
		`max_tokens must be at least 1, got -`,                               // vllm: what is left for the completion
		`max_new_tokens.{0,3} must be <=`,                                    // Together, TGI
		`exceeded model token limit`,                                         // Kimi
		`prompt exceeds max length`,                                          // Z.ai
		`range of input length should be`,                                    // DashScope
		`model_max_prompt_tokens_exceeded|prompt token count of \d+ exceeds`, // Copilot
		`tokens in the prompt cannot exceed`,                                 // Cohere
	)
})

func anyOf(words ...string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)` + strings.Join(words, "|"))
}

// completions are the words for a completion that was asked for beside a window, in
// the order in which a server says both: vllm's old, its new, and OpenAI's.
var completions = sync.OnceValue(func() *regexp.Regexp {
	return anyOf(
		`is too large: (?P<asked>\d+)\. This model's maximum context length is (?P<window>\d+)`,
		`maximum context length is (?P<window>\d+) tokens.* requested (?P<asked>\d+) output tokens`,
		`maximum context length is (?P<window>\d+) tokens.* (?P<asked>\d+) in the (completion|output)`,
	)
})

// helps says whether a shorter prompt would help a request that is too long: not
// where the completion that it asks for fills the window by itself.
func helps(message string) bool {
	words := completions()
	found := words.FindStringSubmatch(message)
	if found == nil {
		return true
	}
	number := map[string]int64{}
	for i, name := range words.SubexpNames() {
		if n, err := strconv.ParseInt(found[i], 10, 64); err == nil {
			number[name] = n
		}
	}
	return number["asked"] < number["window"]
}

// tooLarge is a request that no minute's allowance will ever cover.
var tooLarge = sync.OnceValue(func() *regexp.Regexp { return anyOf(`request too large .*limit \d+, requested \d+`) })

// spentText is an account with nothing left, or a quota of a day or of nothing:
// no wait that a run sits out brings it back.
var spentText = sync.OnceValue(func() *regexp.Regexp {
	return anyOf(
		`insufficient_quota`, `billing_(error|hard_limit)`, // OpenAI
		`credit balance is too low`, `reached your specified (api )?usage limits`, // Anthropic
		`PerDay`, `quota exceeded for metric: .*, limit: 0\b`, // Gemini: the name of the quota, and one that is none
	)
})

// quotaText is OpenAI's for an account with nothing left, and Gemini's for the quota
// of a minute as well, which then says how long to wait.
var quotaText = sync.OnceValue(func() *regexp.Regexp { return anyOf(`exceeded your current quota`) })

// isSpent says whether waiting is of no use.
func (f Failure) isSpent(said string) bool {
	return spentText().MatchString(said) || quotaText().MatchString(said) && f.RetryAfter == "" && waitIn(f.Message) == 0
}

func (f Failure) kind() kernel.CallKind {
	said := f.Code + " " + f.Type + " " + f.Message
	if f.Status < 300 || f.Status >= 400 && f.Status < 500 {
		switch {
		case f.isSpent(said):
			return kernel.Auth
		case f.overflows(said) && helps(said):
			return kernel.ContextOverflow
		case f.overflows(said):
			return kernel.InvalidRequest
		}
	}
	if f.Status < 400 {
		for _, word := range []string{f.Code, f.Type} {
			if kind, known := codeKinds[word]; known {
				return kind
			}
		}
	}
	return statusKind(f.Status)
}

// overflows says whether a prompt is too long, by what the provider said.
func (f Failure) overflows(said string) bool {
	if f.Status == http.StatusTooManyRequests {
		return tooLarge().MatchString(said)
	}
	return overflows().MatchString(said)
}

// codeKinds reads the word of an error that comes inside a stream, where the
// status was 200 long ago. A word that is not here is the provider's failure in
// the middle of an answer.
var codeKinds = map[string]kernel.CallKind{
	"overloaded_error":          kernel.Overloaded,
	"engine_overloaded_error":   kernel.Overloaded,
	"server_is_overloaded":      kernel.Overloaded,
	"service_unavailable":       kernel.Overloaded,
	"service_unavailable_error": kernel.Overloaded,
	"slow_down":                 kernel.Overloaded,
	"rate_limit_error":          kernel.RateLimited,
	"rate_limit_exceeded":       kernel.RateLimited,
	"timeout_error":             kernel.Transport,
	"authentication_error":      kernel.Auth,
	"permission_error":          kernel.Auth,
	"invalid_api_key":           kernel.Auth,
	"invalid_request_error":     kernel.InvalidRequest,
	"BadRequestError":           kernel.InvalidRequest,
	"model_not_found":           kernel.InvalidRequest,
	"not_found_error":           kernel.InvalidRequest,
	"request_too_large":         kernel.ContextOverflow,

	// Of a response that failed, as the Responses API lists them. Its others are a
	// limit and filters, which stand above, and failures of its own.
	"data_residency_mismatch":      kernel.InvalidRequest,
	"invalid_image":                kernel.InvalidRequest,
	"invalid_image_format":         kernel.InvalidRequest,
	"invalid_base64_image":         kernel.InvalidRequest,
	"invalid_image_url":            kernel.InvalidRequest,
	"image_too_large":              kernel.InvalidRequest,
	"image_too_small":              kernel.InvalidRequest,
	"image_parse_error":            kernel.InvalidRequest,
	"invalid_image_mode":           kernel.InvalidRequest,
	"image_file_too_large":         kernel.InvalidRequest,
	"unsupported_image_media_type": kernel.InvalidRequest,
	"empty_image_file":             kernel.InvalidRequest,
	"failed_to_download_image":     kernel.InvalidRequest,
	"image_file_not_found":         kernel.InvalidRequest,

	// Of Google.
	"RESOURCE_EXHAUSTED":  kernel.RateLimited,
	"UNAVAILABLE":         kernel.Overloaded,
	"DEADLINE_EXCEEDED":   kernel.Transport,
	"UNAUTHENTICATED":     kernel.Auth,
	"PERMISSION_DENIED":   kernel.Auth,
	"INVALID_ARGUMENT":    kernel.InvalidRequest,
	"FAILED_PRECONDITION": kernel.InvalidRequest,
	"NOT_FOUND":           kernel.InvalidRequest,
}

func statusKind(status int) kernel.CallKind {
	switch status {
	case 400, 404, 422:
		return kernel.InvalidRequest
	case 413:
		return kernel.ContextOverflow
	case 401, 402, 403: // 402: nothing is left on the account
		return kernel.Auth
	case 429:
		return kernel.RateLimited
	case 409, 425, 503, 529: // 409 is a lock that somebody holds
		return kernel.Overloaded
	case 408, 504:
		return kernel.Transport
	}
	if status < 300 || status >= 500 {
		return kernel.Server
	}
	return kernel.Unknown
}

// wait answers the seconds to wait: what the header says, else what the message does.
func (f Failure) wait(now time.Time) float64 {
	if seconds := retryAfter(f.RetryAfter, now); seconds > 0 || !f.kind().Retryable() {
		return seconds
	}
	return waitIn(f.Message)
}

// retryAfter answers the seconds to wait, 0 when the header says none, is not
// understood, or names a moment that has passed.
func retryAfter(header string, now time.Time) float64 {
	header = strings.TrimSpace(header)
	if seconds, err := strconv.ParseFloat(header, 64); err == nil {
		if seconds > 0 {
			return seconds
		}
		return 0
	}
	at, err := http.ParseTime(header)
	if err != nil {
		return 0
	}
	return max(0, float64(at.Unix()-now.Unix()))
}

// waitText is a wait that stands in a message: "try again in 7m12.5s" (OpenAI, Groq),
// "retry in 34.07s" (Gemini), "retry after 20 seconds" (Azure).
var waitText = sync.OnceValue(func() *regexp.Regexp {
	return anyOf(`(?:retry|try again) (?:in|after) ((?:\d+(?:\.\d+)?\s*[a-z]+[\s,]*(?:and\s)?)+)`)
})

var amountText = sync.OnceValue(func() *regexp.Regexp { return anyOf(`(\d+(?:\.\d+)?)\s*([a-z]+)`) })

// waitIn answers the seconds that a message asks to wait, 0 for none.
func waitIn(message string) (seconds float64) {
	found := waitText().FindStringSubmatch(message)
	if found == nil {
		return 0
	}
	for _, amount := range amountText().FindAllStringSubmatch(found[1], -1) {
		unit, known := units[strings.ToLower(amount[2])]
		if !known {
			break // of another sentence
		}
		n, _ := strconv.ParseFloat(amount[1], 64)
		seconds += n * unit
	}
	return seconds
}

// units are the units of a wait, in seconds.
var units = map[string]float64{
	"ms": 1e-3, "millisecond": 1e-3, "milliseconds": 1e-3,
	"s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1,
	"m": 60, "min": 60, "mins": 60, "minute": 60, "minutes": 60,
	"h": 3600, "hr": 3600, "hrs": 3600, "hour": 3600, "hours": 3600,
	"d": 24 * 3600, "day": 24 * 3600, "days": 24 * 3600,
}

// maxWait is a year in seconds.
const maxWait = 365 * 24 * 3600
