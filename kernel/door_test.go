package kernel_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/knl-run/knl/kernel"
)

func TestAppendRefuses(t *testing.T) {
	long := strings.Repeat("b", 5000)
	tests := map[string]struct {
		draft kernel.Draft
		want  string
	}{
		"no kind":               {kernel.Draft{}, "event has no kind, want a non-empty string"},
		"an array":              {kernel.Draft{Kind: "x", Data: raw(`[]`)}, "data: got an array, want an object"},
		"null":                  {kernel.Draft{Kind: "x", Data: raw(`null`)}, "data: got null, want an object"},
		"space":                 {kernel.Draft{Kind: "x", Data: raw(` `)}, "data: got text that is not JSON"},
		"no JSON":               {kernel.Draft{Kind: "x", Data: raw(`{"a":}`)}, "data: got text that is not JSON"},
		"NaN":                   {kernel.Draft{Kind: "x", Data: raw(`{"a":NaN}`)}, "data: got text that is not JSON"},
		"infinity":              {kernel.Draft{Kind: "x", Data: raw(`{"a":-Infinity}`)}, "data: got text that is not JSON"},
		"a leading zero":        {kernel.Draft{Kind: "x", Data: raw(`{"a":007}`)}, "data: got text that is not JSON"},
		"text behind":           {kernel.Draft{Kind: "x", Data: raw(`{} {}`)}, "data: got text after the value at byte 2"},
		"bad text behind":       {kernel.Draft{Kind: "x", Data: raw("{}\xff")}, "data: got text after the value at byte 2"},
		"a key twice":           {kernel.Draft{Kind: "x", Data: raw(`{"a":1,"a":2}`)}, `duplicate object member name "a"`},
		"a key twice, escaped":  {kernel.Draft{Kind: "x", Data: raw(`{"a":1,"\u0061":2}`)}, `duplicate object member name`},
		"keys the same mended":  {kernel.Draft{Kind: "x", Data: raw("{\"\xff\":1,\"\xfe\":2}")}, "duplicate object member name"},
		"too deep":              {kernel.Draft{Kind: "x", Data: raw(nested(129))}, "data: got nesting over 128 at /a/"},
		"far too deep":          {kernel.Draft{Kind: "x", Data: raw(nested(20_000))}, "data: got nesting over 128 at /a/"},
		"too large":             {kernel.Draft{Kind: "x", Data: make(json.RawMessage, 64<<20+1)}, "want at most 67108864: keep it in a file"},
		"meta with null":        {kernel.Draft{Kind: "x", Meta: raw(`{"a":null}`)}, "meta.a: got null, want a string, a number or a boolean"},
		"meta with a list":      {kernel.Draft{Kind: "x", Meta: raw(`{"a":[1]}`)}, "meta.a: got an array, want a string, a number or a boolean"},
		"meta a list":           {kernel.Draft{Kind: "x", Meta: raw(`[]`)}, "meta: got an array, want an object"},
		"two beats":             {kernel.Draft{Kind: "x", Beat: "a", Meta: raw(`{"beat":"b"}`)}, `beat is "a" and meta.beat is "b", want one`},
		"a beat that is a flag": {kernel.Draft{Kind: "x", Meta: raw(`{"beat":true}`)}, "meta.beat: got a boolean, want a string"},
		"a long beat":           {kernel.Draft{Kind: "x", Beat: long}, "over 4096 bytes long"},
		"a long meta.beat":      {kernel.Draft{Kind: "x", Meta: raw(`{"beat":"` + long + `"}`)}, "over 4096 bytes long"},
		"a request of a beat":   {kernel.Draft{Kind: kernel.LLMRequest, Beat: "b", Data: raw(`{"hash":"00"}`)}, "data.hash is the kernel's"},
		"a rerun":               {kernel.Draft{Kind: kernel.ToolCall, Beat: "b", Data: raw(`{"call_id":"a","rerun":true}`)}, "data.rerun is the kernel's: call rerun"},
	}
	for _, kind := range []string{"session_opened", "session_closed", "budget_granted", "budget_reserved", "budget_refused", "budget_spent",
		"budget_settled", "budget_returned", "beat_interrupted", "driver_changed", "contract_frozen", "approval_asked", "generation_closed"} {
		tests[kind] = struct {
			draft kernel.Draft
			want  string
		}{kernel.Draft{Kind: kind}, `event kind "` + kind + `" is the kernel's: `}
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			k, _ := newMem(t)
			s, err := k.Open(ctxb, kernel.Open{})
			require.NoError(t, err)
			seq, err := s.Append(ctxb, tt.draft)
			require.ErrorContains(t, err, tt.want)
			require.Equal(t, kernel.Validation, kernel.KindOf(err))
			require.Zero(t, seq)
			require.Len(t, logOf(t, s), 1, "nothing is written and no seq used up")
		})
	}
}

