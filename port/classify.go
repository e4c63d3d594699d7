package port

import (
	"context"
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
	Message    string
	RetryAfter string // the retry-after header: seconds or an HTTP date
}

// Classify answers f as the error of a call. now is what a date in RetryAfter
// is compared with.
//
// The kind decides whether a call is repeated, so what the provider says goes
// before its status: a spent quota comes as 429 and no waiting helps, and an
// overflow comes as 400 and a shorter request does help.
func Classify(f Failure, now time.Time) *kernel.CallError {
	message := f.Message
	if message == "" {
		message = strings.TrimSpace("the provider answered " + strings.TrimSpace(strconv.Itoa(f.Status)+" "+f.Code))
	}
	return &kernel.CallError{
		Kind:       f.kind(),
		Message:    message,
		RetryAfter: retryAfter(f.RetryAfter, now),
		Status:     f.Status,
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
		`context[_ ]length[_ ]exceeded`, `maximum context length`, `(exceeds?|larger than) the (available |model'?s )?(maximum )?context`,
		`context (window|size|limit)`, `prompt is too long`, `input is too long`, `input (token count|length).*exceed`,
		`reduce the length of the (messages|prompt)`,
	}, "|"))
})

var quotaText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)insufficient_quota|exceeded your current quota|credit balance is too low|billing_(error|hard_limit)`)
})

func (f Failure) kind() kernel.CallKind {
	said := f.Code + " " + f.Message
	refused := f.Status == 0 || f.Status >= 400 && f.Status < 500
	if refused && quotaText().MatchString(said) {
		return kernel.Auth
	}
	if refused && f.Status != http.StatusTooManyRequests && overflowText().MatchString(said) {
		return kernel.ContextOverflow
	}
	if kind, known := codeKinds[f.Code]; known && f.Status < 400 {
		return kind
	}
	return statusKind(f.Status)
}

// codeKinds reads the word of an error that comes inside a stream, where the
// status was 200 long ago.
var codeKinds = map[string]kernel.CallKind{
	"overloaded_error":      kernel.Overloaded,
	"rate_limit_error":      kernel.RateLimited,
	"rate_limit_exceeded":   kernel.RateLimited,
	"api_error":             kernel.Server,
	"server_error":          kernel.Server,
	"timeout_error":         kernel.Transport,
	"authentication_error":  kernel.Auth,
	"permission_error":      kernel.Auth,
	"invalid_request_error": kernel.InvalidRequest,
	"not_found_error":       kernel.InvalidRequest,
	"request_too_large":     kernel.InvalidRequest,
}

func statusKind(status int) kernel.CallKind {
	switch status {
	case 400, 404, 413, 422:
		return kernel.InvalidRequest
	case 401, 403:
		return kernel.Auth
	case 429:
		return kernel.RateLimited
	case 503, 529:
		return kernel.Overloaded
	case 408, 504:
		return kernel.Transport
	}
	if status >= 500 {
		return kernel.Server
	}
	return kernel.Unknown
}

// retryAfter answers the seconds to wait, 0 when the header says none, is not
// understood, or names a moment that has passed.
func retryAfter(header string, now time.Time) float64 {
	header = strings.TrimSpace(header)
	if seconds, err := strconv.ParseFloat(header, 64); err == nil {
		if seconds > 0 && seconds < maxWait {
			return seconds
		}
		return 0
	}
	at, err := http.ParseTime(header)
	if err != nil {
		return 0
	}
	return max(0, at.Sub(now).Seconds())
}

// maxWait is a year: more is no time to wait but a mistake.
const maxWait = 365 * 24 * 3600
