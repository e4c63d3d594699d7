package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port/internal/field"
	"github.com/knl-run/knl/port/internal/wire"
)

// reader makes an Answer of what the provider writes.
type reader struct {
	ctx     context.Context // of the call
	request *request
	model   string
	on      func(kernel.Delta)
}

// message is a whole answer, and the part of one that a stream begins with.
type message struct {
	Type        string            `json:"type"`
	Content     []json.RawMessage `json:"content"`
	StopReason  string            `json:"stop_reason"`
	StopDetails stopDetails       `json:"stop_details"`
	Usage       usage             `json:"usage"`
}

type stopDetails struct {
	Category    string `json:"category"`
	Explanation string `json:"explanation"`
}

// whole reads an answer that came in one piece.
func (r *reader) whole(res *http.Response) (*kernel.Answer, error) {
	body, err := io.ReadAll(res.Body)
	switch {
	case errors.Is(err, wire.ErrTooLong):
		return nil, err
	case err != nil:
		return nil, r.cut(err)
	}
	var m message
	switch {
	case !field.Lenient(body, &m) || m.Type == "":
		return nil, wire.Unreadable("the server answered what is no message of the Messages API", string(body))
	case m.Type == "error":
		return nil, inside(errorIn(body))
	}
	a, err := r.answer(&m)
	if err == nil {
		r.tell(m.Content)
	}
	return a, err
}

// cut says that an answer stopped in the middle, unless the call's own end is
// why.
func (r *reader) cut(err error) error {
	if err != nil && r.ctx.Err() != nil {
		return err
	}
	return wire.Cut(err)
}

// tell shows an answer that came whole to those who listen for pieces.
func (r *reader) tell(content []json.RawMessage) {
	for _, raw := range content {
		var b struct{ Type, Text, Thinking string }
		_ = json.Unmarshal(raw, &b)
		for kind, text := range map[string]string{"text": b.Text, "thinking": b.Thinking} {
			if b.Type == kind && text != "" {
				r.on(kernel.Delta{Kind: kind, Text: text})
			}
		}
	}
}

// answer turns a message into the kernel's words.
func (r *reader) answer(m *message) (*kernel.Answer, error) {
	blocks, calls := make([]json.RawMessage, len(m.Content)), false
	for i, raw := range m.Content {
		b, err := r.block(raw)
		if err != nil {
			return nil, err
		}
		blocks[i] = b.raw
		calls = calls || b.call
	}
	a := &kernel.Answer{Content: field.Array(blocks), Usage: m.Usage.counters()}
	a.StopReason = r.stop(m.StopReason, a.Usage.Output, calls)
	if m.StopReason == "refusal" {
		a.Refused, a.RefusalKind, a.RefusalDetail = true, "model", m.StopDetails.Explanation
		if m.StopDetails.Category != "" {
			a.RefusalKind = "content_filter"
			if a.RefusalDetail == "" {
				a.RefusalDetail = m.StopDetails.Category
			}
		}
	}
	return a, nil
}

// stop answers the kernel's word for why the model stopped. An answer that
// fills max_tokens was cut, whatever the server says of it. One that filled the
// context window was cut as well: it is kept, as it was paid for, and the next
// request will not fit. A word that nobody knows stays as it is, and the kernel
// makes an error of it.
func (r *reader) stop(word string, output int64, calls bool) string {
	switch word {
	case "model_context_window_exceeded":
		return "max_tokens"
	case "end_turn", "tool_use", "":
		if r.request.limit > 0 && output >= r.request.limit {
			return "max_tokens"
		}
	}
	switch {
	case word == "end_turn" && calls:
		return "tool_use"
	case word == "tool_use" && !calls:
		return "end_turn"
	}
	return word
}

// block is a content block as the log keeps it.
type block struct {
	raw  json.RawMessage
	call bool
}

