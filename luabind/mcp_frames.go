package luabind

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// mcpFrameLimit is the longest message that a server may send: a tool result of
// 16 MiB, the most that a log takes, fits however its bytes are spelled.
const mcpFrameLimit = 64 << 20

// mcpFrames hands on the messages of a server's stdout, one a line, and keeps
// back what is none: banners, logs, blank lines. A server that prints them works
// all the same, and one that prints nothing else can be told from a silent one.
type mcpFrames struct {
	from io.ReadCloser
	in   *bufio.Reader
	left []byte // of a message that is not handed on yet
	err  error  // behind what is left
	once sync.Once
	eof  chan struct{} // closed once nothing more will be handed on

	mu    sync.Mutex
	noise []byte // the end of it
	total int64  // of all noise
}

func newMCPFrames(from io.ReadCloser) *mcpFrames {
	return &mcpFrames{from: from, in: bufio.NewReaderSize(from, 64<<10), eof: make(chan struct{})}
}

// Read hands on the bytes of messages.
func (f *mcpFrames) Read(p []byte) (int, error) {
	for len(f.left) == 0 {
		if f.err != nil {
			f.finish()
			return 0, f.err
		}
		line, err := f.line()
		if f.left = messagesIn(line); f.left == nil {
			f.hear(line)
		}
		f.err = err
	}
	n := copy(p, f.left)
	f.left = f.left[n:]
	return n, nil
}

// Close ends a Read that waits.
func (f *mcpFrames) Close() error {
	f.finish()
	return f.from.Close()
}

func (f *mcpFrames) finish() { f.once.Do(func() { close(f.eof) }) }

// line answers the next line with its end. Of one that cannot be a message only
// the beginning is kept, so that noise without end takes no memory.
func (f *mcpFrames) line() (line []byte, err error) {
	for {
		part, err := f.in.ReadSlice('\n')
		if room := mcpFrameLimit - len(line); len(part) > room {
			return nil, fmt.Errorf("a message above %d MiB", mcpFrameLimit>>20)
		}
		if len(line) == 0 || mayBeMessage(line) {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// mcpNoise is how much of what is no message is kept to be quoted.
const mcpNoise = 400

func (f *mcpFrames) hear(line []byte) {
	if line = bytes.TrimSpace(line); len(line) > 0 {
		f.mu.Lock()
		defer f.mu.Unlock()
		line = append(line[:min(len(line), 200):min(len(line), 200)], '\n')
		f.total += int64(len(line))
		f.noise = append(f.noise, line...)
		f.noise = f.noise[max(0, len(f.noise)-mcpNoise):]
	}
}

func (f *mcpFrames) printed() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.total
}

// heard answers the end of what was no message and came after the first since
// bytes of such.
func (f *mcpFrames) heard(since int64) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return string(f.noise[max(0, int64(len(f.noise))-(f.total-since)):])
}

func mayBeMessage(line []byte) bool {
	line = bytes.TrimLeft(line, " \t\r\n")
	return len(line) == 0 || line[0] == '{' || line[0] == '['
}

// messagesIn answers the JSON-RPC messages of a line, one a line: a list of some
// is taken apart, for most versions of the protocol know no lists. What the
// protocol cannot read would end the connection: it is noise like any other.
func messagesIn(line []byte) []byte {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || !mayBeMessage(line) {
		return nil
	}
	list := []json.RawMessage{line}
	if line[0] == '[' && json.Unmarshal(line, &list) != nil {
		return nil
	}
	var out []byte
	for _, one := range list {
		if _, err := jsonrpc.DecodeMessage(one); err != nil {
			return nil
		}
		out = append(append(out, one...), '\n')
	}
	return out
}
