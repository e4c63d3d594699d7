package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// mcpLineLimit is the longest line that a client may send.
const mcpLineLimit = 64 << 20

// mcpLines hands on the messages that a client sends, one a line. What is none is
// answered here, for the SDK would hang up.
type mcpLines struct {
	from io.ReadCloser
	in   *bufio.Reader
	out  io.Writer
	left []byte // of messages that are not handed on yet
	err  error  // behind what is left

	once  sync.Once
	ended chan struct{} // closed once the client has sent its last
	after <-chan struct{}
}

// newMCPLines reads from a client. Its end is handed on when after is closed.
func newMCPLines(from io.ReadCloser, out io.Writer, after <-chan struct{}) *mcpLines {
	return &mcpLines{from: from, in: bufio.NewReaderSize(from, 64<<10), out: out, ended: make(chan struct{}), after: after}
}

// Read hands on the bytes of messages.
func (l *mcpLines) Read(p []byte) (int, error) {
	for len(l.left) == 0 {
		if l.err != nil {
			l.once.Do(func() { close(l.ended) })
			<-l.after
			return 0, l.err
		}
		line, err := l.line()
		l.left, l.err = l.take(line), err
	}
	n := copy(p, l.left)
	l.left = l.left[n:]
	return n, nil
}

// Close ends the reading.
func (l *mcpLines) Close() error { return l.from.Close() }

// line answers the next line, cut above the limit.
func (l *mcpLines) line() (line []byte, err error) {
	for {
		part, err := l.in.ReadSlice('\n')
		line = append(line, part[:min(len(part), mcpLineLimit+1-len(line))]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// take answers the messages in a line, one a line: a list of some is taken apart.
func (l *mcpLines) take(line []byte) (messages []byte) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return nil
	}
	if len(line) > mcpLineLimit {
		l.refuse(nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("invalid request: a message above %d MiB", mcpLineLimit>>20))
		return nil
	}
	if !json.Valid(line) {
		l.refuse(nil, jsonrpc.CodeParseError, fmt.Sprintf("parse error: got %.40q, want a JSON-RPC message on one line", line))
		return nil
	}
	list := []json.RawMessage{line}
	if line[0] == '[' {
		_ = json.Unmarshal(line, &list) // it is valid
	}
	if len(list) == 0 {
		l.refuse(nil, jsonrpc.CodeInvalidRequest, "invalid request: got a list of no messages, want one at least")
	}
	for _, one := range list {
		if why := messageFault(one); why != "" {
			l.refuse(one, jsonrpc.CodeInvalidRequest, fmt.Sprintf("invalid request: got %.40q, want %s", one, why))
			continue
		}
		messages = append(append(messages, one...), '\n')
	}
	return messages
}

// messageFault answers what is wanted of one in place of a message, "" when it
// is one.
func messageFault(one json.RawMessage) string {
	if _, err := jsonrpc.DecodeMessage(one); err != nil {
		why, _, _ := strings.Cut(err.Error(), " into Go ")
		return "a JSON-RPC message: " + why
	}
	if id := idOf(one); id != nil && id[0] != '"' && !isSafeInteger(id) {
		return "an id that is a text or a whole number below 2^53"
	}
	return ""
}

// idOf answers the id of a message as it is spelled, a text or a number; nil when
// it has none.
func idOf(message json.RawMessage) json.RawMessage {
	var asked struct{ ID json.RawMessage }
	_ = json.Unmarshal(message, &asked) // a list or a value has none
	if len(asked.ID) == 0 || !strings.Contains(`"-0123456789`, string(asked.ID[:1])) {
		return nil
	}
	return asked.ID
}

// isSafeInteger says whether a number is answered as it was asked: every reader
// of JSON knows the same whole number by it.
func isSafeInteger(number json.RawMessage) bool {
	n, err := strconv.ParseFloat(string(number), 64)
	return err == nil && n == math.Trunc(n) && math.Abs(n) < 1<<53
}

// refuse answers what is no message; a client that does not listen is done.
func (l *mcpLines) refuse(message json.RawMessage, code int, text string) {
	answer, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": idOf(message), "error": map[string]any{"code": code, "message": text}})
	if err != nil {
		panic("BUG: an answer does not encode: " + err.Error())
	}
	_, _ = l.out.Write(append(answer, '\n'))
}

// oneAtATime lets two write lines to w.
type oneAtATime struct {
	mu sync.Mutex
	w  io.Writer
}

// Write writes p whole.
func (o *oneAtATime) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(p)
}

// Close does nothing: the process closes its stdout.
func (o *oneAtATime) Close() error { return nil }
