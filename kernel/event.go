package kernel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/knl-run/knl/kernel/store"
)

// Event is one entry of a session's log. It is read-only once it is recorded.
type Event struct {
	Seq     int64           // dense from 1; the kernel's
	EpochMS int64           // wall clock at the append, milliseconds; the kernel's
	Kind    string          // what happened
	Beat    string          // the beat it belongs to; "" for none
	Meta    json.RawMessage // flat object of strings, numbers and booleans; never nil
	Data    json.RawMessage // object; never nil

	sound  bool                   // Data came through the door
	folded atomic.Pointer[folded] // what the fold makes of this event alone
}

// Draft is an event that a caller asks to record.
type Draft struct {
	Kind string
	Beat string          // or as Meta's "beat"; both only when they agree
	Meta json.RawMessage // nil: none
	Data json.RawMessage // nil: {}
}

// The kinds that beats and callers write. The vocabulary is open: any other
// kind is stored with its envelope checked.
const (
	MsgUser       = "msg_user"
	LLMRequest    = "llm_request"
	LLMResponse   = "llm_response"
	LLMCallFailed = "llm_call_failed"
	ToolCall      = "tool_call"
	ToolResult    = "tool_result"
)

// The kinds that only the kernel writes.
const (
	SessionOpened   = "session_opened"
	SessionClosed   = "session_closed"
	BudgetGranted   = "budget_granted"
	BudgetReserved  = "budget_reserved"
	BudgetRefused   = "budget_refused"
	BudgetSpent     = "budget_spent"
	BudgetSettled   = "budget_settled"
	BudgetReturned  = "budget_returned"
	BeatInterrupted = "beat_interrupted"
	DriverChanged   = "driver_changed"
)

// reserved maps each kernel-only kind to what a caller should do instead.
var reserved = map[string]string{
	SessionOpened:   "open a session",
	SessionClosed:   "call close",
	BudgetGranted:   "grant with open or resume",
	BudgetReserved:  "call reserve",
	BudgetRefused:   "call reserve",
	BudgetSpent:     "call spend",
	BudgetSettled:   "call settle",
	BudgetReturned:  "close a child opened with refund",
	BeatInterrupted: "resume records it",
	DriverChanged:   "resume records it",
}

// reservedPrefixes are the families of kernel-only kinds that turn contracts
// and generations record (design §8 and §7).
var reservedPrefixes = []string{
	"contract_frozen", "contract_stopped", "contract_violation", "tool_gate",
	"approval_", "mutation_", "sealed_read", "render_", "generation_",
}

const (
	maxEvent = 64 << 20 // bytes of one event's data
	maxDepth = 128      // nesting of data, as the script bridge bounds it
)

// check validates a caller's draft and answers the event to record.
func (d *Draft) check(method string) (*Event, error) {
	if d.Kind == "" {
		return nil, faultf(Validation, method, "event has no kind, want a non-empty string")
	}
	if hint, ok := kernelOnly(d.Kind); ok {
		return nil, faultf(Validation, method, "event kind %q is the kernel's: %s", d.Kind, hint)
	}
	data, mended, err := admit(d.Data)
	if err != nil {
		return nil, faultf(Validation, method, "event %q: data: %s", d.Kind, err)
	}
	ev := &Event{Kind: strings.ToValidUTF8(d.Kind, "\uFFFD"), Beat: strings.ToValidUTF8(d.Beat, "\uFFFD"), Data: data, sound: true}
	if ev.Meta, err = admitMeta(d.Meta, &ev.Beat, mended); err != nil {
		return nil, faultf(Validation, method, "event %q: %s", d.Kind, err)
	}
	if len(ev.Kind) > store.MaxName || len(ev.Beat) > store.MaxName {
		return nil, faultf(Validation, method, "event's kind or beat is over %d bytes long", store.MaxName)
	}
	if err := ev.opens(); err != nil {
		return nil, faultf(Validation, method, "event %q: %s", d.Kind, err)
	}
	return ev, nil
}

// opens refuses what the state beside the head reads as the beginning of a
// beat; only the kernel begins one.
func (ev *Event) opens() error {
	switch {
	case ev.Kind == LLMRequest && fieldOf(ev.Data, "hash") != nil:
		return errors.New("data.hash is the kernel's: a beat records its own request")
	case ev.Kind == ToolCall && string(fieldOf(ev.Data, "rerun")) == "true":
		return errors.New("data.rerun is the kernel's: call rerun")
	}
	return nil
}

func kernelOnly(kind string) (hint string, ok bool) {
	if hint, ok = reserved[kind]; ok {
		return hint, true
	}
	for _, p := range reservedPrefixes {
		if strings.HasPrefix(kind, p) {
			return "turn contracts and generations record it", true
		}
	}
	return "", false
}

