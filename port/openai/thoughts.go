package openai

import (
	"encoding/json"

	"github.com/knl-run/knl/port/internal/field"
)

// thoughts is what a model thought, as its server spells it: in one field of
// text, or in a list of details beside one.
type thoughts struct {
	slot    string // the field that the text came in: the first one, for some write two
	text    grown
	details []detail
}

// take adds a piece and answers what of its text is new.
func (t *thoughts) take(s *chatSaid, m manner) string {
	said := map[string][]json.RawMessage{"reasoning_content": {s.ReasoningContent}, "reasoning": {s.Reasoning}, "reasoning_details": spelled(s.ReasoningDetails)}
	for _, slot := range []string{"reasoning_content", "reasoning", "reasoning_details"} {
		if t.slot == "" && together(said[slot], new(field.Halves)) != "" {
			t.slot = slot
		}
	}
	whole := t.text.joined(func(h *field.Halves) string { return together(said[t.slot], h) }, m)
	text := t.text.add(whole, m)
	again := whole != "" && text == "" || m == soFar && len(t.details) > 0
	if !again {
		t.takeDetails(s.ReasoningDetails)
	}
	return text
}

// spelled answers the texts in details that have some.
func spelled(details []json.RawMessage) (texts []json.RawMessage) {
	for _, raw := range details {
		var d struct{ Text, Summary json.RawMessage }
		_ = json.Unmarshal(raw, &d)
		texts = append(texts, d.Text, d.Summary)
	}
	return texts
}

func together(texts []json.RawMessage, h *field.Halves) string {
	text := ""
	for _, raw := range texts {
		if field.KindOf(raw) == '"' {
			text += h.Text(raw)
		}
	}
	return text
}

// detail is one of reasoning_details, its members in the order they came in.
type detail struct {
	keys   []string
	values map[string]json.RawMessage
	raw    json.RawMessage // as it came, while it is one piece
}

// growing are the members of a detail that come in pieces.
var growing = map[string]bool{"text": true, "summary": true, "data": true}

// takeDetails merges the pieces of a stream: those of one index, or, where there
// is none, neighbours of one type.
func (t *thoughts) takeDetails(raws []json.RawMessage) {
	for _, raw := range raws {
		d := detail{values: map[string]json.RawMessage{}, raw: raw}
		err := field.Each(raw, func(key string, value json.RawMessage) error {
			d.keys, d.values[key] = append(d.keys, key), value
			return nil
		}, "detail")
		if err != nil || field.KindOf(raw) != '{' {
			continue
		}
		if n := len(t.details); n > 0 && t.details[n-1].continues(&d) {
			t.details[n-1].merge(&d)
		} else {
			t.details = append(t.details, d)
		}
	}
}

func (d *detail) continues(next *detail) bool {
	same := func(key string) bool { return string(d.values[key]) == string(next.values[key]) }
	id := next.values["id"]
	return same("type") && same("index") && (!isSet(id) || !isSet(d.values["id"]) || same("id"))
}

func (d *detail) merge(next *detail) {
	d.raw = nil
	for _, key := range next.keys {
		value, old := next.values[key], d.values[key]
		switch {
		case old == nil:
			d.keys, d.values[key] = append(d.keys, key), value
		case growing[key] && field.KindOf(old) == '"' && field.KindOf(value) == '"':
			d.values[key] = append(append(json.RawMessage(nil), old[:len(old)-1]...), value[1:]...)
		case isSet(value):
			d.values[key] = value
		}
	}
}

func (d *detail) json() json.RawMessage {
	if d.raw != nil {
		return d.raw
	}
	b := json.RawMessage{'{'}
	for i, key := range d.keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, field.Quoted(key)...), ':'), d.values[key]...)
	}
	return append(b, '}')
}

// blocks answers the thinking block, if anything was thought. Details go back
// as they came, so they stand in the bag as text; a plain text is the block's.
func (t *thoughts) blocks(a *asked) []json.RawMessage {
	text := t.text.all()
	if text == "" && len(t.details) == 0 {
		return nil
	}
	bag := field.Map{"field": field.Quoted(t.slot)}
	if len(t.details) > 0 {
		list := make([]json.RawMessage, len(t.details))
		for i := range t.details {
			list[i] = t.details[i].json()
		}
		bag = field.Map{"field": field.Quoted("reasoning_details"), "raw": field.Quoted(string(field.Array(list)))}
	}
	return []json.RawMessage{field.Map{
		"provider": a.bag(bag), "thinking": field.Quoted(text), "type": field.Quoted("thinking"),
	}.JSON()}
}