// nested is an object of some depth.
func nested(depth int) string {
	return strings.Repeat(`{"a":`, depth-1) + "{}" + strings.Repeat("}", depth-1)
}

func TestAppendTakes(t *testing.T) {
	tests := map[string]struct{ data, meta, wantData, wantMeta, wantBeat string }{
		"nothing":               {"", "", "{}", "{}", ""},
		"an empty meta":         {"{}", " { } ", "{}", "{}", ""},
		"space around":          {" {\"a\" : 1}\n", "", "{\"a\" : 1}", "{}", ""},
		"the deepest":           {nested(128), "", nested(128), "{}", ""},
		"meta.beat":             {"", `{"b":true,"beat":"x","a":1}`, "{}", `{"a":1,"b":true}`, "x"},
		"big numbers":           {`{"n":9007199254740993,"f":1e400}`, "", `{"n":9007199254740993,"f":1e400}`, "{}", ""},
		"bad bytes":             {"{\"a\":\"x\xffy\xc3\"}", "", "{\"a\":\"x\ufffdy\ufffd\"}", `{"mended":2}`, ""},
		"half a character":      {`{"a":"\ud83d!","b":"\ude00"}`, "", "{\"a\":\"\ufffd!\",\"b\":\"\ufffd\"}", `{"mended":2}`, ""},
		"two wrong halves":      {`{"a":"\ude00\ud83d"}`, "", "{\"a\":\"\ufffd\ufffd\"}", `{"mended":2}`, ""},
		"a whole character":     {`{"a":"\ud83d\ude00"}`, "", `{"a":"\ud83d\ude00"}`, "{}", ""},
		"a backslash before u":  {"{\"a\":\"\\\\ud83d\xff\"}", "", "{\"a\":\"\\\\ud83d\ufffd\"}", `{"mended":1}`, ""},
		"its own replacements":  {"{\"a\":\"\\ufffd\ufffd\xff\"}", "", "{\"a\":\"\\ufffd\ufffd\ufffd\"}", `{"mended":1}`, ""},
		"a bad key":             {"{\"\xff\":1}", "", "{\"\ufffd\":1}", `{"mended":1}`, ""},
		"a surrogate in UTF-8":  {"{\"a\":\"\xed\xa0\xbd\"}", "", "{\"a\":\"\ufffd\ufffd\ufffd\"}", `{"mended":3}`, ""},
		"bad meta":              {"", "{\"a\":\"\xff\"}", "{}", "{\"a\":\"\ufffd\",\"mended\":1}", ""},
		"a zero byte":           {`{"a":"\u0000"}`, "", `{"a":"\u0000"}`, "{}", ""},
		"half a character, cut": {"{\"a\":\"\\ud83d\\u0041\xff\"}", "", "{\"a\":\"\ufffd\\u0041\ufffd\"}", `{"mended":2}`, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			k, st := newMem(t)
			s, err := k.Open(ctxb, kernel.Open{})
			require.NoError(t, err)
			seq, err := s.Append(ctxb, kernel.Draft{Kind: "x", Data: raw(tt.data), Meta: raw(tt.meta)})
			require.NoError(t, err)
			require.EqualValues(t, 2, seq)
			for _, k := range []*kernel.Kernel{k, newKernel(st)} {
				a, err := k.Attach(ctxb, s.ID())
				require.NoError(t, err)
				ev := logOf(t, a)[1]
				require.Equal(t, [3]string{tt.wantData, tt.wantMeta, tt.wantBeat}, [3]string{string(ev.Data), string(ev.Meta), ev.Beat})
			}
		})
	}
}

