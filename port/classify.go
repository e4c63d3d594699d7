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
	e := &kernel.CallError{Kind: f.kind(), Message: message, RetryAfter: retryAfter(f.RetryAfter, now), Status: f.Status}
	if e.RetryAfter > maxWait {
		e.RetryAfter, e.Retry = maxWait, new(bool)
		e.Message += ": it asks to wait for more than a year"
	}
	return e
}

// Filtered says whether a filter of the provider's stopped the prompt or the
// answer: that is a refusal, and no mistake of the request.
func (f Failure) Filtered() bool {
	switch f.Code {
	case "content_filter", "content_policy_violation", "invalid_prompt":
		return true
	}
	return strings.Contains(strings.ToLower(f.Message), "blocked by content filtering")
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

// The texts are compiled when the first call fails: a start does not pay for them.
var overflowText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)` + strings.Join([]string{
		`context[_ ]length`, `(exceeds?|larger than) the (available |model'?s )?(maximum )?context`,
		`context (window|size|limit)`, `(prompt|input) is too long`, `input (token count|length).*exceed`,
		`reduce the length of the (messages|prompt)`, `maximum (model|prompt) length`,
		`max_tokens must be at least 1, got -`, `max_new_tokens.{0,3} must be <=`,
	}, "|"))
})

// tooLarge is a request that no minute's allowance will ever cover.
var tooLarge = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)request too large .*limit \d+, requested \d+`) })

var quotaText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)insufficient_quota|exceeded your current quota|credit balance is too low|billing_(error|hard_limit)`)
})

func (f Failure) kind() kernel.CallKind {
	said := f.Code + " " + f.Type + " " + f.Message
	overflow := overflowText()
	if f.Status == http.StatusTooManyRequests {
		overflow = tooLarge()
	}
	if f.Status < 300 || f.Status >= 400 && f.Status < 500 {
		switch {
		case quotaText().MatchString(said):
			return kernel.Auth
		case overflow.MatchString(said):
			return kernel.ContextOverflow
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
}

func statusKind(status int) kernel.CallKind {
	switch status {
	case 400, 404, 422:
		return kernel.InvalidRequest
	case 413:
		return kernel.ContextOverflow
	case 401, 403:
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

// maxWait is a year in seconds.
const maxWait = 365 * 24 * 3600
