package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port/internal/field"
	"github.com/knl-run/knl/port/internal/wire"
)

// chatPiece is a chunk of a stream, or a whole answer: the one has deltas, the
// other messages of the same form.
type chatPiece struct {
	Choices []json.RawMessage `json:"choices"`
	Usage   json.RawMessage   `json:"usage"`
	Error   json.RawMessage   `json:"error"`
}

type chatChoice struct {
	Index   json.RawMessage `json:"index"`
	Delta   chatSaid        `json:"delta"`
	Message chatSaid        `json:"message"`
	Finish  string          `json:"finish_reason"`
	Stopped json.RawMessage `json:"stop_reason"` // vllm: the stop text that was met
	Error   json.RawMessage `json:"error"`       // openrouter: beside finish_reason "error"
}

// chatSaid is what a model said, or a piece of it.
type chatSaid struct {
	Content          json.RawMessage   `json:"content"` // text, or parts that hold text
	Refusal          string            `json:"refusal"`
	Reasoning        json.RawMessage   `json:"reasoning"`
	ReasoningContent json.RawMessage   `json:"reasoning_content"`
	ReasoningDetails []json.RawMessage `json:"reasoning_details"`
	ToolCalls        []json.RawMessage `json:"tool_calls"`
	FunctionCall     json.RawMessage   `json:"function_call"` // before there were tools; some write both
}

// text answers the text of the content.
func (s *chatSaid) text(h *field.Halves) string {
	if field.KindOf(s.Content) == '"' {
		return h.Text(s.Content)
	}
	var parts []struct{ Text json.RawMessage }
	_ = json.Unmarshal(s.Content, &parts)
	text := ""
	for _, p := range parts {
		if field.KindOf(p.Text) == '"' {
			text += h.Text(p.Text)
		}
	}
	return text
}

// chatAnswer is an answer that grows.
type chatAnswer struct {
	asked   *asked
	text    grown
	refusal grown
	thought thoughts
	deltas  kinds // what the deltas of a stream had
	calls   calls
	legacy  calls // those of function_call, which has no list
	finish  string
	stopped bool // by a stop text
	chosen  bool // a choice came
	usage   *usage
}

// readChat reads an answer of Chat Completions. With the word for why it stopped
// an answer is whole: a server that closes then, or whose connection breaks
// behind the usage, has only left out to say that this was all.
func readChat(a *asked, res *http.Response) (*kernel.Answer, error) {
	c := &chatAnswer{asked: a, calls: calls{offered: a.offered}, legacy: calls{offered: a.offered}}
	if !wire.IsStream(res) {
		return c.whole(res)
	}
	err := events(res, c.event)
	var end *ending
	switch {
	case errors.As(err, &end):
		broken := end.err != nil && (c.usage == nil || res.Request.Context().Err() != nil)
		if c.finish == "" || broken {
			return nil, wire.Cut(end.err)
		}
	case err != nil:
		return nil, err
	case c.finish == "":
		return nil, wire.Cut(nil)
	}
	return c.done()
}

// done answers what there is, unless the server broke it off itself.
func (c *chatAnswer) done() (*kernel.Answer, error) {
	if c.finish == noRoom {
		return nil, &kernel.CallError{Kind: kernel.Overloaded, Message: "the provider broke the answer off: " + noRoom}
	}
	return c.answer(), nil
}

func (c *chatAnswer) whole(res *http.Response) (*kernel.Answer, error) {
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	if err := c.piece(body); err != nil {
		return nil, err
	}
	if !c.chosen {
		return nil, wire.Unreadable("the answer has no choice", string(body))
	}
	return c.done()
}

// event takes one event of a stream.
func (c *chatAnswer) event(data []byte) (bool, error) {
	if bytes.Equal(data, []byte("[DONE]")) {
		return true, nil
	}
	return false, c.piece(data)
}

