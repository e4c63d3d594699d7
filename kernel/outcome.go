package kernel

import (
	"encoding/json"
	"errors"
	"math"
)

// The statuses of an [Outcome].
const (
	StatusOK      = "ok"      // the model answered and its tools ran
	StatusRefused = "refused" // the model or a filter of the provider declined
	StatusError   = "error"   // a stage failed; Stage and Detail say which and why
	StatusStopped = "stopped" // nothing failed, and the loop should end; Reason says why
)

// The stages of an error Outcome.
const (
	StageConf     = "conf"     // the device, its fold, cost, settle or tool_policy, or an option
	StageFilter   = "filter"   // a filter
	StageCall     = "call"     // the model call
	StageState    = "state"    // the session or its store
	StageContract = "contract" // the turn contract
)

// Outcome is what a beat came to. It is a value: a beat never answers a Go
// error.
type Outcome struct {
	Status string
	Reply  *Reply  // of ok and refused
	Reason string  // of refused: the kind of refusal; of stopped: "budget" or "deadline"
	Tag    string  // of stopped: the unit of the budget that ran out
	Stage  string  // of error
	Detail *Detail // of error
}

// Reply is what the model said and what its tools did.
type Reply struct {
	Beat          string
	Content       json.RawMessage // blocks, as recorded
	Usage         Usage
	StopReason    string
	RefusalKind   string
	RefusalDetail string
	Tools         []ToolRun
}

// ToolRun is one line of a Reply.
type ToolRun struct {
	CallID string
	Name   string
	OK     bool
}

// Detail is why an Outcome is an error.
type Detail struct {
	Kind       string // a CallKind at stage call, a Kind at stage state, else ""
	Method     string // at stage state: the kernel call that failed
	Retryable  bool
	RetryAfter float64 // seconds
	Status     int     // HTTP status
	Message    string
	Traceback  string // of a raise in a caller's function, in dev mode
	Cause      string // what went wrong before, when recording it went wrong too
	Reply      *Reply // an answer that was paid for and could not be recorded
	Err        error  // the Go error behind it
}

// Error answers the message.
func (d *Detail) Error() string { return d.Message }

// Stopped answers a stopped Outcome.
func Stopped(reason, tag string) Outcome {
	return Outcome{Status: StatusStopped, Reason: reason, Tag: tag}
}

func failed(stage string, d *Detail) Outcome {
	return Outcome{Status: StatusError, Stage: stage, Detail: d}
}

// Tracer is an error that carries where a script raised it.
type Tracer interface{ Traceback() string }

// raised answers the error Outcome of a caller's function that failed. One that
// asked a provider, a count of tokens say, failed as a call does: whether it is
// worth repeating, and when, is the provider's word.
func raised(stage, what string, err error) Outcome {
	d := &Detail{Message: what + ": " + err.Error(), Err: err}
	if t, ok := err.(Tracer); ok {
		d.Traceback = t.Traceback()
	}
	var ce *CallError
	if errors.As(err, &ce) {
		d.provider(ce)
	}
	return failed(stage, d)
}

// provider notes what a provider's error says beside its text.
func (d *Detail) provider(ce *CallError) {
	d.Kind, d.Status, d.Retryable = string(ce.Kind), ce.Status, ce.Retryable()
	if !ce.Kind.Known() {
		d.Kind = string(Unknown)
	}
	if ce.RetryAfter > 0 && !math.IsInf(ce.RetryAfter, 1) {
		d.RetryAfter = ce.RetryAfter
	}
}

// stateFailed answers the error Outcome of a session that cannot be read or
// written.
func stateFailed(err error) Outcome { return failed(StageState, stateDetail(err)) }

func stateDetail(err error) *Detail {
	d := &Detail{Message: err.Error(), Err: err}
	if e, ok := wrap("beat", err).(*Error); ok {
		d.Kind, d.Method, d.Retryable = string(e.Kind), e.Method, e.Retryable()
		if d.Message != e.Error() {
			d.Message = e.Error()
		}
	}
	return d
}
