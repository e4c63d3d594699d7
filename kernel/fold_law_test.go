package kernel_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/knl-run/knl/kernel"
)

var (
	someBeat = rapid.SampledFrom([]string{"", "b1", "b2", "b3"})
	someID   = rapid.SampledFrom([]string{"", "a", "b", "call_0", "a_2", "_2"})
	someJunk = rapid.SampledFrom([]string{"", "null", "{", "[]", "{}", `{"content":`, `{"content":null}`, `{"content":7}`, "\xff", `"x"`,
		`{"content":[{]}`, `{"content":[1,null,"x",{}]}`, `{"call_id":7,"result":`, `{"content":{"type":"tool_use","id":"a"}}`})
)

// someBlock draws one content block, of those that matter to pairs.
func someBlock(t *rapid.T) string {
	switch rapid.IntRange(0, 5).Draw(t, "block") {
	case 0, 1, 2:
		id := string(jsonOf(someID.Draw(t, "id")))
		if id == `""` && rapid.Bool().Draw(t, "no id") {
			return `{"input":{},"name":"look","type":"tool_use"}`
		}
		return `{"id":` + id + `,"input":{},"name":"look","type":"tool_use"}`
	case 3:
		return `{"content":"psst","tool_use_id":"a","type":"tool_result"}`
	case 4:
		return rapid.SampledFrom([]string{`{}`, `7`, `null`, `{"type":7}`, `{"id":["a"],"type":"tool_use"}`, `{"type":"tool\u005fuse","id":"b"}`}).Draw(t, "odd")
	}
	return `{"text":"hm","type":"text"}`
}

func someContent(t *rapid.T) string {
	if rapid.IntRange(0, 4).Draw(t, "text") == 0 {
		return `"some text"`
	}
	b := "["
	for i := range rapid.IntRange(0, 4).Draw(t, "blocks") {
		if i > 0 {
			b += ","
		}
		b += someBlock(t)
	}
	return b + "]"
}

// someEvent draws an event that may or may not make sense where it stands.
func someEvent(t *rapid.T) *kernel.Event {
	ev := &kernel.Event{Beat: someBeat.Draw(t, "beat"), Meta: raw("{}")}
	ev.Kind = rapid.SampledFrom([]string{kernel.MsgUser, kernel.LLMResponse, kernel.LLMResponse, kernel.ToolCall, kernel.ToolResult,
		kernel.ToolResult, kernel.ToolResult, kernel.LLMRequest, kernel.BeatInterrupted, "note"}).Draw(t, "kind")
	if rapid.IntRange(0, 9).Draw(t, "junk") == 0 {
		ev.Data = raw(someJunk.Draw(t, "data"))
		return ev
	}
	switch ev.Kind {
	case kernel.MsgUser, kernel.LLMResponse:
		ev.Data = raw(`{"content":` + someContent(t) + `}`)
	default:
		flag := rapid.SampledFrom([]string{"", `,"interrupted":true`, `,"rerun":true`}).Draw(t, "flag")
		ev.Data = rawf(`{"call_id":%s,"name":"look","ok":%t,"result":"r"%s}`, jsonOf(someID.Draw(t, "of")), rapid.Bool().Draw(t, "ok"), flag)
	}
	return ev
}

// foldIsPaired: F1–F3 hold for every prefix of any list of events, and the fold
// of the same events is the same bytes.
func foldIsPaired(t *rapid.T) {
	evs := rapid.SliceOfN(rapid.Custom(someEvent), 0, 24).Draw(t, "events")
	for n := range len(evs) + 1 {
		req := kernel.FoldEvents(evs[:n], nil)
		if why := unpaired(req); why != "" {
			t.Fatalf("prefix of %d: %s\n%s", n, why, req.Canonical())
		}
		for _, m := range req.Messages {
			require.True(t, json.Valid(m))
		}
		again := kernel.FoldEvents(fresh(evs[:n]), nil)
		require.Equal(t, string(req.Canonical()), string(again.Canonical()))
	}
}

// fresh copies events without what was computed of them.
func fresh(evs []*kernel.Event) []*kernel.Event {
	out := make([]*kernel.Event, len(evs))
	for i, ev := range evs {
		out[i] = &kernel.Event{Seq: ev.Seq, EpochMS: ev.EpochMS, Kind: ev.Kind, Beat: ev.Beat, Meta: ev.Meta, Data: ev.Data}
	}
	return out
}

func TestFoldIsPaired(t *testing.T) { rapid.Check(t, foldIsPaired) }

func FuzzFoldIsPaired(f *testing.F) { f.Fuzz(rapid.MakeFuzz(foldIsPaired)) }

