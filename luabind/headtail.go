package luabind

import (
	"fmt"
	"unicode/utf8"
)

// headTail keeps the first and the last bytes of an output, up to limit, and
// counts what lies between. Not safe for two goroutines at once.
type headTail struct {
	limit int
	head  []byte
	tail  []byte // a ring once it is full
	next  int    // where the ring goes on
	total int64
}

// Write never answers an error: what is not kept is counted.
func (c *headTail) Write(p []byte) (int, error) {
	n := len(p)
	c.total += int64(n)
	if room := c.limit - c.limit/2 - len(c.head); room > 0 {
		take := min(room, len(p))
		c.head = append(c.head, p[:take]...)
		p = p[take:]
	}
	c.keepLast(p)
	return n, nil
}

func (c *headTail) keepLast(p []byte) {
	size := c.limit / 2
	if room := size - len(c.tail); room > 0 {
		take := min(room, len(p))
		c.tail = append(c.tail, p[:take]...)
		p = p[take:]
	}
	if len(p) > size {
		p = p[len(p)-size:]
	}
	for len(p) > 0 {
		n := copy(c.tail[c.next:], p)
		c.next = (c.next + n) % size
		p = p[n:]
	}
}

// String answers the output; where bytes are missing a line says how many. The
// cuts lie between characters.
func (c *headTail) String() string {
	tail := append(c.tail[c.next:len(c.tail):len(c.tail)], c.tail[:c.next]...)
	if int64(len(c.head)+len(tail)) == c.total {
		return string(c.head) + string(tail)
	}
	head := wholeText(c.head)
	tail = textFrom(tail)
	missing := c.total - int64(len(head)+len(tail))
	return fmt.Sprintf("%s\n[... %d bytes cut ...]\n%s", head, missing, tail)
}

// wholeText drops a character that the end of b cuts in two. Bytes that are no
// text stay.
func wholeText(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		start := b[len(b)-i]
		if utf8.RuneStart(start) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// textFrom drops the rest of a character that the start of b cuts in two.
func textFrom(b []byte) []byte {
	rest := 0
	for rest < len(b) && !utf8.RuneStart(b[rest]) {
		rest++
	}
	if rest >= utf8.UTFMax {
		return b // no text
	}
	return b[rest:]
}
