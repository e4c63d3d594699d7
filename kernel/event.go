package kernel

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

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
	maxEvent  = 64 << 20 // bytes of one event's data
	maxDepth  = 128      // nesting of data, as the script bridge bounds it
	blobMin   = 4 << 10  // strings from this size on are kept once, by content hash
	bodyMagic = 1        // version of the record body
)

// check validates a caller's draft and answers the event to record.
func (d *Draft) check(method string) (*Event, error) {
	if d.Kind == "" {
		return nil, faultf(Validation, method, "event has no kind, want a non-empty string")
	}
	if hint, ok := kernelOnly(d.Kind); ok {
		return nil, faultf(Validation, method, "event kind %q is the kernel's: %s", d.Kind, hint)
	}
	return d.event(method)
}

// event is check without the question of who may write the kind.
func (d *Draft) event(method string) (*Event, error) {
	data, mended, err := admit(d.Data)
	if err != nil {
		return nil, faultf(Validation, method, "event %q: data: %s", d.Kind, err)
	}
	ev := &Event{Kind: strings.ToValidUTF8(d.Kind, "\uFFFD"), Beat: strings.ToValidUTF8(d.Beat, "\uFFFD"), Data: data}
	if ev.Meta, err = admitMeta(d.Meta, &ev.Beat, mended); err != nil {
		return nil, faultf(Validation, method, "event %q: %s", d.Kind, err)
	}
	return ev, nil
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
	if raw, mended, err = validText(raw); err != nil {
		return nil, 0, err
	}
	if raw[0] != '{' {
		return nil, 0, fmt.Errorf("got %s, want an object", jsontext.Value(raw).Kind())
	}
	return raw, mended, nil
}

// validText answers raw as valid, trimmed JSON text and the number of
// characters it had to replace.
func validText(raw json.RawMessage) (json.RawMessage, int, error) {
	raw = bytes.TrimSpace(raw)
	err := walkDepth(raw)
	if err == nil {
		return raw, 0, nil
	}
	var out bytes.Buffer
	enc := jsontext.NewEncoder(&out, jsontext.AllowInvalidUTF8(true))
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowInvalidUTF8(true))
	v, rerr := dec.ReadValue()
	if rerr != nil || len(bytes.TrimSpace(raw[dec.InputOffset():])) > 0 {
		return nil, 0, err
	}
	if err := enc.WriteValue(v); err != nil {
		return nil, 0, err
	}
	fixed := json.RawMessage(strings.ToValidUTF8(strings.TrimSpace(out.String()), "\uFFFD"))
	if err := walkDepth(fixed); err != nil {
		return nil, 0, err
	}
	mended := bytes.Count(fixed, []byte("\uFFFD")) - bytes.Count(raw, []byte("\uFFFD"))
	return fixed, max(mended, 1), nil
}