// block answers a block in the neutral form: text and calls as every provider
// understands them, everything else as it came, with a bag that says whose it
// is.
func (r *reader) block(raw json.RawMessage) (block, error) {
	var b struct {
		Type      string            `json:"type"`
		Text      *string           `json:"text"`
		Citations []json.RawMessage `json:"citations"`
		ID        json.RawMessage   `json:"id"`
		Name      string            `json:"name"`
		Input     json.RawMessage   `json:"input"`
	}
	if !field.Lenient(raw, &b) || b.Type == "" {
		return block{}, wire.Unreadable("the server answered a block that cannot be read", string(raw))
	}
	switch {
	case b.Type == "text" && b.Text != nil && len(b.Citations) == 0:
		return block{raw: field.Map{"text": field.Quoted(*b.Text), "type": field.Quoted("text")}.JSON()}, nil
	case b.Type == "tool_use":
		f := field.Map{"input": arguments(b.Input), "type": field.Quoted("tool_use")}
		if id := field.Plain(b.ID); id != "" {
			f["id"] = field.Quoted(id)
		}
		if b.Name != "" {
			f["name"] = field.Quoted(r.request.Name(b.Name))
		}
		return block{raw: f.JSON(), call: true}, nil
	}
	return block{raw: r.bagged(b.Type, raw)}, nil
}

// bagged puts the bag into a block and leaves every other byte. A block that the
// log cannot hold as it is stands in the bag as its text.
func (r *reader) bagged(kind string, raw json.RawMessage) json.RawMessage {
	bag := field.Map{"model": field.Quoted(r.model), "port": field.Quoted(Name)}
	own := field.Map{}
	if text := strings.TrimSpace(string(raw)); !field.Sound([]byte(text)) || json.Unmarshal(raw, &own) != nil || own["provider"] != nil {
		bag["raw"] = field.Quoted(text)
		return field.Map{"provider": bag.JSON(), "type": field.Quoted(kind)}.JSON()
	}
	out := append([]byte(`{"provider":`), bag.JSON()...)
	return append(append(out, ','), strings.TrimSpace(string(raw))[1:]...)
}

// arguments answers the input of a call as the log keeps it: nothing is an
// empty object, and what is no object that a log can hold is its text, so that
// the call alone is closed as malformed and not the whole answer lost.
func arguments(raw json.RawMessage) json.RawMessage {
	text := strings.TrimSpace(string(raw))
	switch {
	case text == "" || text == "null":
		return json.RawMessage("{}")
	case field.KindOf(raw) == '"' || field.Sound([]byte(text)):
		return json.RawMessage(text)
	}
	return field.Quoted(text)
}

// usage is what the provider counted. A stream reports it twice, and what its
// end does not repeat, or says null of, stays. Nothing in it is a reason to lose
// an answer.
type usage struct {
	Input      wire.Counter `json:"input_tokens"`
	Output     wire.Counter `json:"output_tokens"`
	CacheRead  wire.Counter `json:"cache_read_input_tokens"`
	CacheWrite wire.Counter `json:"cache_creation_input_tokens"`
	Details    struct {
		Thinking wire.Counter `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (u *usage) UnmarshalJSON(raw []byte) error {
	type plain usage
	_ = json.Unmarshal(raw, (*plain)(u))
	return nil
}

// over lays what the end of a stream counted over what its beginning did. A proxy
// says 0 at the end of what it counted at the beginning.
func (u *usage) over(raw json.RawMessage) {
	was := *u
	_ = u.UnmarshalJSON(raw)
	for _, c := range []struct {
		is  *wire.Counter
		was wire.Counter
	}{{&u.Input, was.Input}, {&u.Output, was.Output}, {&u.CacheRead, was.CacheRead}, {&u.CacheWrite, was.CacheWrite}} {
		if *c.is == 0 {
			*c.is = c.was
		}
	}
}

// counters answers the kernel's disjoint counters, which the provider's are
// already: its input is what no cache had to do with. Thinking is a part of the
// output.
func (u usage) counters() kernel.Usage {
	return kernel.Usage{
		Input: int64(u.Input), Output: int64(u.Output), CacheRead: int64(u.CacheRead), CacheWrite: int64(u.CacheWrite),
		Thinking: int64(min(u.Details.Thinking, u.Output)),
	}
}
