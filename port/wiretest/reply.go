package wiretest

import (
	"encoding/json"
	"time"
)

// Reply is what the server answers to one model call. The zero value of a field
// is what a healthy provider does.
type Reply struct {
	Blocks []Block
	Stop   string // the stop or finish word, in place of the one that follows from Blocks
	Usage  Usage
	Refuse string // the model declines, in these words; Blocks are what it said before

	Status int               // with Error: the HTTP status of the failure
	Error  string            // the provider's word for a failure; alone: inside a stream, or in a body of status 200
	Say    string            // the failure's message
	Header map[string]string // of the response

	Raw   string        // the whole body as it is, with Status (or 200)
	Type  string        // content type of Raw; empty: application/json
	Delay time.Duration // before the first byte
	Pace  time.Duration // before each event of a stream
	Chunk int           // bytes of each delta, 7 when it is 0
	Cut   int           // the connection breaks behind that many events of a stream, or bytes of a body
	Quiet bool          // the stream ends properly, as HTTP sees it, but without its last events
	Never bool          // the stream goes on for ever with events that say nothing

	// Mangle changes each event of a stream before it is written: its name and
	// data. It may answer nothing at all.
	Mangle func(name, data string) (string, string)
}

// Block is one piece of an answer. Exactly one of Text, Thinking, Name and Raw
// says what it is.
type Block struct {
	Text      string
	Thinking  string
	Signature string // of Thinking
	Name      string // of the tool that is called
	ID        string // of the call; "" leaves it out
	Input     string // of the call, JSON or the beginning of it
	Raw       json.RawMessage
}

// Say answers a block of text.
func Say(text string) Block { return Block{Text: text} }

// Think answers a block of thinking with its signature.
func Think(thinking, signature string) Block {
	return Block{Thinking: thinking, Signature: signature}
}

// Use answers a tool call.
func Use(id, name, input string) Block { return Block{ID: id, Name: name, Input: input} }

// Usage is the tokens that an answer reports, in disjoint counters. Where all
// are 0 the answer reports 10 in and 5 out.
type Usage struct {
	Input, Output, Thinking, CacheRead, CacheWrite int64
}

func (u Usage) orSome() Usage {
	if u == (Usage{}) {
		return Usage{Input: 10, Output: 5}
	}
	return u
}

// failed says whether r is a failure that comes with a status of its own.
func (r *Reply) failed() bool { return r.Error != "" && r.Status != 0 }

// calls says whether r calls a tool.
func (r *Reply) calls() bool {
	for _, b := range r.Blocks {
		if b.Name != "" {
			return true
		}
	}
	return false
}

// chunks cuts a text into deltas, on borders of characters.
func (r *Reply) chunks(text string) []string {
	size := r.Chunk
	if size == 0 {
		size = 7
	}
	var out []string
	start := 0
	for i := range text {
		if i-start >= size {
			out = append(out, text[start:i])
			start = i
		}
	}
	if start < len(text) || text == "" {
		out = append(out, text[start:])
	}
	return out
}
