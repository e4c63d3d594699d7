package kernel

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/knl-run/knl/kernel/store"
)

// Kind says what kind of fault the kernel met. Callers branch on it; the text
// of an [Error] is for people.
type Kind string

// The kinds of [Error]. Only Busy is worth asking again.
const (
	Busy        Kind = "busy"        // the store is held elsewhere or overloaded
	Storage     Kind = "storage"     // I/O or connection fault
	Corruption  Kind = "corruption"  // a stored byte is not what was written
	Closed      Kind = "closed"      // the session or the handle has ended
	Validation  Kind = "validation"  // the caller's argument is wrong; nothing was written
	Unsupported Kind = "unsupported" // this handle or store cannot do that
	Timeout     Kind = "timeout"     // the deadline passed or the caller gave up waiting
	Refused     Kind = "refused"     // an allocation was not covered; the refusal is recorded
	Fenced      Kind = "fenced"      // another driver took the session over; nothing was written
)

// Kinds lists every Kind in the order of the documentation.
var Kinds = []Kind{Busy, Storage, Corruption, Closed, Validation, Unsupported, Timeout, Refused, Fenced}

// Error is a fault with its kind and the call it happened in.
type Error struct {
	Kind    Kind
	Method  string // the call as a script names it: "append", "reserve", "open"
	Message string
	Err     error // the cause, when there is one
}

// Error answers "knl: <method>: <kind>: <message>".
func (e *Error) Error() string {
	return "knl: " + e.Method + ": " + string(e.Kind) + ": " + e.Message
}

// Unwrap answers the cause.
func (e *Error) Unwrap() error { return e.Err }

// Retryable says whether asking again may help.
func (e *Error) Retryable() bool { return e.Kind == Busy }

// KindOf answers the Kind of err, or "" when it is not a kernel fault.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

func faultf(kind Kind, method, format string, args ...any) *Error {
	return &Error{Kind: kind, Method: method, Message: fmt.Sprintf(format, args...)}
}

// wrap attributes a store's fault to the kernel call that met it. A fault that
// is attributed already keeps its kind and gets no second prefix.
func wrap(method string, err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	kind := Storage
	switch {
	case errors.Is(err, store.ErrBusy), errors.Is(err, store.ErrConflict):
		kind = Busy
	case errors.Is(err, store.ErrCorrupt):
		kind = Corruption
	case errors.Is(err, store.ErrClosed):
		kind = Closed
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		kind = Timeout
	}
	return &Error{Kind: kind, Method: method, Message: err.Error(), Err: err}
}

// CallKind says why a model call failed.
type CallKind string

// The kinds of [CallError]; the first four are retryable.
const (
	Transport       CallKind = "transport"        // connection lost, stream cut, deadline passed
	RateLimited     CallKind = "rate_limited"     // too many requests; see RetryAfter
	Overloaded      CallKind = "overloaded"       // the provider has no room now
	Server          CallKind = "server"           // the provider failed
	Auth            CallKind = "auth"             // key missing, wrong or without the right
	InvalidRequest  CallKind = "invalid_request"  // the provider will never accept this request
	ContextOverflow CallKind = "context_overflow" // the request does not fit the context window
	Cancelled       CallKind = "cancelled"        // the caller ended the call
	Unknown         CallKind = "unknown"          // anything else
)

// CallKinds lists every CallKind in the order of the documentation.
var CallKinds = []CallKind{Transport, RateLimited, Overloaded, Server, Auth, InvalidRequest, ContextOverflow, Cancelled, Unknown}

// Retryable says whether a call that failed so is worth repeating.
func (k CallKind) Retryable() bool {
	return k == Transport || k == RateLimited || k == Overloaded || k == Server
}

// Known says whether k is one of [CallKinds].
func (k CallKind) Known() bool {
	return slices.Contains(CallKinds, k)
}

// CallError is why a model call gave no answer.
type CallError struct {
	Kind       CallKind
	Message    string
	RetryAfter float64 // seconds the provider asked to wait; 0 when it did not say
	Status     int     // HTTP status; 0 when there was none
	Retry      *bool   // what the adapter knows of retrying; nil: as the Kind says
}

// Retryable says whether the call is worth repeating. An unknown kind never is.
func (e *CallError) Retryable() bool {
	if e.Retry != nil && e.Kind.Known() {
		return *e.Retry
	}
	return e.Kind.Retryable()
}

// Error answers "<kind>: <message>".
func (e *CallError) Error() string { return string(e.Kind) + ": " + e.Message }
