package openai

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port/internal/field"
	"github.com/knl-run/knl/port/internal/wire"
)

// chatPiece is a chunk of a stream, or a whole answer: the one has deltas, the
// other messages of the same form.
type chatPiece struct {
	Choices []chatChoice    `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type chatChoice struct {
	Index   int             `json:"index"`
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
	Reasoning        string            `json:"reasoning"`
	ReasoningContent string            `json:"reasoning_content"`
	ReasoningDetails []json.RawMessage `json:"reasoning_details"`
	ToolCalls        []callPiece       `json:"tool_calls"`
}

// text answers the text of the content.
func (s *chatSaid) text() string {
	var text string
	if json.Unmarshal(s.Content, &text) == nil {
		return text
	}
	var parts []struct{ Text string }
	_ = json.Unmarshal(s.Content, &parts)
	for _, p := range parts {
		text += p.Text
	}
	return text
}

// chatAnswer is an answer that grows.
type chatAnswer struct {
	asked   *asked
	text    strings.Builder
	refusal strings.Builder
	thought thoughts
	calls   calls
	finish  string
	stopped bool // by a stop text
	chosen  bool // a choice came
	usage   *usage
}

// readChat reads an answer of Chat Completions.
func readChat(a *asked, res *http.Response) (*kernel.Answer, error) {
	c := &chatAnswer{asked: a}
	if !isStream(res) {
		return c.whole(res)
	}
	err := events(res, c.event)
	if err != nil {
		return nil, err
	}
	if c.finish == "" {
		return nil, wire.Cut(nil)
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
	return c.answer(), nil
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
	if err := json.Unmarshal(data, &p); err != nil {
		return wire.Unreadable("the answer is not what Chat Completions writes", string(data))
	}
	if isSet(p.Error) {
		return inside(p.Error)
	}
	if p.Usage != nil {
		c.usage = p.Usage
	}
	for _, choice := range p.Choices {
		if choice.Index != 0 {
			continue
		}
		if isSet(choice.Error) {
			return inside(choice.Error)
		}
		c.take(&choice)
	}
	return nil
}

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && field.KindOf(raw) != 'n' }

func (c *chatAnswer) take(choice *chatChoice) {
	c.chosen = true
	for _, said := range []*chatSaid{&choice.Delta, &choice.Message} {
		c.asked.delta("thinking", c.thought.take(said))
		text := said.text()
		c.text.WriteString(text)
		c.asked.delta("text", text)
		c.refusal.WriteString(said.Refusal)
		for _, piece := range said.ToolCalls {
			c.calls.take(piece)
		}
	}
	if choice.Finish != "" {
		c.finish = choice.Finish
		c.stopped = field.KindOf(choice.Stopped) == '"'
	}
}

func (c *chatAnswer) answer() *kernel.Answer {
	blocks := c.thought.blocks(c.asked)
	if c.text.Len() > 0 {
		blocks = append(blocks, textBlock(c.text.String()))
	}
	for _, call := range c.calls.list {
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

// stop answers the kernel's word for why the model stopped. What it did goes
// before what it says: calls under "stop" are calls, none under "tool_calls" are
// none, and a completion as long as it might be was cut.
func (c *chatAnswer) stop(output int64) string {
	called := len(c.calls.list) > 0
	switch c.finish {
	case "length":
		return "max_tokens"
	case "content_filter":
		return "refusal"
	case "stop", "tool_calls", "function_call", "":
	default:
		return c.finish
	}
	switch {
	case c.asked.limit > 0 && output >= c.asked.limit && c.usage != nil:
		return "max_tokens"
	case called:
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