// admit is the door of the log: what it answers is one JSON object, valid
// UTF-8, without duplicate keys, at most maxDepth deep. Bad bytes and lone
// surrogates are replaced by U+FFFD and counted.
func admit(raw json.RawMessage) (clean json.RawMessage, mended int, err error) {
	if len(raw) == 0 {
		return json.RawMessage("{}"), 0, nil
	}
	if len(raw) > maxEvent {
		return nil, 0, fmt.Errorf("got %d bytes, want at most %d: keep it in a file and record its path", len(raw), maxEvent)
	}
	if raw, mended, err = validText(raw, maxDepth); err != nil {
		return nil, 0, err
	}
	if raw[0] != '{' {
		return nil, 0, fmt.Errorf("got %s, want an object", typeOf(raw))
	}
	return raw, mended, nil
}

// validText answers a copy of raw as valid, trimmed JSON text at most depth
// deep, and the number of characters it had to replace.
func validText(raw json.RawMessage, depth int) (json.RawMessage, int, error) {
	raw = bytes.Clone(bytes.TrimSpace(raw))
	err := strict(raw, depth)
	if err == nil {
		return raw, 0, nil
	}
	fixed, mended := repair(raw)
	if mended == 0 {
		return nil, 0, err
	}
	if err := strict(fixed, depth); err != nil {
		return nil, 0, err
	}
	return fixed, mended, nil
}

// repair answers text with its bad bytes and lone surrogates replaced, and their
// number. The other bytes stay as they are, JSON or not.
func repair(text []byte) (json.RawMessage, int) {
	out, n := make(json.RawMessage, 0, len(text)+8), 0
	for i := 0; i < len(text); {
		size := 1
		switch c := text[i]; {
		case c >= utf8.RuneSelf:
			r, width := utf8.DecodeRune(text[i:])
			if r == utf8.RuneError && width == 1 {
				out, n, i = append(out, "\uFFFD"...), n+1, i+1
				continue
			}
			size = width
		case c == '\\':
			if size = 2; !utf16.IsSurrogate(escaped(text[i:])) {
				break
			}
			if size = 12; !paired(text[i:]) {
				out, n, i = append(out, "\uFFFD"...), n+1, i+6
				continue
			}
		}
		end := min(i+size, len(text))
		out, i = append(out, text[i:end]...), end
	}
	return out, n
}

// paired says whether text begins with the escapes of both halves of one.
func paired(text []byte) bool {
	return len(text) >= 12 && utf16.DecodeRune(escaped(text), escaped(text[6:])) != utf8.RuneError
}

// escaped reads \uXXXX; 0 when text does not begin so.
func escaped(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	r, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(r)
}

// strict reads raw as one JSON value with unique keys and valid UTF-8, at most
// depth deep.
func strict(raw []byte, depth int) error {
	if jsontext.Value(raw).IsValid() && bytes.Count(raw, []byte("{"))+bytes.Count(raw, []byte("[")) <= depth {
		return nil
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	for {
		if _, err := dec.ReadToken(); err != nil {
			return fmt.Errorf("got text that is not JSON: %w", err)
		}
		if dec.StackDepth() > depth {
			return fmt.Errorf("got nesting over %d at %.80s", depth, dec.StackPointer())
		}
		if dec.StackDepth() == 0 {
			break
		}
	}
	if rest := bytes.TrimSpace(raw[dec.InputOffset():]); len(rest) > 0 {
		return fmt.Errorf("got text after the value at byte %d", dec.InputOffset())
	}
	return nil
}

// admitMeta validates a meta object, lifts its "beat" and counts what the door
// mended in "mended".
func admitMeta(raw json.RawMessage, beat *string, mended int) (json.RawMessage, error) {
	meta, more, err := admit(raw)
	if err != nil {
		return nil, fmt.Errorf("meta: %w", err)
	}
	mended += more
	if len(meta) == 2 && mended == 0 {
		return meta, nil
	}
	fields, err := objectFields(meta)
	if err != nil {
		return nil, fmt.Errorf("meta: %w", err)
	}
	for name, v := range fields {
		if k := jsontext.Value(v).Kind(); k != '"' && k != '0' && k != 't' && k != 'f' {
			return nil, fmt.Errorf("meta.%s: got %s, want a string, a number or a boolean", name, typeOf(v))
		}
	}
	if b, ok := fields["beat"]; ok {
		got := textOf(b)
		if b[0] != '"' {
			return nil, fmt.Errorf("meta.beat: got %s, want a string", typeOf(b))
		}
		if *beat != "" && *beat != got {
			return nil, fmt.Errorf("beat is %q and meta.beat is %q, want one", *beat, got)
		}
		*beat = got
		delete(fields, "beat")
	}
	if mended > 0 {
		fields["mended"] = json.RawMessage(fmt.Sprint(mended))
	}
	return appendObject(nil, fields), nil
}
