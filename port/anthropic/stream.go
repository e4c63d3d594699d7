package anthropic

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port/internal/field"
	"github.com/knl-run/knl/port/internal/wire"
)

// event is one event of a stream.
type event struct {
	Type    string          `json:"type"`
	Index   int             `json:"index"`
	Message *message        `json:"message"`
	Block   json.RawMessage `json:"content_block"`
	Delta   json.RawMessage `json:"delta"`
	Usage   json.RawMessage `json:"usage"`
	Error   wireError       `json:"error"`
}

// growing is a message while it streams.
type growing struct {
	message
	reader *reader
	blocks []*growingBlock
	begun  bool
	ended  bool
}

// stream reads an answer that comes in pieces. Only one that ends with its
// message_stop and every block closed is an answer.
func (r *reader) stream(res *http.Response) (*kernel.Answer, error) {
	events := ssestream.NewDecoder(res)
	g := &growing{reader: r}
	for !g.ended && events.Next() {
		if err := g.take(events.Event()); err != nil {
			return nil, err
		}
	}
	switch err := events.Err(); {
	case errors.Is(err, bufio.ErrTooLong), errors.Is(err, wire.ErrTooLong):
		return nil, wire.ErrTooLong
	case !g.ended:
		return nil, r.cut(err)
	}
	g.Content = nil
	for i, b := range g.blocks {
		if !b.closed {
			return nil, wire.Cut(fmt.Errorf("block %d has no end", i))
		}
		g.Content = append(g.Content, b.json())
	}
	return r.answer(&g.message)
}

// take reads one event. An event of a kind that nobody knows says nothing.
func (g *growing) take(e ssestream.Event) error {
	data := strings.TrimSpace(string(e.Data))
	if data == "" {
		return nil
	}
	var ev event
	if !field.Lenient([]byte(data), &ev) {
		return wire.Unreadable("the stream holds an event that is no JSON", data)
	}
	if ev.Type == "" {
		ev.Type = e.Type
	}
	switch ev.Type {
	case "error":
		return inside(ev.Error)
	case "message_start":
		return g.start(&ev)
	case "content_block_start":
		return g.open(&ev)
	case "content_block_delta":
		return g.grow(&ev)
	case "content_block_stop":
		return g.close(&ev)
	case "message_delta":
		return g.end(&ev)
	case "message_stop":
		g.ended = g.begun
	}
	return nil
}

func (g *growing) start(ev *event) error {
	if g.begun || ev.Message == nil {
		return broken("message_start", "twice, or without a message")
	}
	g.begun, g.message = true, *ev.Message
	return nil
}

func (g *growing) open(ev *event) error {
	if !g.begun || ev.Index != len(g.blocks) {
		return broken(ev.Type, fmt.Sprintf("for block %d, want block %d", ev.Index, len(g.blocks)))
	}
	b := &growingBlock{texts: map[string]*strings.Builder{}}
	if json.Unmarshal(ev.Block, &b.start) != nil || b.start == nil {
		return broken(ev.Type, "without a block")
	}
	b.raw = ev.Block
	g.blocks = append(g.blocks, b)
	return nil
}

// at answers the open block that an event is about.
func (g *growing) at(ev *event) (*growingBlock, error) {
	if ev.Index < 0 || ev.Index >= len(g.blocks) || g.blocks[ev.Index].closed {
		return nil, broken(ev.Type, fmt.Sprintf("for block %d, which is not open", ev.Index))
	}
	return g.blocks[ev.Index], nil
}

func (g *growing) grow(ev *event) error {
	b, err := g.at(ev)
	if err != nil {
		return err
	}
	delta := field.Map{}
	if json.Unmarshal(ev.Delta, &delta) != nil {
		return broken(ev.Type, "without a delta")
	}
	b.grow(delta)
	for _, kind := range []string{"text", "thinking"} {
		if piece := textOf(delta[kind]); piece != "" {
			g.reader.on(kernel.Delta{Kind: kind, Text: piece})
		}
	}
	return nil
}

func (g *growing) close(ev *event) error {
	b, err := g.at(ev)
	if err == nil {
		b.closed = true
	}
	return err
}

// end reads what a message_delta says of the whole message.
func (g *growing) end(ev *event) error {
	if !g.begun {
		return broken(ev.Type, "before message_start")
	}
	if ev.Delta != nil && !field.Lenient(ev.Delta, &g.message) {
		return broken(ev.Type, "that cannot be read")
	}
	return g.Usage.UnmarshalJSON(ev.Usage)
}

func broken(kind, how string) error {
	return wire.Unreadable(fmt.Sprintf("the stream holds a %s %s", kind, how), "")
}

// growingBlock is a block and what its deltas add to it.
type growingBlock struct {
	raw       json.RawMessage // as it began
	start     field.Map
	texts     map[string]*strings.Builder // member → what was added
	input     strings.Builder
	citations []json.RawMessage
	changed   bool
	closed    bool
}

// grow adds a delta. Its texts go behind the block's own of the same name, so
// that a kind of delta that came later than this code is read as well.
func (b *growingBlock) grow(delta field.Map) {
	b.changed = true
	for key, value := range delta {
		switch {
		case key == "type":
		case key == "partial_json":
			b.input.WriteString(textOf(value))
		case key == "citation":
			b.citations = append(b.citations, value)
		case field.KindOf(value) == '"':
			b.add(key, textOf(value))
		default:
			b.start[key] = value
		}
	}
}

func (b *growingBlock) add(key, piece string) {
	if b.texts[key] == nil {
		b.texts[key] = &strings.Builder{}
		b.texts[key].WriteString(textOf(b.start[key]))
	}
	b.texts[key].WriteString(piece)
}

// json answers the block as a whole answer would hold it; a block without
// deltas byte for byte.
func (b *growingBlock) json() json.RawMessage {
	if !b.changed {
		return b.raw
	}
	for key, text := range b.texts {
		b.start[key] = field.Quoted(text.String())
	}
	if b.input.Len() > 0 {
		b.start["input"] = json.RawMessage(b.input.String())
		if !json.Valid(b.start["input"]) {
			b.start["input"] = field.Quoted(b.input.String())
		}
	}
	if b.citations != nil {
		b.start["citations"] = field.Array(b.citations)
	}
	return b.start.JSON()
}

// textOf answers a JSON string, or nothing for another value.
func textOf(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}
