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
	return filterWords[f.Code] || filterWords[f.Type] || filterText().MatchString(f.Message)
}

// filterText are the words of filters that have no word for programs: Anthropic's and
// Z.ai's.
var filterText = sync.OnceValue(func() *regexp.Regexp {
	return anyOf(`blocked by content filtering`, `potentially unsafe or sensitive content`)
})

// filterWords are the words of filters for programs.
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

// spentText is an account with nothing left, or a key that is none: no wait brings it
// back.
var spentText = sync.OnceValue(func() *regexp.Regexp {
	return anyOf(
		`credit balance is too low`, `reached your specified (api )?usage limits`, // Anthropic
		`insufficient balance`, // DeepSeek, Z.ai
		`api key not valid`,    // Google
	)
})

// spentCodes are the words of programs for the same.
var spentCodes = sync.OnceValue(func() *regexp.Regexp {
	return codes(
		`insufficient_quota`, `billing_error`, `billing_hard_limit\w*`, `billing_not_active`, // OpenAI
		`exceeded_current_quota_error`, // Kimi
		`Arrearage`,                    // DashScope
		`budget_exceeded`,              // LiteLLM
		`API_KEY_INVALID`,              // Google
	)
})

// dailyText is a quota of a day or of nothing, which is met with 429 alone: no wait
// that a run sits out brings it back.
var dailyText = sync.OnceValue(func() *regexp.Regexp {
	return anyOf(
		`PerDay`, `quota exceeded for metric: .*, limit: 0\b`, // Gemini: the name of the quota, and one that is none
		`free-models-per-day`, // openrouter
	)
})

// quotaText is OpenAI's for an account with nothing left, and Gemini's for the quota
// of a minute as well, which then says how long to wait.
var quotaText = sync.OnceValue(func() *regexp.Regexp { return anyOf(`exceeded your current quota`) })

// isSpent says whether waiting is of no use.
func (f Failure) isSpent() bool {
	switch {
	case f.coded(spentCodes()) || spentText().MatchString(f.Message):
		return true
	case f.Status >= 400 && f.Status != http.StatusTooManyRequests:
		return false // it is about the request
	}
	return dailyText().MatchString(f.Message) || quotaText().MatchString(f.Message) && f.RetryAfter == "" && waitIn(f.Message) == 0
}

func (f Failure) kind() kernel.CallKind {
	if f.Status < 300 || f.Status >= 400 && f.Status < 500 {
		switch {
		case f.isSpent():
			return kernel.Auth
		case f.overflows() && helps(f.Message):
			return kernel.ContextOverflow
		case f.overflows():
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
