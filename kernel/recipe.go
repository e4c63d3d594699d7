package kernel

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
)

// sentRequest is what a handle remembers of the request it recorded last.
type sentRequest struct {
	seq      int64
	restSeq  int64 // the record whose rest is written out
	rest     json.RawMessage
	messages []json.RawMessage
	sums     []sum          // of the messages
	index    map[uint64]int // hash of a message → its place; the last one wins
	depth    int            // requests from here back to the one without a base
}

// chainMax is how many requests are written against one another at least, before
// one is written against none: to make a request again all of them are read. Where
// a request has more messages than that the chain may be as long as they are many,
// so that writing one out costs each beat no more than a message does.
const chainMax = 64

var hashSeed = maphash.MakeSeed()

// find answers where m stands in the request, or -1.
func (p *sentRequest) find(m json.RawMessage) int {
	if len(p.messages) <= fewRows {
		return slices.IndexFunc(p.messages, func(old json.RawMessage) bool { return sameBytes(old, m) })
	}
	if p.index == nil {
		p.index = make(map[uint64]int, len(p.messages))
		for i, old := range p.messages {
			p.index[maphash.Bytes(hashSeed, old)] = i
		}
	}
	if i, ok := p.index[maphash.Bytes(hashSeed, m)]; ok && bytes.Equal(p.messages[i], m) {
		return i
	}
	return -1
}

// same says whether message i of the base is m.
func (p *sentRequest) same(i int, m json.RawMessage) bool {
	return i < len(p.messages) && sameBytes(p.messages[i], m)
}

// sameBytes is bytes.Equal that knows at once that a slice is itself.
func sameBytes(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || bytes.Equal(a, b))
}

// recipe answers the llm_request event that stores r, and what to remember of
// it once it is recorded; an error says why r is no request. s.mu is held.
func (s *Session) recipe(r *Request, beat string, seq int64) (*Event, *sentRequest, error) {
	members := r.fields()
	rest := json.RawMessage(appendObject(nil, members))
	next, base := &sentRequest{seq: seq, restSeq: seq, rest: rest, messages: r.Messages}, s.last
	holder := newObject(len(rest)).raw("fields", rest)
	if base != nil && bytes.Equal(base.rest, rest) {
		next.restSeq = base.restSeq
		holder = newObject(16).whole("seq", base.restSeq)
	} else if err := r.check(rest); err != nil {
		return nil, nil, err
	}
	if base != nil {
		if next.depth = base.depth + 1; next.depth >= max(chainMax, len(r.Messages)) {
			base, next.depth = nil, 0
		}
	}
	messages, err := s.messageRecipe(next, base)
	if err != nil {
		return nil, nil, err
	}
	hash := r.hash(members, next.sums)
	o := newObject(len(messages) + len(holder.b) + 160)
	if base != nil {
		o.whole("base", base.seq)
	}
	o.text("hash", hex.EncodeToString(hash[:])).raw("messages", messages).raw("rest", holder.json()).whole("rule", foldRule)
	if r.Window != nil {
		o.raw("window", r.Window)
	}
	return madeEvent(LLMRequest, beat, o.json()), next, nil
}

// messageRecipe writes the messages of next as kept ranges of the base, as
// events, or out, and puts down their sums.
func (s *Session) messageRecipe(next, base *sentRequest) (json.RawMessage, error) {
	w := recipeWriter{b: []byte{'['}}
	next.sums = make([]sum, len(next.messages))
	from := int64(1)
	if base != nil {
		from = base.seq + 1
	}
	known := recordedMessages(s.tail.since(from))
	for i, m := range next.messages {
		at := base.place(&w, m)
		if at >= 0 {
			next.sums[i] = base.sums[at]
			w.keep(at)
			continue
		}
		next.sums[i] = sha256.Sum256(m)
		if seqs := known.find(m); seqs != nil {
			w.events(seqs)
		} else if err := checkMessage(m); err != nil {
			return nil, fmt.Errorf("request.messages[%d]: %w", i+1, err)
		} else {
			w.message(m)
		}
	}
	w.flush()
	return append(w.b, ']'), nil
}