func (c *chatAnswer) piece(data []byte) error {
	var p chatPiece
	switch {
	case !field.Lenient(data, &p):
		return wire.Unreadable("the answer is not what Chat Completions writes", string(data))
	case isError(p.Error):
		return inside(p.Error)
	case p.Choices == nil && heard(data).Message != "":
		return inside(data) // an error that has no member around it
	}
	if u := usageIn(p.Usage); u != nil {
		c.usage = u
	}
	for _, raw := range p.Choices {
		var choice chatChoice
		if !field.Lenient(raw, &choice) || number(choice.Index) != 0 {
			continue
		}
		if isError(choice.Error) {
			return inside(choice.Error)
		}
		c.take(&choice)
	}
	return nil
}

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && field.KindOf(raw) != 'n' }

// isError says whether the member for an error has one: some write it beside
// every answer, with nothing in it.
func isError(raw json.RawMessage) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", "false", `""`, "{}", "[]", "0":
		return false
	}
	return true
}

// number answers a number, and one that is written as text; 0 for all else.
func number(raw json.RawMessage) float64 {
	n, _ := strconv.ParseFloat(field.Plain(raw), 64)
	return n
}

// take takes a choice. The message of a stream is the answer so far, which some
// servers write beside every delta, and some once at the end.
func (c *chatAnswer) take(choice *chatChoice) {
	c.chosen = true
	if choice.Finish != "" {
		c.finish = choice.Finish
		c.stopped = field.KindOf(choice.Stopped) == '"'
	}
	manner := inPieces
	if c.finish != "" {
		manner = atTheEnd
	}
	delta := &choice.Delta
	c.hear(delta, manner)
	c.calls.take(delta.ToolCalls)
	c.legacy.take(delta.function())
	c.deltas.note(delta)
	message := c.deltas.missing(choice.Message)
	c.hear(&message, soFar)
	c.calls.whole(message.ToolCalls)
	c.legacy.whole(message.function())
}

// hear takes what is no call.
func (c *chatAnswer) hear(said *chatSaid, m manner) {
	c.asked.delta("thinking", c.thought.take(said, m))
	c.asked.delta("text", c.text.add(c.text.joined(said.text, m), m))
	c.refusal.add(said.Refusal, m)
}

// manner is how a text comes.
type manner int

const (
	inPieces manner = iota
	atTheEnd        // a piece too, beside or behind the word for why the model stopped
	soFar           // all of it that there is yet
)

// grown is a text that comes in pieces.
type grown struct {
	strings.Builder
	pieces int
	cut    field.Halves
}

// joined answers a piece as text. All of a text has no other piece that could end its
// last character.
func (g *grown) joined(text func(*field.Halves) string, m manner) string {
	if m == soFar {
		var h field.Halves
		return text(&h) + h.Rest()
	}
	return text(&g.cut)
}

// all answers the text when no more of it comes.
func (g *grown) all() string { return g.String() + g.cut.Rest() }

// add adds what is new in a text, and answers it. A last piece that is all of the
// pieces before is none: some servers end a stream with all that was in it. Behind
// one piece nothing shows that, for a model may say a thing twice, and behind one
// thing that was said again and again neither: the model goes on with it.
func (g *grown) add(text string, m manner) string {
	switch {
	case m == soFar:
		text = strings.TrimPrefix(text, g.String())
	case m == atTheEnd && g.pieces > 1 && text == g.String() && !repeats(text):
		text = ""
	}
	if text != "" {
		g.pieces++
		g.WriteString(text)
	}
	return text
}

// repeats says whether a text is one shorter text again and again.
func repeats(text string) bool {
	return text != "" && strings.Index((text + text)[1:], text) < len(text)-1
}

// kinds are kinds of things that an answer has.
type kinds struct{ text, thought, refusal, calls bool }

