package anthropic

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
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
}

// growing is a message while it streams.
type growing struct {
	message
	reader *reader
	blocks []*growingBlock
	begun  bool
	said   bool // message_delta said why the model stopped
	ended  bool
}

// stream reads an answer that comes in pieces. One is whole that ended with its
// message_stop, or that said why the model stopped and then was closed: what
// follows that says nothing. A block that has no end of its own then has it there.
func (r *reader) stream(res *http.Response) (*kernel.Answer, error) {
	res.Header.Set("content-type", "text/event-stream") // the client chooses its decoder by it
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
	case !g.ended && (!g.said || err != nil && r.ctx.Err() != nil):
		return nil, r.cut(err)
	}
	g.Content = nil
	for _, b := range g.blocks {
		if !b.closed && !g.said {
			return nil, wire.Cut(fmt.Errorf("block %d has no end", b.index))
		}
		g.Content = append(g.Content, b.json())
	}
	return r.answer(&g.message)
}

// take reads one event. An event of a kind that nobody knows says nothing.
func (g *growing) take(e ssestream.Event) error {
	data := strings.TrimSpace(string(e.Data))
	if data == "" || data == "[DONE]" { // the mark of another wire, which proxies add
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
		return inside(errorIn([]byte(data)))
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

// open begins a block. Proxies number them from 1, leave out those that they do not
// show, or give each the same number: no two are open under one.
func (g *growing) open(ev *event) error {
	if before := g.find(ev.Index); !g.begun || ev.Index < 0 || before != nil && !before.closed {
		return broken(ev.Type, fmt.Sprintf("for block %d, want one behind message_start and no open one of that number", ev.Index))
	}
	b := &growingBlock{index: ev.Index, texts: map[string]*strings.Builder{}, halves: map[string]*field.Halves{}}
	if json.Unmarshal(ev.Block, &b.start) != nil || b.start == nil {
		return broken(ev.Type, "without a block")
	}
	b.raw = ev.Block
	g.blocks = append(g.blocks, b)
	return nil
}

// find answers the last block with a number.
func (g *growing) find(index int) *growingBlock {
	for _, b := range slices.Backward(g.blocks) {
		if b.index == index {
			return b
		}
	}
	return nil
}

// at answers the open block that an event is about.
func (g *growing) at(ev *event) (*growingBlock, error) {
	b := g.find(ev.Index)
	if b == nil || b.closed {
		return nil, broken(ev.Type, fmt.Sprintf("for block %d, which is not open", ev.Index))
	}
	return b, nil
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
	pieces := b.grow(delta)
	for _, kind := range []string{"text", "thinking"} {
		if piece := pieces[kind]; piece != "" {
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
	g.said = g.said || g.StopReason != ""
	g.Usage.over(ev.Usage)
	return nil
}

func broken(kind, how string) error {
	return wire.Unreadable(fmt.Sprintf("the stream holds a %s %s", kind, how), "")
}

// growingBlock is a block and what its deltas add to it.
type growingBlock struct {
	index     int
	raw       json.RawMessage // as it began
	start     field.Map
	texts     map[string]*strings.Builder // member → what was added
	halves    map[string]*field.Halves    // member → the half of a character that its last piece ended with
	input     strings.Builder
	citations []json.RawMessage
	changed   bool
	closed    bool
}

// grow adds a delta. Its texts go behind the block's own of the same name, so
// that a kind of delta that came later than this code is read as well. The
// estimate of a thought's tokens is about the stream and no part of the block.
// It answers the pieces of text by their names.
func (b *growingBlock) grow(delta field.Map) map[string]string {
	b.changed = true
	pieces := map[string]string{}
	for key, value := range delta {
		switch {
		case key == "type", key == "estimated_tokens":
		case key == "partial_json":
			b.input.WriteString(b.piece(key, value))
		case key == "citation":
			b.citations = append(b.citations, value)
		case field.KindOf(value) == '"':
			pieces[key] = b.piece(key, value)
			b.add(key, pieces[key])
		default:
			b.start[key] = value
		}
	}
	return pieces
}

// piece answers the text of a piece of a member.
func (b *growingBlock) piece(key string, value json.RawMessage) string {
	if b.halves[key] == nil {
		b.halves[key] = &field.Halves{}
	}
	return b.halves[key].Text(value)
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
	for key, half := range b.halves {
		if key == "partial_json" {
			b.input.WriteString(half.Rest())
		} else {
			b.add(key, half.Rest())
		}
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
