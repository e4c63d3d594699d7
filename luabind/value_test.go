package luabind

import (
	"math"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// luaValue answers what the Lua expression is, with null, int and array in scope.
func luaValue(t testing.TB, l *lua.LState, expression string) lua.LValue {
	t.Helper()
	require.NoError(t, l.DoString("return "+expression))
	v := l.Get(-1)
	l.Pop(1)
	return v
}

func newBridgeState(t testing.TB) *lua.LState {
	l := lua.NewState()
	t.Cleanup(l.Close)
	l.SetGlobal("null", Null)
	l.SetGlobal("int", l.NewFunction(func(l *lua.LState) int {
		n, err := NewInt(l.CheckString(1))
		if err != nil {
			l.RaiseError("%s", err)
		}
		l.Push(n)
		return 1
	}))
	l.SetGlobal("array", l.NewFunction(func(l *lua.LState) int {
		l.Push(TagArray(l, l.OptTable(1, l.NewTable())))
		return 1
	}))
	return l
}

func TestAppendJSON(t *testing.T) {
	l := newBridgeState(t)
	for expression, want := range map[string]string{
		`nil`: `null`, `null`: `null`, `true`: `true`, `false`: `false`,
		`{}`: `{}`, `array()`: `[]`, `{1, 2, 3}`: `[1,2,3]`, `{null, 1, null}`: `[null,1,null]`,
		`{b = 1, a = 2, ["10"] = 3, B = 4}`: `{"10":3,"B":4,"a":2,"b":1}`,
		`{a = {b = {{}, array()}}}`:         `{"a":{"b":[{},[]]}}`,
		`{[""] = ""}`:                       `{"":""}`,
		`1`:                                 `1`, `-1`: `-1`, `0`: `0`, `-0`: `0`, `0 * -1`: `0`,
		`1000000`: `1000000`, `100000000000000000000`: `1e+20`,
		`2^53`: `9007199254740992`, `-2^53`: `-9007199254740992`, `2^60`: `1152921504606846976`,
		`2^63`: `9.223372036854776e+18`,
		`0.1`:  `0.1`, `1/3`: `0.3333333333333333`, `1e-6`: `0.000001`, `1e-7`: `1e-7`, `-2.5e-10`: `-2.5e-10`,
		`1e300`: `1e+300`, `5e-324`: `5e-324`, `123456.789`: `123456.789`,
		`int("9007199254740993")`:               `9007199254740993`,
		`{int("-123456789012345678901234567")}`: `[-123456789012345678901234567]`,
		`int("5")`:                              `5`,
		`"a\"b\\c/\n\r\t\b\f\1\127<&>"`:         `"a\"b\\c/\n\r\t\b\f\u0001` + "\x7f" + `<&>"`,
		`"é😀"`:                                  `"é😀"`,
	} {
		out, err := AppendJSON([]byte("> "), luaValue(t, l, expression), nil)
		if assert.NoError(t, err, expression) {
			assert.Equal(t, "> "+want, string(out), expression)
		}
	}
}

func TestAppendJSONRefusesWhatItWouldLose(t *testing.T) {
	l := newBridgeState(t)
	require.NoError(t, l.DoString(`
		loop = {name = "x"}; loop.self = {loop}
		deep = {}; for _ = 1, 128 do deep = {deep} end
		shared = {1}`))
	for expression, want := range map[string]string{
		`print`:                                   `data: got a function, want a JSON value`,
		`{items = {1, 2, {x = print}}}`:           `data.items[3].x: got a function, want a JSON value`,
		`{["a b"] = {["end1"] = io.stdout}}`:      `data["a b"].end1: got a userdata, want a JSON value`,
		`{co = coroutine.create(function() end)}`: `data.co: got a thread, want a JSON value`,
		`{n = 0/0}`:                               `data.n: got NaN, want a finite number`,
		`{n = 1e308 * 10}`:                        `data.n: got infinity, want a finite number`,
		`{n = -1e308 * 10}`:                       `data.n: got minus infinity, want a finite number`,
		`loop`:                                    `data.self[1]: got a table that contains itself, want a tree`,
		`{1, 2, x = 3}`:                           `data: got key "x" beside a list of 2, want a list or a record`,
		`{1, 2, [0] = 3}`:                         `data: got key 0 beside a list of 2, want a list or a record`,
		`{a = array{x = 3}}`:                      `data.a: got key "x" beside a list of 0, want a list or a record`,
		`{1, nil, 3}`:                             `data: got a list with nothing at 2 but an element at 3, want no holes: knl.null keeps a place, text keys make a record`,
		`{[10] = 1}`:                              `data: got a list with nothing at 1 but an element at 10, want no holes: knl.null keeps a place, text keys make a record`,
		`{[-1] = 1}`:                              `data: got key -1, want text keys or a list from 1`,
		`{[1.5] = 1}`:                             `data: got key 1.5, want text keys or a list from 1`,
		`{a = 1, [true] = 1}`:                     `data: got key true, want text keys or a list from 1`,
		`{[{}] = 1}`:                              `data: got key of type table, want text keys or a list from 1`,
		`{["\254"] = 1, ["\255"] = 2}`:            `data: got two keys that both read "�" as UTF-8, want distinct keys`,
		`deep`:                                    `data` + strings.Repeat("[1]", 128) + `: nested deeper than 128 tables`,
	} {
		dst := []byte("kept")
		out, err := AppendJSON(dst, luaValue(t, l, expression), &Encoding{Name: "data"})
		assert.EqualError(t, err, want, expression)
		assert.Equal(t, "kept", string(out), expression)
	}
	// The same table twice is no cycle, and a refusal leaves nothing behind.
	out, err := AppendJSON(nil, luaValue(t, l, `{a = shared, b = {shared, shared}}`), nil)
	require.NoError(t, err)
	assert.Equal(t, `{"a":[1],"b":[[1],[1]]}`, string(out))
}

func TestAppendJSONMendsText(t *testing.T) {
	l := newBridgeState(t)
	for expression, want := range map[string]struct {
		text   string
		mended int
	}{
		`"ok é"`:                   {`"ok é"`, 0},
		`"a\255b\254"`:             {`"a�b�"`, 2},
		`"cut \195"`:               {`"cut �"`, 1},
		`"\237\160\128"`:           {`"���"`, 3}, // a surrogate half spelled as bytes
		`"real \239\191\189"`:      {`"real �"`, 0},
		`{["k\255"] = "v\255"}`:    {`{"k�":"v�"}`, 2},
		`{"\255", {x = {"\255"}}}`: {`["�",{"x":["�"]}]`, 2},
	} {
		e := Encoding{}
		out, err := AppendJSON(nil, luaValue(t, l, expression), &e)
		require.NoError(t, err, expression)
		assert.Equal(t, want.text, string(out), expression)
		assert.Equal(t, want.mended, e.Mended, expression)
	}
}

func TestListFieldsAreListsWhenEmpty(t *testing.T) {
	l := newBridgeState(t)
	v := luaValue(t, l, `{content = {}, messages = {}, tools = {}, required = {}, properties = {}, deep = {{tools = {}, x = {}}}}`)
	out, err := AppendJSON(nil, v, &Encoding{ListFields: true})
	require.NoError(t, err)
	assert.Equal(t, `{"content":[],"deep":[{"tools":[],"x":{}}],"messages":[],"properties":{},"required":[],"tools":[]}`, string(out))

	out, err = AppendJSON(nil, luaValue(t, l, `{tools = {}}`), nil)
	require.NoError(t, err)
	assert.Equal(t, `{"tools":{}}`, string(out))

	out, err = AppendJSON(nil, luaValue(t, l, `{tools = {a = {}}}`), &Encoding{ListFields: true})
	require.NoError(t, err)
	assert.Equal(t, `{"tools":{"a":{}}}`, string(out))
}

func TestFromJSON(t *testing.T) {
	l := newBridgeState(t)
	for text, check := range map[string]string{
		`null`:                                 `v == null and type(v) == "userdata" and tostring(v) == "null"`,
		` [null, 1, null] `:                    `#v == 3 and v[1] == null and v[3] == null and v[2] == 1`,
		`[]`:                                   `#v == 0 and getmetatable(v).__jsontype == "array"`,
		`[1]`:                                  `getmetatable(v) == getmetatable(array())`,
		`{}`:                                   `next(v) == nil and getmetatable(v) == nil`,
		"{\"a\" :\t{\"b\":\r\n[1,2]}}":         `v.a.b[2] == 2`,
		`[1.0, 1e2, -0, -0.0, 255, 256, 1E+2]`: `v[1] == 1 and v[2] == 100 and tostring(v[3]) == "0" and 1/v[4] > 0 and v[5] == 255 and v[6] == 256 and v[7] == 100`,
		`9007199254740993`:                     `type(v) == "userdata" and tostring(v) == "9007199254740993" and v == int("9007199254740993")`,
		`9007199254740992`:                     `v == 2^53`,
		`1152921504606846976`:                  `v == 2^60 and tostring(v) == "1152921504606846976"`,
		`9223372036854775807`:                  `tostring(v) == "9223372036854775807"`,
		`9223372036854775808`:                  `tostring(v) == "9223372036854775808"`,
		`-9223372036854775808`:                 `tostring(v) == "-9223372036854775808"`,
		`12345678901234567890123`:              `"id " .. v .. "!" == "id 12345678901234567890123!"`,
		`"a\"\\\/\b\f\n\r\t\u0041\u00e9\ud83d\ude00"`: `v == "a\"\\/\b\f\n\r\tAé😀"`,
		`"\ud83d x \ude00\ud83d\u0041"`:               `v == "\239\191\189 x \239\191\189\239\191\189A"`,
		"\"\xff é \xc3\"":                             `v == "\239\191\189 é \239\191\189"`,
		"\"\\n\xff\"":                                 `v == "\n\239\191\189"`,
		`"\u0000"`:                                    `v == "\0"`,
		`{"":{"":1}}`:                                 `v[""][""] == 1`,
		"\"\x7f/\"":                                   `v == "\127/"`,
		`5e-324`:                                      `v > 0`,
	} {
		v, err := FromJSON(l, []byte(text))
		if assert.NoError(t, err, text) {
			l.SetGlobal("v", v)
			assert.Equal(t, lua.LTrue, luaValue(t, l, check), text)
		}
	}
}

func TestFromJSONRefuses(t *testing.T) {
	l := newBridgeState(t)
	for text, want := range map[string]string{
		``:                            `1:1: got the end of the text, want a JSON value`,
		`  `:                          `1:3: got the end of the text, want a JSON value`,
		`nul`:                         `1:1: got 'n', want a JSON value`,
		`True`:                        `1:1: got 'T', want a JSON value`,
		`NaN`:                         `1:1: got 'N', want a JSON value`,
		"\ufeff{}":                    `1:1: got '\ufeff', want a JSON value`,
		`{} x`:                        `1:4: got 'x', want the end of the text`,
		`1 2`:                         `1:3: got '2', want the end of the text`,
		"{\n  \"é\": 1,\n  \"é\": 2}": `3:3: key "é" stands twice in one record`,
		`{"a":{"b":1,"\u0062":2}}`:    `1:13: key "b" stands twice in one record`,
		`{"a":null,"a":null}`:         `1:11: key "a" stands twice in one record`,
		`[1,]`:                        `1:4: got ']', want another element after ','`,
		`{"a":1,}`:                    `1:8: got '}', want another element after ','`,
		`[1 2]`:                       `1:4: got '2', want ',' or ']'`,
		`{"é" "b"}`:                   `1:6: got '"', want ':' after a key`,
		`{a:1}`:                       `1:2: got 'a', want a key in double quotes`,
		`{"a":1 "b":2}`:               `1:8: got '"', want ',' or '}'`,
		`[`:                           `1:2: got the end of the text, want a JSON value`,
		`{"a":`:                       `1:6: got the end of the text, want a JSON value`,
		`"abc`:                        `1:1: string has no closing quote`,
		`"abc\`:                       `1:1: string has no closing quote`,
		`"abc\"`:                      `1:1: string has no closing quote`,
		"\"a\nb\"":                    `1:3: got the control character U+000A inside a string, want an escape`,
		`"\x41"`:                      `1:2: got the escape \x41, want one of \" \\ \/ \b \f \n \r \t \uXXXX`,
		`"\u12"`:                      `1:2: got the escape \u12, want one of \" \\ \/ \b \f \n \r \t \uXXXX`,
		`"\u+123"`:                    `1:2: got the escape \u+123, want one of \" \\ \/ \b \f \n \r \t \uXXXX`,
		`01`:                          `1:1: got '0', want a number without leading zeros`,
		`-`:                           `1:2: got the end of the text, want a number without leading zeros`,
		`-x`:                          `1:2: got 'x', want a number without leading zeros`,
		`1.`:                          `1:3: got the end of the text, want a digit after the point`,
		`.5`:                          `1:1: got '.', want a JSON value`,
		`1e`:                          `1:3: got the end of the text, want a digit in the exponent`,
		`1e+x`:                        `1:4: got 'x', want a digit in the exponent`,
		`+1`:                          `1:1: got '+', want a JSON value`,
		`[1e400]`:                     `1:2: number 1e400 is larger than a Lua number holds`,
		strings.Repeat("[", 129):      `1:129: nested deeper than 128 lists and records`,
	} {
		_, err := FromJSON(l, []byte(text))
		assert.EqualError(t, err, want, text)
	}
	deepest := strings.Repeat(`{"a":`, 127) + "[]" + strings.Repeat("}", 127)
	v, err := FromJSON(l, []byte(deepest))
	require.NoError(t, err)
	out, err := AppendJSON(nil, v, nil)
	require.NoError(t, err)
	assert.Equal(t, deepest, string(out))
}

func TestDecodedListStaysListWhenEmptied(t *testing.T) {
	l := newBridgeState(t)
	v, err := FromJSON(l, []byte(`{"a":[1,2],"b":{"c":1}}`))
	require.NoError(t, err)
	l.SetGlobal("v", v)
	require.NoError(t, l.DoString(`table.remove(v.a); v.a[1] = nil; v.b.c = nil`))
	out, err := AppendJSON(nil, v, nil)
	require.NoError(t, err)
	assert.Equal(t, `{"a":[],"b":{}}`, string(out))
}

func TestInts(t *testing.T) {
	l := newBridgeState(t)
	for _, claim := range []string{
		`int("9007199254740993") == int("9007199254740993")`,
		`int("9007199254740993") ~= int("9007199254740995")`,
		`int("9007199254740993") ~= "9007199254740993"`,
		`int("9007199254740993") ~= null`,
		`int("9007199254740993") < int("9007199254740995")`,
		`int("9007199254740993") <= int("9007199254740993")`,
		`int("99999999999999999") < int("100000000000000001")`,
		`int("-9007199254740993") < int("9007199254740993")`,
		`int("-9007199254740995") < int("-9007199254740993")`,
		`int("-100000000000000001") < int("-99999999999999999")`,
		`not (int("9007199254740993") < int("-9007199254740993"))`,
		`int("42") == 42 and int("0") == 0 and int("-0") == 0`,
		`getmetatable(int("9007199254740993")) == "int" and getmetatable(null) == "null"`,
		`not pcall(function() return int("9007199254740993") + 1 end)`,
		`not pcall(function() return int("9007199254740993") .. {} end)`,
		`not pcall(function() return int("9007199254740993") .. null end)`,
	} {
		assert.Equal(t, lua.LTrue, luaValue(t, l, claim), claim)
	}
	for _, text := range []string{"", "-", "1.5", "1e3", " 1", "0x10", "007", "--1", "+1", "١"} {
		_, err := NewInt(text)
		assert.ErrorContains(t, err, "want the decimal digits of an integer", text)
	}
}

// TestTextAgreesWithJSONText checks the string form against an independent writer.
func TestTextAgreesWithJSONText(t *testing.T) {
	for char := rune(0); char < 0x3000; char++ {
		text := "123" + string(char) + "45678901" // inside eight bytes and across them
		want, err := jsontext.AppendQuote(nil, text)
		require.NoError(t, err)
		got, err := AppendJSON(nil, lua.LString(text), nil)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	}
}

func TestStringsOfLargeTextAreTheirOwn(t *testing.T) {
	l := newBridgeState(t)
	long := strings.Repeat("x", shareLimit)
	v, err := FromJSON(l, []byte(`["kept é","`+long+`"]`))
	require.NoError(t, err)
	assert.Equal(t, lua.LString("kept é"), v.(*lua.LTable).RawGetInt(1))
	assert.Equal(t, lua.LString(long), v.(*lua.LTable).RawGetInt(2))
}

func TestNumbersReadBackAsThemselves(t *testing.T) {
	l := newBridgeState(t)
	for _, f := range []float64{1 << 53, 1<<53 + 2, 1 << 62, 1 << 63, -(1 << 63), 1 << 64, 1e21, 1e20, 123e18,
		math.MaxFloat64, math.SmallestNonzeroFloat64, math.Pi * 1e15, 4503599627370495.5, math.Nextafter(1<<63, 0)} {
		out, err := AppendJSON(nil, lua.LNumber(f), nil)
		require.NoError(t, err)
		back, err := FromJSON(l, out)
		require.NoError(t, err)
		assert.Equal(t, lua.LNumber(f), back, string(out))
	}
}
