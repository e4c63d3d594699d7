package wire

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/knl-run/knl/kernel"
)

// FirstWords answers the beginning of a text on one line, 200 characters of it.
func FirstWords(text string) string {
	const most = 200
	line := strings.Join(strings.Fields(strings.ToValidUTF8(text[:min(len(text), 8*most)], "\uFFFD")), " ")
	n := 0
	for i := range line {
		if n++; n > most {
			return line[:i] + "…"
		}
	}
	return line
}

// Waiting answers how long a provider asks to wait: the header in milliseconds
// where there is one, for it is finer.
func Waiting(h http.Header) string {
	if ms, err := strconv.ParseFloat(h.Get("retry-after-ms"), 64); err == nil && ms > 0 {
		return strconv.FormatFloat(ms/1000, 'f', -1, 64)
	}
	return h.Get("retry-after")
}

// leastSecret is the length of the shortest value that is hidden: "x", which some
// local servers want as a key, would take its letter from every word.
const leastSecret = 4

// Hide answers an error with the secrets taken from its text: an error is
// recorded.
func Hide(err *kernel.CallError, secrets []string) *kernel.CallError {
	own := *err
	for _, secret := range secrets {
		if len(secret) >= leastSecret {
			own.Message = strings.ReplaceAll(own.Message, secret, "***")
		}
	}
	return &own
}

// Unreadable says that what came is not what the provider writes.
func Unreadable(what, body string) *kernel.CallError {
	if words := FirstWords(body); words != "" {
		what += ": " + words
	}
	return &kernel.CallError{Kind: kernel.Server, Message: what}
}

// Cut says that an answer stopped in the middle.
func Cut(err error) *kernel.CallError {
	message := "the stream ended before the answer was whole"
	if err != nil {
		message += ": " + err.Error()
	}
	return &kernel.CallError{Kind: kernel.Transport, Message: message}
}

// Counter is a count of tokens as a server writes it: a number, whole or not.
// Anything else leaves it as it is.
type Counter int64

// UnmarshalJSON implements json.Unmarshaler. It never fails.
func (c *Counter) UnmarshalJSON(raw []byte) error {
	if n, err := strconv.ParseFloat(string(raw), 64); err == nil && n >= 0 && n < 1<<53 {
		*c = Counter(n)
	}
	return nil
}