// walkDepth reads raw as strict JSON: one value, unique keys, valid UTF-8, at
// most maxDepth deep.
func walkDepth(raw []byte) error {
	if jsontext.Value(raw).IsValid() && bytes.Count(raw, []byte("{"))+bytes.Count(raw, []byte("[")) <= maxDepth {
		return nil
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	for {
		if _, err := dec.ReadToken(); err != nil {
			return fmt.Errorf("got text that is not JSON: %w", err)
		}
		if dec.StackDepth() > maxDepth {
			return fmt.Errorf("got nesting over %d at %.80s", maxDepth, dec.StackPointer())
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
			return nil, fmt.Errorf("meta.%s: got %s, want a string, a number or a boolean", name, k)
		}
	}
	if b, ok := fields["beat"]; ok {
		got := textOf(b)
		if b[0] != '"' {
			return nil, fmt.Errorf("meta.beat: got %s, want a string", jsontext.Value(b).Kind())
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

// encode answers the record of ev and the blobs it refers to.
//
// A body is: version byte, uvarint epoch_ms, then kind and meta as
// length-prefixed text, then data as segments until the end. A segment is
// uvarint 2n and n literal bytes, or uvarint 2n+1 and the 32-byte hash of a
// blob of n bytes. Blobs are whole JSON strings, quotes included.
func (ev *Event) encode() (store.Record, []store.Blob) {
	b := make([]byte, 0, 32+len(ev.Kind)+len(ev.Meta)+len(ev.Data))
	b = append(b, bodyMagic)
	b = binary.AppendUvarint(b, uint64(ev.EpochMS))
	b = appendText(b, ev.Kind)
	b = appendText(b, string(ev.Meta))
	b, blobs := appendSegments(b, ev.Data)
	return store.Record{Group: ev.Beat, Body: b}, blobs
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendSegments(b, data []byte) ([]byte, []store.Blob) {
	var blobs []store.Blob
	rest := data
	for len(rest) >= blobMin {
		from, to := largeString(rest)
		if from < 0 {
			break
		}
		b = append(binary.AppendUvarint(b, uint64(from)<<1), rest[:from]...)
		blob := store.Blob{Hash: sha256.Sum256(rest[from:to]), Data: rest[from:to]}
		b = append(binary.AppendUvarint(b, uint64(to-from)<<1|1), blob.Hash[:]...)
		blobs = append(blobs, blob)
		rest = rest[to:]
	}
	if len(rest) > 0 {
		b = append(binary.AppendUvarint(b, uint64(len(rest))<<1), rest...)
	}
	return b, blobs
}

// largeString finds the first JSON string of at least blobMin bytes in valid
// JSON text that starts outside a string.
func largeString(text []byte) (from, to int) {
	for i := 0; i < len(text); {
		q := bytes.IndexByte(text[i:], '"')
		if q < 0 {
			return -1, -1
		}
		from = i + q
		for to = from + 1; text[to] != '"'; to++ {
			n := bytes.IndexAny(text[to:], `"\`)
			if to += n; text[to] == '"' {
				break
			}
			to++
		}
		to++
		if to-from >= blobMin {
			return from, to
		}
		i = to
	}
	return -1, -1
}

// decodeEvent reads a record back; blob answers the payload under a hash.
func decodeEvent(r store.Record, blob func([32]byte) ([]byte, error)) (*Event, error) {
	c := cursor{b: r.Body}
	if v := c.byte(); v != bodyMagic && !c.bad {
		return nil, fmt.Errorf("record %d: body version %d, want %d: %w", r.Seq, v, bodyMagic, store.ErrCorrupt)
	}
	ev := &Event{Seq: r.Seq, Beat: r.Group, EpochMS: int64(c.uvarint())}
	ev.Kind = string(c.text())
	ev.Meta = c.text()
	for len(c.b) > 0 && !c.bad {
		n := c.uvarint()
		if n&1 == 0 {
			seg := c.take(n >> 1)
			if len(c.b) == 0 && ev.Data == nil {
				ev.Data = seg
				break
			}
			ev.Data = append(ev.Data, seg...)
			continue
		}
		var h [32]byte
		copy(h[:], c.take(32))
		if c.bad {
			break
		}
		payload, err := blob(h)
		if err != nil {
			return nil, fmt.Errorf("record %d: payload %x: %w", r.Seq, h[:6], err)
		}
		ev.Data = append(ev.Data, payload...)
	}
	if c.bad || len(ev.Data) == 0 || len(ev.Meta) == 0 {
		return nil, fmt.Errorf("record %d: body ends early: %w", r.Seq, store.ErrCorrupt)
	}
	return ev, nil
}

// cursor reads length-prefixed fields and remembers the first overrun.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.bad, c.b = true, nil
		return nil
	}
	v := c.b[:n:n]
	c.b = c.b[n:]
	return v
}

func (c *cursor) byte() byte {
	if v := c.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (c *cursor) uvarint() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.bad, c.b = true, nil
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *cursor) text() []byte { return c.take(c.uvarint()) }

// objectFields answers the members of a JSON object as raw values.
func objectFields(raw json.RawMessage) (map[string]json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	err := eachField(raw, func(name string, v json.RawMessage) bool {
		fields[name] = v
		return true
	})
	return fields, err
}

// eachField calls yield with each member of a JSON object until it answers
// false.
func eachField(raw json.RawMessage, yield func(name string, v json.RawMessage) bool) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true))
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '{' {
		return fmt.Errorf("got %s, want an object", jsontext.Value(raw).Kind())
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		key := name.String()
		v, err := dec.ReadValue()
		if err != nil {
			return err
		}
		end := dec.InputOffset()
		if !yield(key, json.RawMessage(raw[end-int64(len(v)):end:end])) {
			return nil
		}
	}
	return nil
}

// eachItem calls yield with each element of a JSON array.
func eachItem(raw json.RawMessage, yield func(i int, v json.RawMessage)) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true))
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '[' {
		return fmt.Errorf("got %s, want an array", jsontext.Value(raw).Kind())
	}
	for i := 0; dec.PeekKind() != ']'; i++ {
		v, err := dec.ReadValue()
		if err != nil {
			return err
		}
		end := dec.InputOffset()
		yield(i, json.RawMessage(raw[end-int64(len(v)):end:end]))
	}
	return nil
}

// fieldOf answers one member of a JSON object, or nil.
func fieldOf(raw json.RawMessage, name string) (found json.RawMessage) {
	_ = eachField(raw, func(n string, v json.RawMessage) bool {
		if n == name {
			found = v
		}
		return found == nil
	})
	return found
}

// textOf answers the text of a JSON string, or "" for any other value.
func textOf(raw json.RawMessage) string {
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	s, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return ""
	}
	return string(s)
}

// quote answers s as a JSON string.
func quote(s string) json.RawMessage { return appendQuoted(nil, s) }

func appendQuoted(b []byte, s string) []byte {
	b, err := jsontext.AppendQuote(b, s)
	if err != nil { // invalid UTF-8; AppendQuote has written U+FFFD in its place
		return b
	}
	return b
}

// appendObject writes an object with its keys sorted.
func appendObject(b []byte, fields map[string]json.RawMessage) []byte {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	b = append(b, '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendQuoted(b, name), ':')
		b = append(b, fields[name]...)
	}
	return append(b, '}')
}
