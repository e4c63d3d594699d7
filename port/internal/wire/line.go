package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
)

// Line is how the calls to one server say who they are from, and what of them
// nobody may repeat.
type Line struct {
	Host    port.Host
	KeyEnv  string            // the variable of the key; empty: no key is sent
	Needs   bool              // a call without a key is refused
	Headers map[string]string // the conf's, sent as they are
	Signs   []string          // headers that say it in place of a key, in lower case
	secrets []string          // values of Headers that no error may repeat
}

// NewLine answers the line of a conf whose headers may be sent. The masker is
// told what in them is secret.
func NewLine(host port.Host, conf port.Conf, signs ...string) (Line, error) {
	l := Line{Host: host, KeyEnv: conf.APIKeyEnv, Headers: conf.Headers, Signs: signs}
	if strings.ContainsFunc(conf.APIKeyEnv, noName) {
		return l, errors.New("conf.api_key_env: got what no variable is called, want the name of the variable that holds the key")
	}
	var err error
	l.secrets, err = Headers(conf.Headers)
	for _, secret := range l.secrets {
		l.tell(secret)
	}
	return l, err
}

// noName says whether the name of a variable cannot hold r: people put the key
// itself there.
func noName(r rune) bool {
	return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
}

// Announce tells the masker the key before a call needs it: what is printed or
// recorded until then must not show it.
func (l *Line) Announce() { l.tell(l.Env(l.KeyEnv)) }

// Env answers a variable of the environment without the space around it.
func (l *Line) Env(name string) string {
	if l.Host.Env == nil || name == "" {
		return ""
	}
	value, _ := l.Host.Env(name)
	return strings.TrimSpace(value)
}

// Key looks the key up and hands it to the masker before anything else sees it.
// It is empty where none is sent.
func (l *Line) Key() (string, error) {
	key := l.Env(l.KeyEnv)
	if key == "" && l.Needs && !l.Signed() {
		return "", &kernel.CallError{Kind: kernel.Auth, Message: fmt.Sprintf("%s: not set, want the key of the provider there, or in a variable that conf.api_key_env names", l.KeyEnv)}
	}
	if err := Key(l.KeyEnv, key); err != nil {
		return "", &kernel.CallError{Kind: kernel.Auth, Message: err.Error()}
	}
	l.tell(key)
	return key, nil
}

func (l *Line) tell(secret string) {
	if secret != "" && l.Host.Secret != nil {
		l.Host.Secret(secret)
	}
}

// Signed says whether a header of the conf carries what a key would.
func (l *Line) Signed() bool {
	for name := range l.Headers {
		if slices.Contains(l.Signs, strings.ToLower(name)) {
			return true
		}
	}
	return false
}

// Ended is the package's Ended without the line's secrets: an error is
// recorded. A refusal stays one.
func (l *Line) Ended(outer, inner context.Context, err error) error {
	var refusal *Refusal
	if errors.As(err, &refusal) && outer.Err() == nil {
		return &Refusal{l.Hide(&kernel.CallError{Message: refusal.Detail}).Message}
	}
	return l.Hide(Ended(outer, inner, err))
}

// Hide answers an error without the line's secrets.
func (l *Line) Hide(err *kernel.CallError) *kernel.CallError {
	return Hide(err, append([]string{l.Env(l.KeyEnv)}, l.secrets...))
}

// Refusal is a failure that is a refusal: a filter stopped the prompt or the
// answer.
type Refusal struct{ Detail string }

// Error answers what the provider said.
func (e *Refusal) Error() string { return e.Detail }

// Declined answers the Answer that a refusal is, and every other error as it is.
func Declined(err error) (*kernel.Answer, error) {
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return port.Refusal(refusal.Detail), nil
	}
	return nil, err
}

// Warner tells a host each text once.
type Warner struct{ said sync.Map }

// Warn tells the host.
func (w *Warner) Warn(host port.Host, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if _, said := w.said.LoadOrStore(text, true); !said && host.Warn != nil {
		host.Warn(text)
	}
}
