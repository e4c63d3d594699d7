package kernel

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Log is what a fold may read: the session up to now.
type Log interface {
	// Events answers every event with seq ≥ from, in order.
	Events(ctx context.Context, from int64) ([]*Event, error)
	// Beats answers the last n beats, oldest first, and with fromSeed the events
	// before the session's first beat; n ≤ 0 means all beats.
	Beats(ctx context.Context, n int, fromSeed bool) (beats []BeatRecord, seed []*Event, err error)
	// Newest answers the newest event of a kind, nil when there is none.
	Newest(ctx context.Context, kind string) (*Event, error)
}

// BeatRecord is the events that carry one beat id, in log order.
type BeatRecord struct {
	ID     string
	Events []*Event
}

// Fold makes the request of the next beat from the log.
type Fold func(ctx context.Context, log Log, d *Device) (*Request, error)

// DefaultFold folds the whole log with [FoldEvents].
func DefaultFold(ctx context.Context, log Log, d *Device) (*Request, error) {
	events, err := log.Events(ctx, 1)
	if err != nil {
		return nil, err
	}
	return FoldEvents(events, d), nil
}

// FoldEvents makes a request from events and from the system and tools of d
// (nil: neither). It is total: whatever events it is given, in whatever order
// and however cut, the messages it answers are pair-closed:
//
//	F1 every tool_use of an assistant message has exactly one tool_result, and
//	   all of them stand in the message right behind it, in the order of the calls
//	F2 every tool_result answers a tool_use of the message before it
//	F3 no call id occurs twice
//
// A result belongs to the call of its own beat; a call without one is closed
// as interrupted; a result without a call stands nowhere, nor does a tool block
// in what the user said or a result in what the model said; a user message that
// was recorded between a call and its result comes after them. A reply that was
// refused is in the log and not in the conversation: a model that reads how one
// was broken off goes on refusing, and another would finish it.
func FoldEvents(events []*Event, d *Device) *Request {
	var f folder
	f.open, f.used = make(map[place]*slot, len(events)/4), make(map[string]int, len(events)/4)
	f.turns = make([]turn, 0, len(events)/4+1)
	for _, ev := range events {
		f.add(ev)
	}
	req := &Request{Messages: f.messages()}
	if d != nil {
		req.System, req.Tools, req.HasTools = d.System, d.specs, d.Tools != nil
	}
	return req
}

// folded is what one event contributes to a conversation; it is computed once.
type folded struct {
	message json.RawMessage // of a user or an assistant event
	calls   []string        // ids of an assistant event's tool_use blocks, in order
	callID  string          // of a tool_result
	block   json.RawMessage // of a tool_result: the content block
	refused bool            // an assistant event that is no part of the conversation
	rerun   bool            // a tool_result that supersedes an interrupted one
	broken  bool            // a tool_result that only records an interruption
}

// slot is the place of one tool_result in the conversation.
type slot struct {
	id     string // as the conversation spells it
	result *Event
	twin   *slot // the next place of the same beat and call id
}

// turn is an assistant message with the places of its results.
type turn struct {
	ev    *Event // a msg_user or llm_response
	slots []slot
	names map[int]string // calls that had to be renamed: index → new id
}

// place is the beat and the id of a call.
type place struct{ beat, id string }

type folder struct {
	turns []turn
	open  map[place]*slot // the first place of a beat and a call id
	used  map[string]int  // call ids taken, and the last number behind each
}

func (f *folder) add(ev *Event) {
	switch ev.Kind {
	case MsgUser:
		if ev.fold().message != nil {
			f.turns = append(f.turns, turn{ev: ev})
		}
	case LLMResponse:
		f.addAnswer(ev)
	case ToolResult:
		f.addResult(ev)
	}
}

