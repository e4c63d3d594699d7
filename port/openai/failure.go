package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/internal/field"
	"github.com/knl-run/knl/port/internal/wire"
)

// spoken is what a server said of a failure, whichever way it says it:
//
//	openai, llamacpp   {"error": {"message", "type", "code"}}
//	openrouter         {"error": {"message", "code": 429, "metadata"}}
//	ollama             {"error": "…"} or as openai
//	vllm               {"error": {"message", "type", "code": 400}}, once without "error" around it
//	gateways           {"detail": "…" or […]}, {"message": "…"}, a page
type spoken struct {
	Message  string          `json:"message"`
	Type     string          `json:"type"`
	Code     json.RawMessage `json:"code"`
	Detail   json.RawMessage `json:"detail"`
	Metadata struct {
		Reasons []string `json:"reasons"` // of a moderation
		Raw     json.RawMessage
	} `json:"metadata"`
}

// heard reads what a server said.
func heard(raw json.RawMessage) spoken {
	var s spoken
	if field.KindOf(raw) == '"' {
		_ = json.Unmarshal(raw, &s.Message)
		return s
	}
	if json.Unmarshal(raw, &s) != nil {
		return spoken{}
	}
	if s.Message == "" && s.Detail != nil {
		s.Message = wire.FirstWords(string(s.Detail))
		_ = json.Unmarshal(s.Detail, &s.Message)
	}
	return s
}

// code answers the word and the status that the code is.
func (s spoken) code() (word string, status int) {
	if json.Unmarshal(s.Code, &status) != nil {
		_ = json.Unmarshal(s.Code, &word)
	}
	if status < 100 || status > 599 {
		status = 0
	}
	return word, status
}

// refusalError is a failure that is a refusal: a filter stopped the prompt.
type refusalError struct{ detail string }

// Error answers what the provider said.
func (e *refusalError) Error() string { return e.detail }

// declined answers the Answer that a refusal is, and every other error as it is.
func declined(err error) (*kernel.Answer, error) {
	var refusal *refusalError
	if !errors.As(err, &refusal) {
		return nil, err
	}
	return &kernel.Answer{
		Refused: true, RefusalKind: "content_filter", RefusalDetail: refusal.detail,
		Content: json.RawMessage("[]"), StopReason: "refusal",
	}, nil
}

// err classifies what was said. status is 0 inside a stream.
func (s spoken) err(status int, wait string) error {
	word, coded := s.code()
	if word == "content_filter" || word == "content_policy_violation" || len(s.Metadata.Reasons) > 0 {
		return &refusalError{strings.TrimSpace(s.Message + " " + strings.Join(s.Metadata.Reasons, ", "))}
	}
	if status == 0 {
		status = coded
	}
	f := port.Failure{Status: status, Code: word, Message: s.Message, RetryAfter: wait}
	call := port.Classify(f, time.Now())
	if call.Kind == kernel.Unknown && s.Type != "" {
		f.Code = s.Type
		call = port.Classify(f, time.Now())
	}
	switch {
	case status == http.StatusPaymentRequired:
		call.Kind = kernel.Auth // nothing is left on the account, and no waiting helps
	case s.Type == "insufficient_quota":
		call.Kind = kernel.Auth
	}
	return call
}

// failure answers a response that is not 200 as the error of a call.
func (s *server) failure(res *http.Response, body []byte) error {
	var top struct {
		Error json.RawMessage `json:"error"`
	}
	said := spoken{}
	if json.Unmarshal(body, &top) == nil {
		if top.Error == nil || field.KindOf(top.Error) == 'n' {
			top.Error = body
		}
		said = heard(top.Error)
	}
	if said.Message == "" {
		said.Message = strings.TrimSuffix(fmt.Sprintf("the server answered %d %s: %s", res.StatusCode, http.StatusText(res.StatusCode), wire.FirstWords(string(body))), ": ")
	}
	err := said.err(res.StatusCode, wire.Waiting(res.Header))
	var call *kernel.CallError
	if errors.As(err, &call) && call.Retryable() && res.Header.Get("x-should-retry") == "false" {
		call.Retry = new(bool)
	}
	return err
}

// inside answers an error that came with status 200.
func inside(raw json.RawMessage) error {
	s := heard(raw)
	if s.Message == "" {
		s.Message = wire.FirstWords(string(raw))
	}
	return s.err(0, "")
}