// note takes down what a delta has.
func (k *kinds) note(s *chatSaid) {
	k.text = k.text || s.text(new(field.Halves)) != ""
	k.thought = k.thought || field.Plain(s.Reasoning)+field.Plain(s.ReasoningContent) != "" || len(s.ReasoningDetails) > 0
	k.refusal = k.refusal || s.Refusal != ""
	k.calls = k.calls || len(s.ToolCalls) > 0 || s.function() != nil
}

// missing answers a message without what the deltas of its stream have had: they
// say it better, and once.
func (k *kinds) missing(s chatSaid) chatSaid {
	if k.text {
		s.Content = nil
	}
	if k.thought {
		s.Reasoning, s.ReasoningContent, s.ReasoningDetails = nil, nil, nil
	}
	if k.refusal {
		s.Refusal = ""
	}
	if k.calls {
		s.ToolCalls, s.FunctionCall = nil, nil
	}
	return s
}

// function answers the one call of a message that has no list, as the list would
// have it. Its pieces are of one call, which is why they have a number.
func (s *chatSaid) function() []json.RawMessage {
	if field.KindOf(s.FunctionCall) != '{' {
		return nil
	}
	return []json.RawMessage{field.Map{"function": s.FunctionCall, "index": json.RawMessage("0")}.JSON()}
}

func (c *chatAnswer) answer() *kernel.Answer {
	blocks := c.thought.blocks(c.asked)
	if text := c.text.all(); text != "" {
		blocks = append(blocks, textBlock(text))
	}
	for _, call := range c.called() {
		blocks = append(blocks, call.block(c.asked))
	}
	a := &kernel.Answer{Content: field.Array(blocks)}
	a.Usage = c.asked.usageOf(c.usage, a.Content)
	a.StopReason = c.stop(a.Usage.Output)
	switch {
	case c.refusal.Len() > 0:
		a.Refused, a.RefusalKind, a.RefusalDetail, a.StopReason = true, "model", c.refusal.String(), "refusal"
	case a.StopReason == "refusal":
		a.Refused, a.RefusalKind = true, "content_filter"
	}
	return a
}

// called answers the calls.
func (c *chatAnswer) called() []*call {
	if len(c.calls.list) > 0 {
		return c.calls.list
	}
	return c.legacy.list
}

// finishes are the words for why a model stopped, in small letters: Gemini's, behind
// gateways that hand them on, are large. Empty: the answer says it.
var finishes = map[string]string{
	"": "", "stop": "", "end_turn": "", "tool_calls": "", "tool_use": "", "function_call": "",
	"length": "max_tokens", "max_tokens": "max_tokens", "model_length": "max_tokens", // the last is Mistral's for the window
	"content_filter": "refusal", "safety": "refusal", "recitation": "refusal", // Gemini's, as the next three
	"blocklist": "refusal", "prohibited_content": "refusal", "spii": "refusal",
}

// noRoom is DeepSeek's word for an answer that it broke off for want of machines.
const noRoom = "insufficient_system_resource"

// stop answers the kernel's word for why the model stopped. What it did goes
// before what it says: calls under "stop" are calls, none under "tool_calls" are
// none, and a completion as long as it might be was cut.
func (c *chatAnswer) stop(output int64) string {
	switch word, known := finishes[strings.ToLower(c.finish)]; {
	case !known:
		return c.finish
	case word != "":
		return word
	}
	switch {
	case c.asked.limit > 0 && output >= c.asked.limit && c.usage != nil:
		return "max_tokens"
	case len(c.called()) > 0:
		return "tool_use"
	case c.stopped:
		return "stop_sequence"
	case c.finish == "":
		return ""
	}
	return "end_turn"
}

func textBlock(text string) json.RawMessage {
	return field.Map{"text": field.Quoted(text), "type": field.Quoted("text")}.JSON()
}

// bag says whose a block is; see the package comment of port.
func (a *asked) bag(more field.Map) json.RawMessage {
	bag := field.Map{"model": field.Quoted(a.model), "port": field.Quoted(a.server)}
	for key, value := range more {
		bag[key] = value
	}
	return bag.JSON()
}
