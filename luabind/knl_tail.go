package luabind

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"

	lua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/kernel"
)

// knl.tail: the end of a log, in O(what it answers). A fold is handed the whole
// log, and a policy that wants its last beats must not pay for the rest. The
// events of a list are answered as the tables they are.

var tailFields = []Arg{
	{Name: "last", Kind: Whole, Optional: true, Doc: "beats (default: all)"},
	{Name: "since", Kind: Text, Optional: true, Doc: "a kind: start behind the newest event of it"},
	{Name: "before", Kind: Whole, Optional: true, Doc: "a seq: with since, the newest event of its kind before this one"},
	{Name: "after", Kind: Whole, Optional: true, Doc: "a seq: start behind it"},
	{Name: "skip", Kind: Text, Optional: true, Doc: "a key: without the beats whose fold reported it and that called no tool"},
	{Name: "from_seed", Kind: Flag, Optional: true, Doc: "answer the events before the first beat, too, as far as they are not in it"},
}

var tailFuncs = []Func{{
	Name: "tail", Returns: "{ events: table[], beats: string[], since?: table, since_seq?: integer }, table[]?",
	Args: []Arg{
		{Name: "log", Type: "knl.session|table[]", Doc: "a session, what a fold is handed, or what knl.fold takes: a list of events, of beat records, or of such lists"},
		{Name: "opts", Kind: Table, Optional: true, Fields: tailFields},
	},
	Doc: "The end of a log: its events from the first one of the n-th beat from the end on, without those of older beats, and the ids of its beats, oldest first. A log with fewer beats is answered whole. An event of a list that has no seq stands for its place. It costs what it answers, however long the log is.",
	Fn:  tailOf,
}}

func tailOf(c *Call) (int, error) {
	log, err := tailLogOf(c)
	if err != nil {
		return 0, err
	}
	o := c.Options(2)
	last := int(o.Int("last", 0))
	if o.Has("last") && last < 1 {
		return 0, c.Mistake("option \"last\": got %d, want a whole number ≥ 1", last)
	}
	for _, name := range []string{"after", "before"} {
		if n := o.Int(name, 0); n < 0 {
			return 0, c.Mistake("option %q: got %d, want a whole number ≥ 0", name, n)
		}
	}
	w := tailWish{last: last, since: o.String("since", ""), before: o.Int("before", 0), after: o.Int("after", 0), skip: o.String("skip", "")}
	if w.before > 0 && w.since == "" {
		return 0, c.Mistake("option \"before\" without since: there is no kind to look for")
	}
	part, err := w.cut(c, log)
	if err != nil {
		return 0, err
	}
	t := c.L.CreateTable(0, 4)
	ids := TagArray(c.L, c.L.CreateTable(len(part.beats), 0))
	for _, id := range part.beats {
		ids.Append(lua.LString(id))
	}
	t.RawSetString("events", log.list(part.evs))
	t.RawSetString("beats", ids)
	if part.sinceSeq > 0 {
		t.RawSetString("since", part.since)
		t.RawSetString("since_seq", lua.LNumber(part.sinceSeq))
	}
	if !o.Bool("from_seed", false) {
		return c.Return(t)
	}
	seed, err := log.seed(part.first)
	if err != nil {
		return 0, err
	}
	return c.Return(t, seed)
}

// tailWish is what a script asks for.
type tailWish struct {
	last          int // 0: all beats
	since         string
	before, after int64
	skip          string
}

// tailPart is what it is answered.
type tailPart struct {
	first    int64 // place
	evs      []tailEvent
	beats    []string
	since    lua.LValue
	sinceSeq int64 // 0: none
}

// cut answers the log from where its last beats begin, or from what stands
// behind the newest event of a kind or behind a seq when that is later.
func (w *tailWish) cut(c *Call, log tailLog) (part tailPart, err error) {
	part.first = log.behind(w.after)
	if w.since != "" {
		if part.sinceSeq, part.since, err = log.newest(w.since, w.before); err != nil {
			return part, err
		}
		part.first = max(part.first, log.behind(part.sinceSeq))
	}
	var kept map[string]bool // nil: all beats
	if w.last > 0 {
		spans, err := w.counted(c, log)
		if err != nil {
			return part, err
		}
		if len(spans) == w.last {
			part.first = max(part.first, spans[0].first)
		}
		kept = make(map[string]bool, len(spans))
		for _, s := range spans {
			if kept[s.id] = true; s.last >= part.first {
				part.beats = append(part.beats, s.id)
			}
		}
	}
	if part.evs, err = log.from(part.first); err != nil {
		return part, err
	}
	if part.evs = w.ofBeats(c, part.evs, kept); kept == nil {
		part.beats = beatsOf(part.evs)
	}
	return part, nil
}

// counted answers the last beats that are not passed over, oldest first.
func (w *tailWish) counted(c *Call, log tailLog) ([]beatSpan, error) {
	for n := w.last; ; n *= 2 {
		spans, err := log.spans(n)
		all := len(spans) < n
		if w.skip != "" {
			spans = slices.DeleteFunc(spans, func(s beatSpan) bool { return passedOver(c, s.events, w.skip)[s.id] })
		}
		if err != nil || all || len(spans) >= w.last || n > math.MaxInt/2 {
			return spans[max(0, len(spans)-w.last):], err
		}
	}
}

// ofBeats leaves out the events of beats that are not kept (of an older one that
// ran beside the first) and of those that are passed over.
func (w *tailWish) ofBeats(c *Call, evs []tailEvent, kept map[string]bool) []tailEvent {
	var passed map[string]bool
	if w.skip != "" {
		passed = passedOver(c, evs, w.skip)
	}
	if kept == nil && len(passed) == 0 {
		return evs
	}
	out := evs[:0]
	for _, ev := range evs {
		if ev.beat == "" || (kept == nil || kept[ev.beat]) && !passed[ev.beat] {
			out = append(out, ev)
		}
	}
	return out
}

// passedOver answers the beats whose fold reported key and that called no tool:
// what a tool has done stays said.
func passedOver(c *Call, evs []tailEvent, key string) map[string]bool {
	var out map[string]bool
	for i := range evs {
		if evs[i].beat != "" && evs[i].kind == kernel.LLMRequest && evs[i].reports(c, key) {
			if out == nil {
				out = map[string]bool{}
			}
			out[evs[i].beat] = true
		}
	}
	for i := range evs {
		if out != nil && evs[i].kind == kernel.ToolCall {
			delete(out, evs[i].beat)
		}
	}
	return out
}

// reports answers whether the report of the fold that made a request has a key.
func (e *tailEvent) reports(c *Call, key string) bool {
	if e.ev == nil {
		data, _ := look(c.L, e.t).RawGetString("data").(*lua.LTable)
		if data == nil {
			return false
		}
		window, _ := look(c.L, data).RawGetString("window").(*lua.LTable)
		return window != nil && look(c.L, window).RawGetString(key) != lua.LNil
	}
	if !bytes.Contains(e.ev.Data, []byte(`"`+key+`"`)) {
		return false // nearly all, without being read
	}
	var data struct{ Window map[string]json.RawMessage }
	if json.Unmarshal(e.ev.Data, &data) != nil {
		return false
	}
	_, ok := data.Window[key]
	return ok
}

func beatsOf(evs []tailEvent) (ids []string) {
	seen := map[string]bool{"": true}
	for _, ev := range evs {
		if !seen[ev.beat] {
			seen[ev.beat] = true
			ids = append(ids, ev.beat)
		}
	}
	return ids
}