func (f *folder) addAnswer(ev *Event) {
	fd := ev.fold()
	if fd.message == nil || fd.refused {
		return
	}
	t := turn{ev: ev, slots: make([]slot, len(fd.calls))}
	for i := len(fd.calls) - 1; i >= 0; i-- { // an id used again by a later message has its own results
		key := place{ev.Beat, fd.calls[i]}
		if i < len(fd.calls)-1 && slices.Contains(fd.calls[i+1:], fd.calls[i]) {
			t.slots[i].twin = f.open[key]
		}
		f.open[key] = &t.slots[i]
	}
	for i, id := range fd.calls {
		name := f.unique(id)
		if t.slots[i].id = name; name != id {
			if t.names == nil {
				t.names = map[int]string{}
			}
			t.names[i] = name
		}
	}
	f.turns = append(f.turns, t)
}

// unique answers id, or id with a number behind it when it is taken.
func (f *folder) unique(id string) string {
	name := id
	for n := max(f.used[id], 1); f.used[name] > 0 || name == ""; {
		n++
		name, f.used[id] = id+"_"+strconv.Itoa(n), n
	}
	f.used[name] = max(f.used[name], 1)
	return name
}

// addResult puts a result in the first place that is free, or in that of an
// interruption that it supersedes: the call was run again, or interrupted again.
func (f *folder) addResult(ev *Event) {
	fd := ev.fold()
	first := f.open[place{ev.Beat, fd.callID}]
	for s := first; s != nil; s = s.twin {
		if s.result == nil {
			s.result = ev
			return
		}
	}
	for s := first; s != nil; s = s.twin {
		if s.result.fold().broken && (fd.rerun || fd.broken) {
			s.result = ev
			return
		}
	}
}

func (f *folder) messages() []json.RawMessage {
	out := make([]json.RawMessage, 0, 2*len(f.turns))
	for i := range f.turns {
		t := &f.turns[i]
		message := t.ev.fold().message
		if t.names != nil {
			message = renamed(t.ev, t.names)
		}
		out = append(out, message)
		if len(t.slots) > 0 {
			out = append(out, resultsMessage(t.slots))
		}
	}
	return out
}

func resultsMessage(slots []slot) json.RawMessage {
	if len(slots) == 1 && slots[0].result != nil && slots[0].id == slots[0].result.fold().callID {
		return slots[0].result.fold().message
	}
	b := []byte(`{"content":[`)
	for i := range slots {
		s := &slots[i]
		if i > 0 {
			b = append(b, ',')
		}
		switch {
		case s.result == nil:
			b = appendBlock(b, s.id, quote(interruptedText), true)
		case s.id == s.result.fold().callID:
			b = append(b, s.result.fold().block...)
		default:
			b = append(b, withField(s.result.fold().block, "tool_use_id", quote(s.id))...)
		}
	}
	return append(b, `],"role":"user"}`...)
}

// interruptedText is what a model reads about a call whose outcome is unknown.
const interruptedText = "execution was interrupted before a result was recorded; whether it took effect is unknown"

// fold answers what ev contributes, computing it at the first call.
func (ev *Event) fold() *folded {
	if fd := ev.folded.Load(); fd != nil {
		return fd
	}
	fd, data := &folded{}, ev.Data
	if !ev.sound && !jsontext.Value(data).IsValid() { // not of a log
		data = nil
	}
	switch ev.Kind {
	case MsgUser:
		content, cut := withoutTypes(fieldOf(data, "content"), "tool_use", "tool_result")
		if !cut || string(content) != "[]" {
			fd.message = messageOf("user", content)
		}
	case LLMResponse:
		content, _ := withoutTypes(fieldOf(data, "content"), "tool_result")
		fd.message, fd.refused = messageOf("assistant", content), fieldOf(data, "refusal") != nil
		_ = eachItem(content, func(_ int, block json.RawMessage) {
			if isText(fieldOf(block, "type"), "tool_use") {
				fd.calls = append(fd.calls, textOf(fieldOf(block, "id")))
			}
		})
	case ToolResult:
		fields, _ := objectFields(data)
		fd.callID = textOf(fields["call_id"])
		fd.broken = string(fields["interrupted"]) == "true"
		fd.rerun = string(fields["rerun"]) == "true"
		const head, tail = `{"content":[`, `],"role":"user"}`
		fd.message = append(appendResult(append(make([]byte, 0, len(data)+128), head...), fields, fd.callID), tail...)
		fd.block = fd.message[len(head) : len(fd.message)-len(tail) : len(fd.message)-len(tail)]
	}
	ev.folded.Store(fd)
	return fd
}