// A caller may use its bytes again.
func TestAppendKeepsItsOwnCopy(t *testing.T) {
	k, _ := newMem(t)
	s, err := k.Open(ctxb, kernel.Open{})
	require.NoError(t, err)
	buf := raw(`{"content":"first"}`)
	_, err = s.Append(ctxb, kernel.Draft{Kind: kernel.MsgUser, Data: buf})
	require.NoError(t, err)
	copy(buf, `{"content":"SPOIL"}`)
	require.Equal(t, `{"content":"first"}`, string(logOf(t, s)[1].Data))
}

// doorIsStrict: what the door lets in is one valid, strict JSON object, and what
// was such an object already comes in byte for byte.
func doorIsStrict(t *rapid.T) {
	data := rapid.OneOf(someObject(), rapid.Custom(func(t *rapid.T) []byte {
		b := slicesOf(someObject().Draw(t, "object"))
		for range rapid.IntRange(0, 3).Draw(t, "faults") {
			i := rapid.IntRange(0, len(b)).Draw(t, "at")
			bad := rapid.SampledFrom([]string{"\xff", "\xed\xa0\x80", `\ud800`, `\`, `"`, "{", "}", ",", " ", "\x00", "é"}).Draw(t, "fault")
			b = slicesOf(b[:i], []byte(bad), b[i:])
		}
		return b
	})).Draw(t, "data")
	k := newKernel(newTape())
	s, err := k.Open(ctxb, kernel.Open{})
	require.NoError(t, err)
	if _, err = s.Append(ctxb, kernel.Draft{Kind: "x", Data: data}); err != nil {
		require.Equal(t, kernel.Validation, kernel.KindOf(err))
		return
	}
	evs, err := s.Events(ctxb, 2)
	require.NoError(t, err)
	got := evs[0].Data
	require.True(t, json.Valid(got) && utf8.Valid(got) && got[0] == '{', "%q", got)
	if utf8.Valid(data) && !bytes.Contains(data, []byte(`\u`)) && len(bytes.TrimSpace(data)) > 0 {
		require.Equal(t, string(bytes.TrimSpace(data)), string(got))
		require.Equal(t, "{}", string(evs[0].Meta))
	}
	var v any
	require.NoError(t, json.Unmarshal(got, &v))
}

func slicesOf(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func someObject() *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		return jsonOf(rapid.MapOfN(rapid.StringN(0, 6, -1), someValue(3), 0, 4).Draw(t, "object"))
	})
}

func someValue(depth int) *rapid.Generator[any] {
	leaf := rapid.OneOf(rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Int64().AsAny(), rapid.Float64().AsAny(), rapid.String().AsAny(), someLong().AsAny())
	if depth == 0 {
		return leaf
	}
	return rapid.OneOf(leaf, rapid.SliceOfN(someValue(depth-1), 0, 3).AsAny(), rapid.MapOfN(rapid.StringN(0, 5, -1), someValue(depth-1), 0, 3).AsAny())
}

// someLong draws text about as long as what is kept as a payload of its own,
// with and without escapes.
func someLong() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		piece := rapid.SampledFrom([]string{"x", "\\", "\"", "\n", "é", "a\\\"b", "{", "<"}).Draw(t, "piece")
		return strings.Repeat(piece, rapid.SampledFrom([]int{1, 682, 2046, 2047, 2048, 4093, 4094, 4095, 4096, 5000}).Draw(t, "times"))
	})
}

func TestDoorIsStrict(t *testing.T) { rapid.Check(t, doorIsStrict) }

func FuzzDoorIsStrict(f *testing.F) { f.Fuzz(rapid.MakeFuzz(doorIsStrict)) }
