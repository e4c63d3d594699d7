package openai

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
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
//	Google             {"error": {"message", "code": 429, "status": "RESOURCE_EXHAUSTED", "details"}}, or a list of it
//	gateways           {"detail": "…" or […]}, {"message": "…"}, a page
//
// What openrouter's own provider said stands as text in metadata.raw, and when its own
// limit is over, in metadata.headers.
type spoken struct {
	Message  string          `json:"message"`
	Type     string          `json:"type"`
	Code     json.RawMessage `json:"code"`
	Detail   json.RawMessage `json:"detail"`
	Status   json.RawMessage `json:"status"`
	Details  json.RawMessage `json:"details"`
	Metadata struct {
		Reasons  []string        `json:"reasons"` // of a moderation
		Raw      json.RawMessage `json:"raw"`
		Provider string          `json:"provider_name"`
		Headers  struct {
			Reset json.RawMessage `json:"X-RateLimit-Reset"` // a moment, in milliseconds
		} `json:"headers"`
	} `json:"metadata"`

	reason string // the narrow word of Google's
	wait   string // in seconds, where the body says it
}

// heard reads what a server said.
func heard(raw json.RawMessage) spoken {
	var s spoken
	switch field.KindOf(raw) {
	case '"':
		s.Message = field.Plain(raw)
	case '{':
		_ = field.Lenient(raw, &s)
		if s.Message == "" && s.Detail != nil {
			if s.Message = field.Plain(s.Detail); s.Message == "" {
				s.Message = wire.FirstWords(string(s.Detail))
			}
		}
		s.google()
		s.relay()
		s.reset()
	}
	return s
}

// google reads what Google says beside its message: the word for the failure, the
// quota that was met, and how long to wait for it.
func (s *spoken) google() {
	if word := field.Plain(s.Status); s.Type == "" && field.KindOf(s.Status) == '"' {
		s.Type = word
	}
	var details []struct {
		Delay      string `json:"retryDelay"` // "34s", always in seconds
		Reason     string `json:"reason"`
		Violations []struct {
			Quota string `json:"quotaId"`
		} `json:"violations"`
	}
	if json.Unmarshal(s.Details, &details) != nil {
		return
	}
	for _, d := range details {
		if d.Reason != "" {
			s.reason = d.Reason
		}
		if d.Delay != "" {
			s.wait = strings.TrimSuffix(d.Delay, "s")
		}
		for _, v := range d.Violations {
			if v.Quota != "" && !strings.Contains(s.Message, v.Quota) {
				s.Message += " (" + v.Quota + ")"
			}
		}
	}
}

// around reads what a server said with a body, which is the error itself or has
// it as a member.
func around(body []byte) spoken {
	if list, err := field.Elements(body); err == nil && len(list) > 0 {
		body = list[0]
	}
	var top struct {
		Error json.RawMessage `json:"error"`
	}
	if field.Lenient(body, &top) && isError(top.Error) {
		return heard(top.Error)
	}
	if field.KindOf(body) == '{' {
		return heard(body)
	}
	return spoken{}
}

// relay adds to what a gateway says what the server behind it said to the gateway.
func (s *spoken) relay() {
	raw := s.Metadata.Raw
	if !isSet(raw) {
		return
	}
	if field.KindOf(raw) == '"' {
		raw = json.RawMessage(field.Plain(raw))
	}
	cause := around(raw)
	if cause.Message == "" {
		cause.Message = wire.FirstWords(string(raw))
	}
	if s.wait == "" {
		s.wait = cause.wait
	}
	by := ""
	if s.Metadata.Provider != "" {
		by = " (" + s.Metadata.Provider + ")"
	}
	s.Message = strings.TrimPrefix(s.Message+by+": "+cause.Message, ": ")
	if word, _ := s.code(); word == "" && s.Type == "" {
		s.Type, _ = cause.code()
		if s.Type == "" {
			s.Type = cause.Type
		}
	}
}

// reset reads when openrouter's own limit is over.
func (s *spoken) reset() {
	at := time.UnixMilli(int64(number(s.Metadata.Headers.Reset)))
	if left := time.Until(at); s.wait == "" && left > 0 {
		s.wait = strconv.FormatFloat(left.Seconds(), 'f', 3, 64)
	}
}

// code answers the word and the status that the code is.
func (s spoken) code() (word string, status int) {
	if n := number(s.Code); n >= 100 && n <= 599 {
		return "", int(n)
	}
	return field.Plain(s.Code), 0
}

// err classifies what was said. status is 0 inside a stream.
func (s spoken) err(status int, wait string) error {
	word, coded := s.code()
	if status == 0 {
		status = coded
	}
	if word == "" {
		word = cmp.Or(s.reason, s.Type)
	}
	if wait == "" {
		wait = s.wait
	}
	f := port.Failure{Status: status, Code: word, Type: s.Type, Message: s.Message, RetryAfter: wait}
	if f.Filtered() || len(s.Metadata.Reasons) > 0 {
		return &wire.Refusal{Detail: strings.TrimSpace(s.Message + " " + strings.Join(s.Metadata.Reasons, ", "))}
	}
	return port.Classify(f, time.Now())
}

// failure answers a response that is not 200 as the error of a call. known says
// whether the call said who it is from.
func (s *server) failure(res *http.Response, body []byte, known bool) error {
	said := around(body)
	if said.Message == "" {
		said.Message = unsaid(res, body)
	}
	err := said.err(res.StatusCode, wire.Waiting(res.Header))
	var call *kernel.CallError
	switch {
	case !errors.As(err, &call):
	case call.Retryable() && res.Header.Get("x-should-retry") == "false":
		call.Retry = new(bool)
	case res.StatusCode == http.StatusUnauthorized && !known:
		call.Message += ": no key was sent, want its variable in conf.api_key_env"
	}
	return err
}

// unsaid answers what a response is of which the server says nothing readable.
func unsaid(res *http.Response, body []byte) string {
	what := strings.TrimSpace(fmt.Sprintf("the server answered %d %s", res.StatusCode, http.StatusText(res.StatusCode)))
	if to, err := res.Location(); err == nil && res.StatusCode/100 == 3 {
		return fmt.Sprintf("%s and points to %s://%s%s, and no redirect is followed: want the address there in conf.base_url", what, to.Scheme, to.Host, to.EscapedPath())
	}
	if words := wire.FirstWords(string(body)); words != "" {
		what += ": " + words
	}
	return what
}

// inside answers an error that came with status 200.
func inside(raw json.RawMessage) error {
	s := heard(raw)
	if s.Message == "" {
		s.Message = wire.FirstWords(string(raw))
	}
	return s.err(0, "")
}