func TestFold(t *testing.T) {
	user := func(content string) *kernel.Event {
		return &kernel.Event{Kind: kernel.MsgUser, Data: raw(`{"content":` + content + `}`)}
	}
	said := func(beat, content string) *kernel.Event {
		return &kernel.Event{Kind: kernel.LLMResponse, Beat: beat, Data: raw(`{"content":` + content + `}`)}
	}
	result := func(beat, id, text, more string) *kernel.Event {
		return &kernel.Event{Kind: kernel.ToolResult, Beat: beat, Data: rawf(`{"call_id":%q,"ok":true,"result":%q%s}`, id, text, more)}
	}
	broken := `execution was interrupted before a result was recorded; whether it took effect is unknown`
	ask := func(ids ...string) string {
		b := ""
		for _, id := range ids {
			b += "," + use(id, "look", "{}")
		}
		return "[" + b[1:] + "]"
	}
	tests := map[string]struct {
		events []*kernel.Event
		want   []string // role and what it says, shortened
	}{
		"nothing":                {nil, nil},
		"text and blocks":        {[]*kernel.Event{user(`"a"`), said("1", `[{"text":"b","type":"text"}]`)}, []string{`user "a"`, `assistant [{"text":"b","type":"text"}]`}},
		"empty answer stays":     {[]*kernel.Event{said("1", `[]`)}, []string{`assistant []`}},
		"no content, no message": {[]*kernel.Event{{Kind: kernel.MsgUser, Data: raw(`{}`)}, {Kind: kernel.MsgUser}}, nil},
		"a pair":                 {[]*kernel.Event{said("1", ask("a")), result("1", "a", "x", "")}, []string{`calls a`, `results a=x`}},
		"results in the order of the calls": {[]*kernel.Event{said("1", ask("a", "b")), result("1", "b", "y", ""), result("1", "a", "x", "")},
			[]string{`calls a b`, `results a=x b=y`}},
		"an open call": {[]*kernel.Event{said("1", ask("a", "b")), result("1", "b", "y", "")}, []string{`calls a b`, `results a!` + broken + ` b=y`}},
		"a user message waits for the pair": {[]*kernel.Event{said("1", ask("a")), user(`"hurry"`), result("1", "a", "x", "")},
			[]string{`calls a`, `results a=x`, `user "hurry"`}},
		"the result of another driver's beat": {[]*kernel.Event{said("1", ask("a")), said("2", ask("b")), result("1", "a", "x", ""), result("2", "b", "y", "")},
			[]string{`calls a`, `results a=x`, `calls b`, `results b=y`}},
		"an orphan":                     {[]*kernel.Event{result("1", "a", "x", ""), user(`"a"`), result("2", "b", "y", "")}, []string{`user "a"`}},
		"a second result":               {[]*kernel.Event{said("1", ask("a")), result("1", "a", "x", ""), result("1", "a", "again", "")}, []string{`calls a`, `results a=x`}},
		"the id of another beat":        {[]*kernel.Event{said("1", ask("a")), result("1", "a", "x", ""), said("2", ask("a")), result("2", "a", "y", "")}, []string{`calls a`, `results a=x`, `calls a_2`, `results a_2=y`}},
		"the id twice in one answer":    {[]*kernel.Event{said("1", ask("a", "a")), result("1", "a", "x", ""), result("1", "a", "y", "")}, []string{`calls a a_2`, `results a=x a_2=y`}},
		"an id that looks like renamed": {[]*kernel.Event{said("1", ask("a_2", "a", "a"))}, []string{`calls a_2 a a_3`, `results a_2!` + broken + ` a!` + broken + ` a_3!` + broken}},
		"run again":                     {[]*kernel.Event{said("1", ask("a")), result("1", "a", "lost", `,"interrupted":true`), result("1", "a", "x", `,"rerun":true`)}, []string{`calls a`, `results a=x`}},
		"run again and lost again":      {[]*kernel.Event{said("1", ask("a")), result("1", "a", "not started", `,"interrupted":true`), result("1", "a", "unknown", `,"interrupted":true`)}, []string{`calls a`, `results a=unknown`}},
		"a result is not run again":     {[]*kernel.Event{said("1", ask("a")), result("1", "a", "x", ""), result("1", "a", "y", `,"rerun":true`)}, []string{`calls a`, `results a=x`}},
		"tool blocks of a user":         {[]*kernel.Event{user(`[{"type":"tool_result","tool_use_id":"a"},{"text":"hi","type":"text"}]`), user(`[{"type":"tool_use","id":"z"}]`)}, []string{`user [{"text":"hi","type":"text"}]`}},
		"what was refused":              {[]*kernel.Event{{Kind: kernel.LLMResponse, Beat: "1", Data: raw(`{"content":` + ask("a") + `,"refusal":{"kind":"model"}}`)}, result("1", "a", "x", ""), user(`"go on"`)}, []string{`user "go on"`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			req := kernel.FoldEvents(tt.events, nil)
			require.Empty(t, unpaired(req))
			var got []string
			for _, m := range req.Messages {
				got = append(got, short(t, m))
			}
			require.Equal(t, tt.want, got)
		})
	}
}

// short tells a message in few words.
func short(t *testing.T, raw json.RawMessage) string {
	var msg message
	require.NoError(t, json.Unmarshal(raw, &msg))
	uses, results := usesAndResults(msg)
	switch {
	case len(uses) > 0:
		b := "calls"
		for _, id := range uses {
			b += " " + id
		}
		return b
	case len(results) == 0:
		return msg.Role + " " + string(msg.Content)
	}
	var blocks []struct {
		ToolUseID string `json:"tool_use_id"`
		Content   string `json:"content"`
		IsError   bool   `json:"is_error"`
	}
	require.NoError(t, json.Unmarshal(msg.Content, &blocks))
	b := "results"
	for _, bl := range blocks {
		b += fmt.Sprintf(" %s%s%s", bl.ToolUseID, map[bool]string{true: "!", false: "="}[bl.IsError], bl.Content)
	}
	return b
}
