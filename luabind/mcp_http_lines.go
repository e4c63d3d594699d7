package luabind

import (
	"bufio"
	"io"
)

// sseLines is a stream of server-sent events as the SDK reads one. The standard
// also has a mark at the beginning of the stream, lines that end with CR alone or
// CR LF, and lines without a colon, which are a field without a value.
type sseLines struct {
	io.Closer
	in    *bufio.Reader
	left  []byte // that is not handed on yet
	err   error  // behind what is left
	begun bool
	last  byte // that was read
	field bool // a line is under way that has had no colon yet
}

func newSSELines(body io.ReadCloser) *sseLines {
	return &sseLines{Closer: body, in: bufio.NewReaderSize(body, 16<<10), last: '\n'}
}

// Read hands on what has come.
func (s *sseLines) Read(p []byte) (int, error) {
	for len(s.left) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		s.fill()
	}
	n := copy(p, s.left)
	s.left = s.left[n:]
	return n, nil
}

func (s *sseLines) fill() {
	const mark = "\xEF\xBB\xBF"
	if !s.begun {
		s.begun = true
		if start, _ := s.in.Peek(len(mark)); string(start) == mark {
			_, _ = s.in.Discard(len(mark))
		}
	}
	_, s.err = s.in.Peek(1)
	came, _ := s.in.Peek(s.in.Buffered())
	s.left = s.left[:0]
	for _, char := range came {
		s.take(char)
	}
	_, _ = s.in.Discard(len(came))
}

func (s *sseLines) take(char byte) {
	last := s.last
	s.last = char
	switch char {
	case '\n', '\r':
		if char == '\n' && last == '\r' {
			return // one end
		}
		if s.field {
			s.left = append(s.left, ':')
		}
		s.left, s.field = append(s.left, '\n'), false
		return
	case ':':
		s.field = false
	default:
		if last == '\n' || last == '\r' {
			s.field = true
		}
	}
	s.left = append(s.left, char)
}