// place answers where m stands in the base, most likely behind the message
// that was kept last, or -1.
func (p *sentRequest) place(w *recipeWriter, m json.RawMessage) int {
	switch {
	case p == nil:
		return -1
	case (w.count > 0 || w.n == 0) && p.same(w.next, m):
		return w.next
	}
	return p.find(m)
}

func checkMessage(m json.RawMessage) error {
	if len(m) == 0 || m[0] != '{' {
		return fmt.Errorf("got %.20q, want an object", m)
	}
	return strict(m, deepest)
}

// recipeWriter joins neighbouring messages of the base into ranges.
type recipeWriter struct {
	b     []byte
	n     int // operations written or pending
	start int // the pending range
	count int
	next  int // start+count
}

func (w *recipeWriter) keep(i int) {
	if w.count > 0 && i == w.next {
		w.count++
		w.next++
		return
	}
	w.flush()
	w.start, w.count, w.next = i, 1, i+1
	w.n++
}

func (w *recipeWriter) flush() {
	if w.count == 0 {
		return
	}
	w.comma()
	w.b = fmt.Appendf(w.b, `{"keep":[%d,%d]}`, w.start, w.count)
	w.count = 0
}

func (w *recipeWriter) events(seqs []int64) {
	w.flush()
	w.comma()
	w.n++
	w.b = append(w.b, `{"events":[`...)
	for i, seq := range seqs {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.b = strconv.AppendInt(w.b, seq, 10)
	}
	w.b = append(w.b, `]}`...)
}

func (w *recipeWriter) message(m json.RawMessage) {
	w.flush()
	w.comma()
	w.n++
	w.b = append(append(append(w.b, `{"message":`...), m...), '}')
}

func (w *recipeWriter) comma() {
	if len(w.b) > 1 {
		w.b = append(w.b, ',')
	}
}

// recorded is a message that rule 1 makes of events.
type recorded struct {
	seqs    []int64
	message json.RawMessage
}

// recordedList finds recorded messages by their bytes.
type recordedList struct {
	rows []recorded
	at   map[uint64]int
}

// recordedMessages answers what rule 1 makes of events: each on its own, and
// the results of one beat together.
func recordedMessages(events []*Event) recordedList {
	var out []recorded
	results, beats := map[string][]*Event{}, []string{}
	for _, ev := range events {
		switch ev.Kind {
		case MsgUser, LLMResponse, ToolResult:
			if m := ev.fold().message; m != nil {
				out = append(out, recorded{[]int64{ev.Seq}, m})
			}
			if ev.Kind == ToolResult {
				if results[ev.Beat] == nil {
					beats = append(beats, ev.Beat)
				}
				results[ev.Beat] = append(results[ev.Beat], ev)
			}
		}
	}
	for _, beat := range beats {
		if evs := results[beat]; len(evs) > 1 {
			seqs := make([]int64, len(evs))
			for i, ev := range evs {
				seqs[i] = ev.Seq
			}
			out = append(out, recorded{seqs, ruleMessage(evs)})
		}
	}
	return recordedList{rows: out}
}

const fewRows = 64 // messages that are sooner compared than indexed

func (l *recordedList) find(m json.RawMessage) []int64 {
	if len(l.rows) > fewRows {
		return l.lookUp(m)
	}
	for _, r := range l.rows {
		if sameBytes(r.message, m) {
			return r.seqs
		}
	}
	return nil
}

func (l *recordedList) lookUp(m json.RawMessage) []int64 {
	if l.at == nil {
		l.at = make(map[uint64]int, len(l.rows))
		for i, r := range l.rows {
			l.at[maphash.Bytes(hashSeed, r.message)] = i
		}
	}
	if i, ok := l.at[maphash.Bytes(hashSeed, m)]; ok && bytes.Equal(l.rows[i].message, m) {
		return l.rows[i].seqs
	}
	return nil
}