// withoutTypes answers content without the blocks of some types, and whether
// it held any.
func withoutTypes(content json.RawMessage, types ...string) (json.RawMessage, bool) {
	cut := false
	unwanted := func(block json.RawMessage) bool {
		kind := fieldOf(block, "type")
		return kind != nil && slices.ContainsFunc(types, func(t string) bool { return isText(kind, t) })
	}
	_ = eachItem(content, func(_ int, block json.RawMessage) { cut = cut || unwanted(block) })
	if !cut {
		return content, false
	}
	var kept []json.RawMessage
	_ = eachItem(content, func(_ int, block json.RawMessage) {
		if !unwanted(block) {
			kept = append(kept, block)
		}
	})
	return joinArray(kept), true
}

// messageOf answers the message with some content, or nil when there is none.
func messageOf(role string, content json.RawMessage) json.RawMessage {
	if content == nil {
		return nil
	}
	b := make([]byte, 0, len(content)+32)
	b = append(append(b, `{"content":`...), content...)
	return append(append(append(b, `,"role":"`...), role...), `"}`...)
}

// appendResult writes the tool_result block of a tool_result event. A list of
// content blocks stands as it is, another result that is not text as its JSON
// text.
func appendResult(b []byte, fields map[string]json.RawMessage, id string) []byte {
	result := fields["result"]
	switch {
	case result == nil:
		result = quote("null")
	case result[0] != '"' && !isContent(result):
		result = quote(string(result))
	}
	return appendBlock(b, id, result, string(fields["ok"]) == "false")
}

// isContent says whether a result is a list of content blocks, so that an image
// reaches the model as one: by its source, or as MCP and OpenAI spell it.
func isContent(result json.RawMessage) bool {
	n, blocks := 0, true
	err := eachItem(result, func(_ int, block json.RawMessage) {
		n++
		switch textOf(fieldOf(block, "type")) {
		case "text":
			v := fieldOf(block, "text")
			blocks = blocks && v != nil && v[0] == '"'
		case "image_url":
			blocks = blocks && fieldOf(block, "image_url") != nil
		case "image", "document":
			blocks = blocks && isMedia(block)
		default:
			blocks = false
		}
	})
	return err == nil && blocks && n > 0
}

func isMedia(block json.RawMessage) bool {
	if v := fieldOf(block, "source"); v != nil {
		return v[0] == '{'
	}
	v := fieldOf(block, "data")
	return v != nil && v[0] == '"' && (fieldOf(block, "mimeType") != nil || fieldOf(block, "media_type") != nil)
}

func appendBlock(b []byte, id string, text json.RawMessage, failed bool) []byte {
	b = append(append(b, `{"content":`...), text...)
	if failed {
		b = append(b, `,"is_error":true`...)
	}
	b = appendQuoted(append(b, `,"tool_use_id":`...), id)
	return append(b, `,"type":"tool_result"}`...)
}

// renamed answers the message of an assistant event with other call ids.
func renamed(ev *Event, names map[int]string) json.RawMessage {
	n := -1
	content, _ := withoutTypes(fieldOf(ev.Data, "content"), "tool_result")
	content = mapBlocks(content, func(block json.RawMessage) json.RawMessage {
		if !isText(fieldOf(block, "type"), "tool_use") {
			return block
		}
		n++
		if name, ok := names[n]; ok {
			return withField(block, "id", quote(name))
		}
		return block
	})
	return messageOf("assistant", content)
}

// toolSpec answers what a model is told of a tool.
func toolSpec(name string, t Tool) json.RawMessage {
	fields := map[string]json.RawMessage{"name": quote(name)}
	if t.Description != "" {
		fields["description"] = quote(t.Description)
	}
	if t.InputSchema != nil {
		fields["input_schema"] = t.InputSchema
	}
	return appendObject(nil, fields)
}
