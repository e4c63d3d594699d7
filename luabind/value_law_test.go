package luabind

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
	"pgregory.net/rapid"
)

// drawJSON builds canonical JSON text by hand, so that the law does not lean on
// the writer under test.
func drawJSON(t *rapid.T, depth int) string {
	kinds := 5
	if depth > 0 {
		kinds = 7
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return rapid.SampledFrom([]string{"null", "true", "false"}).Draw(t, "word")
	case 1:
		return strconv.FormatInt(rapid.Int64().Draw(t, "int64"), 10)
	case 2:
		return rapid.StringMatching(`-?[1-9][0-9]{14,40}`).Draw(t, "integer")
	case 3:
		return strconv.FormatFloat(float64(rapid.IntRange(-1000000, 1000000).Draw(t, "odd")*2+1)/1024, 'f', -1, 64)
	case 4:
		return quoteText(rapid.String().Draw(t, "text"))
	case 5:
		out := "["
		for i := range rapid.IntRange(0, 4).Draw(t, "elements") {
			if i > 0 {
				out += ","
			}
			out += drawJSON(t, depth-1)
		}
		return out + "]"
	}
	keys := rapid.SliceOfNDistinct(rapid.String(), 0, 4, rapid.ID[string]).Draw(t, "keys")
	slices.Sort(keys)
	out := "{"
	for i, key := range keys {
		if i > 0 {
			out += ","
		}
		out += quoteText(key) + ":" + drawJSON(t, depth-1)
	}
	return out + "}"
}

func quoteText(s string) string {
	out, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		panic("BUG: drew text that is not UTF-8: " + err.Error())
	}
	return string(out)
}

// TestLawJSONRoundTrip: canonical JSON → Lua → JSON is the identity.
func TestLawJSONRoundTrip(t *testing.T) {
	l := newBridgeState(t)
	rapid.Check(t, func(t *rapid.T) {
		text := drawJSON(t, 4)
		v, err := FromJSON(l, []byte(text))
		require.NoError(t, err, text)
		out, err := AppendJSON(nil, v, nil)
		require.NoError(t, err, text)
		require.Equal(t, text, string(out))
	})
}

// drawLua draws a Lua value that JSON can say.
func drawLua(t *rapid.T, l *lua.LState, depth int) lua.LValue {
	kinds := 6
	if depth > 0 {
		kinds = 8
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return lua.LBool(rapid.Bool().Draw(t, "bool"))
	case 1:
		return Null
	case 2:
		return lua.LNumber(rapid.IntRange(-1000, 1000).Draw(t, "small"))
	case 3:
		f := rapid.Float64().Filter(func(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }).Draw(t, "float")
		return lua.LNumber(f)
	case 4:
		return lua.LString(rapid.String().Draw(t, "text"))
	case 5:
		return integer(rapid.StringMatching(`-?[1-9][0-9]{14,30}`).Draw(t, "integer"))
	case 6:
		list := TagArray(l, l.NewTable())
		for range rapid.IntRange(0, 4).Draw(t, "elements") {
			list.Append(drawLua(t, l, depth-1))
		}
		return list
	}
	record := l.NewTable()
	for range rapid.IntRange(0, 4).Draw(t, "members") {
		record.RawSetString(rapid.String().Draw(t, "key"), drawLua(t, l, depth-1))
	}
	return record
}

// same says whether two Lua values are equal all the way down, list tags included.
func same(a, b lua.LValue) bool {
	switch a := a.(type) {
	case *lua.LTable:
		b, ok := b.(*lua.LTable)
		if !ok || isTagged(a) != isTagged(b) || size(a) != size(b) {
			return false
		}
		equal := true
		a.ForEach(func(key, value lua.LValue) { equal = equal && same(value, b.RawGet(key)) })
		return equal
	case *lua.LUserData:
		if n, ok := a.Value.(Int); ok {
			b, ok := b.(*lua.LUserData)
			return ok && b.Value == n
		}
	}
	return a == b
}

func size(t *lua.LTable) (n int) {
	t.ForEach(func(lua.LValue, lua.LValue) { n++ })
	return n
}

// TestLawLuaRoundTrip: Lua → JSON → Lua gives an equal value.
func TestLawLuaRoundTrip(t *testing.T) {
	l := newBridgeState(t)
	rapid.Check(t, func(t *rapid.T) {
		v := drawLua(t, l, 4)
		out, err := AppendJSON(nil, v, nil)
		require.NoError(t, err)
		back, err := FromJSON(l, out)
		require.NoError(t, err, string(out))
		require.True(t, same(v, back), string(out))
	})
}

// FuzzJSONBridge: the reader takes exactly what an independent strict reader
// takes, and what it takes is stable after one pass.
func FuzzJSONBridge(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5,-0,1e400],"b":null}`, `"\ud83d\ude00\ud83d"`, `[[],{}]`,
		`{"a":1,"a":2}`, `9007199254740993`, "\"\xff\"", `[1,]`, ` 01`, "\"\x00\""} {
		f.Add([]byte(seed))
	}
	l := newBridgeState(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, err := FromJSON(l, raw)
		if utf8.Valid(raw) {
			if accepted := acceptedByJSONText(raw); accepted != (err == nil) && !beyondUs(err) {
				t.Fatalf("%q: jsontext accepts: %v, ours: %v", raw, accepted, err)
			}
		}
		if err != nil {
			return
		}
		once, err := AppendJSON(nil, v, nil)
		require.NoError(t, err)
		back, err := FromJSON(l, once)
		require.NoError(t, err)
		require.True(t, same(v, back), string(once))
		twice, err := AppendJSON(nil, back, nil)
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice))
	})
}

func acceptedByJSONText(raw []byte) bool {
	v := jsontext.Value(raw)
	return v.IsValid(jsontext.AllowInvalidUTF8(true)) // as ours, lone surrogates are mended
}

// beyondUs says whether we refuse text that is JSON but that Lua cannot hold:
// a number beyond a double, nesting beyond 128.
func beyondUs(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "larger than a Lua number") || strings.Contains(err.Error(), "nested deeper"))
}
