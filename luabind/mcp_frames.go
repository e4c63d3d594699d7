package luabind

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
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
	why  error         // what ended it, once eof is closed
	eof  chan struct{} // closed once nothing more will be handed on

	mu    sync.Mutex
	noise headTail
}

func newMCPFrames(from io.ReadCloser) *mcpFrames {
	return &mcpFrames{from: from, in: bufio.NewReaderSize(from, 64<<10), eof: make(chan struct{}), noise: headTail{limit: 400}}
}

// Read hands on the bytes of messages.
func (f *mcpFrames) Read(p []byte) (int, error) {
	for len(f.left) == 0 {
		if f.err != nil {
			f.finish(f.err)
			return 0, f.err
		}
		line, err := f.line()
		if isMessage(line) {
			f.left = line
		} else {
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
	f.finish(os.ErrClosed)
	return f.from.Close()
}

func (f *mcpFrames) finish(why error) {
	f.once.Do(func() {
		f.why = why
		close(f.eof)
	})
}

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

func (f *mcpFrames) hear(line []byte) {
	if line = bytes.TrimSpace(line); len(line) > 0 {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.noise.Write(line[:min(len(line), 200)])
		f.noise.Write([]byte("\n"))
	}
}

// heard answers the beginning and the end of what was no message.
func (f *mcpFrames) heard() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.noise.String()
}

func mayBeMessage(line []byte) bool {
	line = bytes.TrimLeft(line, " \t\r\n")
	return len(line) == 0 || line[0] == '{' || line[0] == '['
}

// isMessage says whether a line is a JSON-RPC message or a list of some. What the
// protocol cannot read would end the connection: it is noise like any other.
func isMessage(line []byte) bool {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || !mayBeMessage(line) {
		return false
	}
	if line[0] == '{' {
		_, err := jsonrpc.DecodeMessage(line)
		return err == nil
	}
	var list []json.RawMessage
	if json.Unmarshal(line, &list) != nil || len(list) == 0 {
		return false
	}
	for _, one := range list {
		if _, err := jsonrpc.DecodeMessage(one); err != nil {
			return false
		}
	}
	return true
}
