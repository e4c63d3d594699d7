package luabind

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
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
		var noise []byte
		f.left, noise = messagesIn(line)
		f.hear(noise)
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
	line = bytes.TrimLeft(line, mcpBlank)
	return len(line) == 0 || line[0] == '{' || line[0] == '['
}

// mcpBlank are the letters that may stand in front of a message: some programs
// begin their output with a byte order mark.
const mcpBlank = " \t\r\n\ufeff"

// messagesIn answers the JSON-RPC messages of a line, one a line, and what of it
// is none. A list of some is taken apart, for most versions of the protocol know
// no lists. What the protocol cannot read would end the connection: it is noise,
// or the failure of the request that it answers.
func messagesIn(line []byte) (messages, noise []byte) {
	line = bytes.Trim(line, mcpBlank)
	in := json.NewDecoder(bytes.NewReader(line))
	rest := line
	for len(rest) > 0 && mayBeMessage(rest) {
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			if answer := mendedAnswer(rest, err); answer != nil {
				return append(messages, answer...), noise
			}
			break
		}
		rest = line[in.InputOffset():]
		list := []json.RawMessage{value}
		if value[0] == '[' {
			_ = json.Unmarshal(value, &list) // it is a list
		}
		for _, one := range list {
			if err := messageFault(one); err == nil {
				messages = append(append(messages, one...), '\n')
			} else if answer := mendedAnswer(one, err); answer != nil {
				messages = append(messages, answer...)
			} else {
				noise = append(append(noise, one...), '\n')
			}
		}
	}
	return messages, append(noise, rest...)
}

// messageFault says why the SDK would not take a message, or not as what it is.
func messageFault(one []byte) error {
	msg, err := jsonrpc.DecodeMessage(one)
	if req, asks := msg.(*jsonrpc.Request); err == nil && asks && req.Method == "" {
		return errors.New("it asks for nothing")
	}
	return err
}

// mendedAnswer answers an answer that cannot be read for the request that it says
// it is for: its result when that can be, so that nothing around it loses what was
// done, else an error in its place. It is nil when text does not look like an
// answer.
func mendedAnswer(text []byte, why error) []byte {
	id, result := answered(text)
	if id == nil {
		return nil
	}
	if result != nil {
		return fmt.Appendf(nil, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n", id, result)
	}
	words, _, _ := strings.Cut(strings.TrimPrefix(why.Error(), "unmarshaling jsonrpc message: "), " into Go ")
	said, err := json.Marshal(fmt.Sprintf("the answer cannot be used: %s: got %.200q", words, text))
	if err != nil {
		panic("BUG: luabind: a text does not encode: " + err.Error())
	}
	return fmt.Appendf(nil, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":0,\"message\":%s}}\n", id, said)
}

var mcpID = regexp.MustCompile(`(?s)^(-?[0-9]{1,15}|".*")$`)

// answered answers the id in text that begins as an answer does and says nothing
// that an answer does not, as a log does, and its result when text is whole. The id
// is nil when text does not begin so.
func answered(text []byte) (id, result json.RawMessage) {
	in := json.NewDecoder(bytes.NewReader(text))
	_, err := in.Token() // {
	answers, failed := false, false
	for err == nil && in.More() {
		var name json.Token
		if name, err = in.Token(); err != nil {
			break
		}
		var value json.RawMessage
		err = in.Decode(&value)
		switch said := string(value) != "null"; name {
		case "id":
			id = value
		case "result":
			answers, result = true, value
		case "error":
			answers, failed = true, said
		case "jsonrpc":
		default:
			if said {
				return nil, nil
			}
		}
	}
	if !answers || !mcpID.Match(id) {
		return nil, nil
	}
	if err != nil || failed {
		result = nil
	}
	return id, result
}
