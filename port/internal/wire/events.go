package wire

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
)

// byteOrder is the mark that a few servers begin a text with.
const byteOrder = "\uFEFF"

// IsStream says whether a response is made of events, and takes the space before it
// away. What it begins with says so better than its header: some servers write events
// as plain text, and an error as JSON where events were announced.
func IsStream(res *http.Response) bool {
	r := bufio.NewReader(res.Body)
	res.Body = struct {
		io.Reader
		io.Closer
	}{r, res.Body}
	if begin, _ := r.Peek(len(byteOrder)); string(begin) == byteOrder {
		_, _ = r.Discard(len(byteOrder))
	}
	begin, err := r.Peek(1)
	for ; err == nil && bytes.ContainsAny(begin, " \t\r\n"); begin, err = r.Peek(1) {
		_, _ = r.Discard(1)
	}
	switch string(begin) {
	case "{", "[":
		return false
	case ":":
		return true
	}
	if word, _ := r.Peek(5); string(word) == "data:" || string(word) == "event" {
		return true
	}
	kind, _, _ := strings.Cut(res.Header.Get("content-type"), ";")
	return strings.EqualFold(strings.TrimSpace(kind), "text/event-stream")
}
