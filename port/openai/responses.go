package openai

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port/internal/field"
	"github.com/knl-run/knl/port/internal/wire"
)

// responsesEvent is an event of a stream of the Responses API. What it ends
// with holds the whole answer, so the others are for display, and for a server
// whose last one is empty.
type responsesEvent struct {
	Type     string          `json:"type"`
	Delta    json.RawMessage `json:"delta"`
	Item     json.RawMessage `json:"item"`
	Response *response       `json:"response"`
	Error    json.RawMessage `json:"error"`
}

// response is a whole answer.
type response struct {
	Status     string            `json:"status"`
	Output     []json.RawMessage `json:"output"`
	Usage      json.RawMessage   `json:"usage"`
	Error      json.RawMessage   `json:"error"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
}

// outputItem is an item of an answer, with the keys of every type.
type outputItem struct {
	Type      string          `json:"type"`
	CallID    json.RawMessage `json:"call_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Phase     string          `json:"phase"`
	Summary   []outputPart    `json:"summary"`
	Content   []outputPart    `json:"content"`
}

type outputPart struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
}

// responsesStream is a stream that is read.
type responsesStream struct {
	asked *asked
	items []json.RawMessage // those that are done
	last  *response

	text, thought field.Halves // of the pieces that are shown
}

// readResponses reads an answer of the Responses API.
func readResponses(a *asked, res *http.Response) (*kernel.Answer, error) {
	if wire.IsStream(res) {
		s := &responsesStream{asked: a}
		var end *ending
		switch err := events(res, s.event); {
		case errors.As(err, &end):
			return nil, wire.Cut(end.err)
		case err != nil:
			return nil, err
		}
		if len(s.last.Output) == 0 {
			s.last.Output = s.items
		}
		return s.last.answer(a)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	var whole response
	if !field.Lenient(body, &whole) || whole.Status == "" && !isError(whole.Error) {
		return nil, wire.Unreadable("the answer is not what the Responses API writes", string(body))
	}
	return whole.answer(a)
}

// event takes one event and says whether it was the last.
func (s *responsesStream) event(data []byte) (bool, error) {
	var e responsesEvent
	if string(data) == "[DONE]" {
		return false, nil
	}
	if !field.Lenient(data, &e) {
		return false, wire.Unreadable("the answer is not what the Responses API writes", string(data))
	}
	switch e.Type {
	case "response.output_text.delta":
		s.asked.delta("text", s.text.Text(e.Delta))
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		s.asked.delta("thinking", s.thought.Text(e.Delta))
	case "response.output_item.done":
		s.items = append(s.items, e.Item)
	case "response.completed", "response.incomplete", "response.failed":
		if s.last = e.Response; s.last == nil {
			return false, wire.Unreadable("the last event has no response", string(data))
		}
		return true, nil
	case "error", "":
		if !isError(e.Error) {
			e.Error = data
		}
		return false, inside(e.Error)
	}
	return false, nil
}

// answer makes blocks of the items, in their order: reasoning belongs to the
// item behind it.
func (r *response) answer(a *asked) (*kernel.Answer, error) {
	switch {
	case isError(r.Error):
		return nil, inside(r.Error)
	case r.Status == "failed":
		return nil, &kernel.CallError{Kind: kernel.Server, Message: "the provider says that the response failed, and not why"}
	case r.Status != "completed" && r.Status != "incomplete":
		return nil, wire.Unreadable("the answer has the status "+r.Status+", want completed or incomplete", "")
	}
	out := &kernel.Answer{StopReason: "end_turn"}
	var blocks []json.RawMessage
	for _, raw := range r.Output {
		var item outputItem
		_ = field.Lenient(raw, &item) // of no type: kept like an item that nobody knows
		switch item.Type {
		case "message":
			blocks = append(blocks, item.said(a, out)...)
		case "function_call":
			blocks, out.StopReason = append(blocks, item.call(a)), "tool_use"
		default:
			blocks = append(blocks, item.own(a, raw))
		}
	}
	out.Content = field.Array(blocks)
	out.Usage = a.usageOf(usageIn(r.Usage), out.Content)
	r.stop(a, out)
	return out, nil
}

// stop sets why the model stopped, where it was not for calls or for the end.
func (r *response) stop(a *asked, out *kernel.Answer) {
	cut := a.limit > 0 && a.counted && out.Usage.Output >= a.limit
	switch reason := r.Incomplete.Reason; {
	case out.Refused:
		out.StopReason = "refusal"
	case reason == "content_filter":
		out.Refused, out.RefusalKind, out.StopReason = true, "content_filter", "refusal"
	case reason == "max_output_tokens", reason == "" && cut:
		out.StopReason = "max_tokens"
	case r.Status == "incomplete":
		out.StopReason = reason
		if reason == "" {
			out.StopReason = "incomplete"
		}
	}
}

// said answers the texts of a message; a refusal in it refuses the answer.
func (item *outputItem) said(a *asked, out *kernel.Answer) []json.RawMessage {
	var blocks []json.RawMessage
	for _, part := range item.Content {
		switch {
		case part.Refusal != "":
			out.Refused, out.RefusalKind, out.RefusalDetail = true, "model", part.Refusal
		case part.Text == "":
		case item.Phase != "":
			bag := a.bag(field.Map{"phase": field.Quoted(item.Phase)})
			blocks = append(blocks, field.Map{"provider": bag, "text": field.Quoted(part.Text), "type": field.Quoted("text")}.JSON())
		default:
			blocks = append(blocks, textBlock(part.Text))
		}
	}
	return blocks
}

func (item *outputItem) call(a *asked) json.RawMessage {
	f := function{Name: item.Name, Arguments: item.Arguments}
	one := call{id: field.Plain(item.CallID), name: item.Name}
	one.arguments.WriteString(f.joined(&one.cut))
	return one.block(a)
}

// own answers an item that goes back as it came: reasoning, and what the
// provider's own tools did.
func (item *outputItem) own(a *asked, raw json.RawMessage) json.RawMessage {
	block := field.Map{
		"provider": a.bag(field.Map{"field": field.Quoted("item"), "raw": field.Quoted(string(raw))}),
		"type":     field.Quoted(item.Type),
	}
	switch item.Type {
	case "":
		block["type"] = field.Quoted("item")
	case "reasoning":
		block["type"], block["thinking"] = field.Quoted("thinking"), field.Quoted(item.thought())
	}
	return block.JSON()
}

// thought answers what of the reasoning can be read.
func (item *outputItem) thought() string {
	var texts []string
	for _, part := range append(item.Summary, item.Content...) {
		texts = append(texts, part.Text)
	}
	return strings.Join(texts, "\n\n")
}
