package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/wiretest"
)

// Calls come together whatever a server leaves out.
func TestCallsInPieces(t *testing.T) {
	two := `[{"type":"tool_use","id":"a","name":"f","input":{"x":1}},{"type":"tool_use","id":"b","name":"g","input":{}}]`
	bare := `[{"type":"tool_use","name":"f","input":{"x":1}},{"type":"tool_use","name":"g","input":{}}]`
	for name, c := range map[string]struct {
		pieces []string
		want   string
	}{
		"no index":      {[]string{`{"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`, `{"function":{"arguments":"1}"}}`, `{"id":"b","function":{"name":"g","arguments":""}}`}, two},
		"index as null": {[]string{`{"index":null,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`, `{"id":"a","function":{"arguments":"1}"}}`, `{"id":"b","function":{"name":"g"}}`}, two},
		"all number 0":  {[]string{`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`, `{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}`}, two},
		"interleaved":   {[]string{`{"index":0,"id":"a","function":{"name":"f"}}`, `{"index":1,"id":"b","function":{"name":"g"}}`, `{"index":0,"function":{"arguments":"{\"x\":1}"}}`, `{"index":1,"function":{"arguments":"{}"}}`}, two},
		"id repeated":   {[]string{`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`, `{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}`, `{"index":1,"id":"b","function":{"name":"g"}}`}, two},
		"id comes late": {[]string{`{"index":0,"function":{"name":"f"}}`, `{"index":0,"id":"a","function":{"arguments":"{\"x\":1}"}}`, `{"index":1,"id":"b","function":{"name":"g"}}`}, two},
		"an object":     {[]string{`{"id":"a","function":{"name":"f","arguments":{"x":1}}}`, `{"id":"b","function":{"name":"g","arguments":null}}`}, two},
		"no id":         {[]string{`{"index":0,"function":{"name":"f","arguments":"{\"x\":1}"}}`, `{"index":1,"function":{"name":"g","arguments":"{}"}}`}, bare},
		"nothing":       {[]string{`{"function":{"name":"f","arguments":"{\"x\":1}"}}`, `{"function":{"name":"g","arguments":"{}"}}`}, bare},
		"name in two":   {[]string{`{"index":0,"function":{"name":"fs"}}`, `{"index":0,"function":{"name":"_read","arguments":"{}"}}`}, `[{"type":"tool_use","name":"fs.read","input":{}}]`},
		"no name":       {[]string{`{"index":0,"id":"a","function":{"arguments":"{}"}}`}, `[{"type":"tool_use","id":"a","name":"","input":{}}]`},
		"cut":           {[]string{`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`}, `[{"type":"tool_use","id":"a","name":"f","input":"{\"x\":"}]`},
		"key twice":     {[]string{`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1,\"x\":2}"}}`}, `[{"type":"tool_use","id":"a","name":"f","input":"{\"x\":1,\"x\":2}"}]`},
		"a list":        {[]string{`{"index":0,"id":"a","function":{"name":"f","arguments":"[1]"}}`}, `[{"type":"tool_use","id":"a","name":"f","input":[1]}]`},
		"only space":    {[]string{`{"index":0,"id":"a","function":{"name":"f","arguments":" \n"}}`}, `[{"type":"tool_use","id":"a","name":"f","input":{}}]`},
		"same id twice": {[]string{`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`, `{"index":1,"id":"a","function":{"name":"f","arguments":"{}"}}`}, `[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"a","name":"f","input":{}}]`},
	} {
		t.Run(name, func(t *testing.T) {
			var blocks []wiretest.Block
			for _, p := range c.pieces {
				blocks = append(blocks, wiretest.Block{Raw: json.RawMessage(`{"tool_calls":[` + p + `]}`)})
			}
			a, _ := answered(t, "vllm", wiretest.Reply{Blocks: blocks, Stop: "tool_calls"})
			require.JSONEq(t, c.want, string(a.Content))
			require.Equal(t, "tool_use", a.StopReason)
		})
	}
}

// tf are calls of t and u that differ in what the server left out.
const (
	tBare, uBare = `{"function":{"name":"t","arguments":""}}`, `{"function":{"name":"u","arguments":""}}`
	t1, t2       = `{"function":{"name":"t","arguments":"{\"a\":1}"}}`, `{"function":{"name":"t","arguments":"{\"a\":2}"}}`
	tNone        = `{"function":{"name":"t","arguments":"{}"}}`
	tCut, uDone  = `{"function":{"name":"t","arguments":"{\"a\":"}}`, `{"function":{"name":"u","arguments":"{\"b\":2}"}}`
)

// with answers a call with more members.
func with(members, call string) string { return `{` + members + `,` + call[1:] }

// A call is never made of two, and two are never made of one, whatever a server
// leaves out or writes twice. The pieces of a list are one chunk.
func TestCallsApart(t *testing.T) {
	same, zero := func(call string) string { return with(`"id":"c"`, call) }, func(call string) string { return with(`"index":0`, call) }
	used := func(id, name, input string) string {
		if id != "" {
			id = `"id":"` + id + `",`
		}
		return `{` + id + `"type":"tool_use","name":"` + name + `","input":` + input + `}`
	}
	twice := []string{used("c", "t", `{"a":1}`), used("c", "t", `{"a":2}`)}
	for name, c := range map[string]struct {
		chunks [][]string
		want   []string
	}{
		"no arguments, one list":     {[][]string{{tBare, uBare}}, []string{used("", "t", "{}"), used("", "u", "{}")}},
		"no arguments, same tool":    {[][]string{{tBare, tBare}}, []string{used("", "t", "{}"), used("", "t", "{}")}},
		"no arguments, two chunks":   {[][]string{{tBare}, {uBare}}, []string{used("", "t", "{}"), used("", "u", "{}")}},
		"no arguments, all number 0": {[][]string{{zero(with(`"id":""`, tBare))}, {zero(with(`"id":""`, uBare))}}, []string{used("", "t", "{}"), used("", "u", "{}")}},
		"no ids":                     {[][]string{{t1, t2}}, []string{used("", "t", `{"a":1}`), used("", "t", `{"a":2}`)}},
		"same id":                    {[][]string{{same(t1)}, {same(t2)}}, twice},
		"same id, one list":          {[][]string{{same(t1), same(t2)}}, twice},
		"same id and number":         {[][]string{{zero(same(t1))}, {zero(same(t2))}}, twice},
		"broken before another":      {[][]string{{tCut, uDone}}, []string{used("", "t", `"{\"a\":"`), used("", "u", `{"b":2}`)}},
		"broken, all number 0":       {[][]string{{zero(tCut)}, {zero(uDone)}}, []string{used("", "t", `"{\"a\":"`), used("", "u", `{"b":2}`)}},
		"name in each piece":         {[][]string{{zero(same(t1))}, {zero(`{"function":{"name":"t","arguments":" "}}`)}}, []string{used("c", "t", `{"a":1}`)}},
		"name in each piece, growing": {[][]string{{tCut}, {`{"function":{"name":"t","arguments":"1}"}}`}, {`{"function":{"name":"t","arguments":""}}`}},
			[]string{used("", "t", `{"a":1}`)}},
		"id in each piece":             {[][]string{{zero(with(`"id":"c"`, tCut))}, {zero(with(`"id":"d"`, `{"function":{"name":"t","arguments":"1}"}}`))}}, []string{used("c", "t", `{"a":1}`)}},
		"cut, and another":             {[][]string{{zero(with(`"id":"c"`, tCut))}, {zero(with(`"id":"d"`, t2))}}, []string{used("c", "t", `"{\"a\":"`), used("d", "t", `{"a":2}`)}},
		"cut, and another that begins": {[][]string{{zero(with(`"id":"c"`, tCut))}, {zero(with(`"id":"d"`, tBare))}, {zero(`{"function":{"arguments":"{\"a\":2}"}}`)}}, []string{used("c", "t", `"{\"a\":"`), used("d", "t", `{"a":2}`)}},
		"name behind the arguments":    {[][]string{{zero(`{"function":{"arguments":"{}"}}`)}, {zero(`{"function":{"name":"t"}}`)}}, []string{used("", "t", "{}")}},
		"number as text":               {[][]string{{with(`"index":"0"`, t1), with(`"index":"1"`, t2)}}, []string{used("", "t", `{"a":1}`), used("", "t", `{"a":2}`)}},
		"id as a number":               {[][]string{{with(`"index":0,"id":7`, t1)}}, []string{used("7", "t", `{"a":1}`)}},
		"another without arguments, 0": {[][]string{{zero(t1)}, {zero(uBare)}}, []string{used("", "t", `{"a":1}`), used("", "u", "{}")}},
		"another without, id blank":    {[][]string{{zero(with(`"id":""`, tNone))}, {zero(`{"id":"","function":{"name":"u"}}`)}}, []string{used("", "t", "{}"), used("", "u", "{}")}},
		"another without, no number":   {[][]string{{t1}, {uBare}}, []string{used("", "t", `{"a":1}`), used("", "u", "{}")}},
		"another, arguments behind it": {[][]string{{zero(t1)}, {zero(uBare)}, {zero(`{"function":{"arguments":"{\"b\":"}}`)}, {`{"index":0,"function":{"arguments":"2}"}}`}},
			[]string{used("", "t", `{"a":1}`), used("", "u", `{"b":2}`)}},
		"another, behind it, no number": {[][]string{{t1}, {uBare}, {`{"function":{"arguments":"{\"b\":2}"}}`}}, []string{used("", "t", `{"a":1}`), used("", "u", `{"b":2}`)}},
		"none, then the true ones":      {[][]string{{zero(same(tNone))}, {zero(`{"function":{"arguments":"{\"a\":"}}`)}, {zero(`{"function":{"arguments":"1}"}}`)}}, []string{used("c", "t", `{"a":1}`)}},
		"none, then with the name":      {[][]string{{zero(same(tNone))}, {zero(same(t1))}}, []string{used("c", "t", `{"a":1}`)}},
		"null, then the true ones":      {[][]string{{zero(`{"id":"c","function":{"name":"t","arguments":"null"}}`)}, {zero(`{"function":{"arguments":"{\"a\":1}"}}`)}}, []string{used("c", "t", `{"a":1}`)}},
		"blank, then the true ones":     {[][]string{{`{"id":"c","function":{"name":"t","arguments":" "}}`}, {same(t1)}}, []string{used("c", "t", `{"a":1}`)}},
		"none, then another's":          {[][]string{{tNone}, {t1}}, []string{used("", "t", "{}"), used("", "t", `{"a":1}`)}},
		"once more at the end":          {[][]string{{zero(same(tBare))}, {zero(`{"function":{"arguments":"{\"a\":1}"}}`)}, {zero(same(t1))}}, []string{used("c", "t", `{"a":1}`)}},
		"once more, spaced":             {[][]string{{zero(same(t1))}, {zero(same(`{"function":{"name":"t","arguments":"{ \"a\" : 1 }"}}`))}}, []string{used("c", "t", `{"a":1}`)}},
		"once more, only an id":         {[][]string{{same(t1)}, {same(t1)}}, []string{used("c", "t", `{"a":1}`)}},
		"once more, only a number":      {[][]string{{zero(t1)}, {zero(t1)}}, []string{used("", "t", `{"a":1}`)}},
		"once more, no name":            {[][]string{{zero(same(t1))}, {zero(`{"function":{"arguments":"{\"a\":1}"}}`)}}, []string{used("c", "t", `{"a":1}`)}},
		"two once more, all number 0":   {[][]string{{zero(same(t1))}, {zero(with(`"id":"d"`, uDone))}, {zero(same(t1)), zero(with(`"id":"d"`, uDone))}}, []string{used("c", "t", `{"a":1}`), used("d", "u", `{"b":2}`)}},
		"an inner object that is alike": {[][]string{{zero(same(tCut))}, {zero(same(tCut))}, {zero(`{"function":{"arguments":"1}}"}}`)}}, []string{used("c", "t", `{"a":{"a":1}}`)}},
		"a third, like the first": {[][]string{{zero(tBare)}, {zero(uBare)}, {zero(tBare)}, {zero(`{"function":{"arguments":"{\"a\":1}"}}`)}},
			[]string{used("", "t", "{}"), used("", "u", "{}"), used("", "t", `{"a":1}`)}},
		"two once more, only a number": {[][]string{{zero(t1)}, {zero(uDone)}, {zero(t1), zero(uDone)}}, []string{used("", "t", `{"a":1}`), used("", "u", `{"b":2}`)}},
		"two once more, numbered":      {[][]string{{zero(tBare)}, {with(`"index":1`, uBare)}, {zero(tBare), with(`"index":1`, uBare)}}, []string{used("", "t", "{}"), used("", "u", "{}")}},
		"the same twice, nothing else": {[][]string{{t1}, {t1}}, []string{used("", "t", `{"a":1}`), used("", "t", `{"a":1}`)}},
		"the same twice, one list":     {[][]string{{zero(t1), zero(t1)}}, []string{used("", "t", `{"a":1}`), used("", "t", `{"a":1}`)}},
		"pieces by id, all number 0":   {[][]string{{zero(same(tBare))}, {zero(with(`"id":"d"`, uBare))}, {zero(same(`{"function":{"arguments":"{\"a\":1}"}}`))}, {zero(with(`"id":"d"`, `{"function":{"arguments":"{\"b\":2}"}}`))}}, []string{used("c", "t", `{"a":1}`), used("d", "u", `{"b":2}`)}},
		"entries that are none":        {[][]string{{`null`, `7`, t1}}, []string{used("", "t", `{"a":1}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			var blocks []wiretest.Block
			for _, chunk := range c.chunks {
				blocks = append(blocks, wiretest.Block{Raw: json.RawMessage(`{"tool_calls":[` + strings.Join(chunk, ",") + `]}`)})
			}
			require.JSONEq(t, `[`+strings.Join(c.want, ",")+`]`, calledBy(t, wiretest.Reply{Blocks: blocks, Stop: "tool_calls"}))
		})
	}
	for name, c := range map[string]struct{ calls, want []string }{
		"no arguments": {[]string{tBare, uBare}, []string{used("", "t", "{}"), used("", "u", "{}")}},
		"same id":      {[]string{same(t1), same(t2)}, twice},
		"same call":    {[]string{same(t1), same(t1)}, []string{twice[0], twice[0]}},
		"same number":  {[]string{zero(t1), zero(t2)}, []string{used("", "t", `{"a":1}`), used("", "t", `{"a":2}`)}},
		"broken":       {[]string{tCut, uDone}, []string{used("", "t", `"{\"a\":"`), used("", "u", `{"b":2}`)}},
		"no name":      {[]string{t1, `{"function":{"arguments":"{}"}}`}, []string{used("", "t", `{"a":1}`), used("", "", "{}")}},
	} {
		t.Run("whole, "+name, func(t *testing.T) {
			body := `{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"tool_calls":[` + strings.Join(c.calls, ",") + `]}}]}`
			require.JSONEq(t, `[`+strings.Join(c.want, ",")+`]`, calledBy(t, wiretest.Reply{Raw: body}))
		})
	}
}

// calledBy answers what a model says that has the tools t and u.
func calledBy(t *testing.T, reply wiretest.Reply) string {
	t.Helper()
	s := wiretest.New(t).Reply(reply)
	p, conf := at(s, "vllm")
	req := requestOf(ask)
	req.Tools, req.HasTools = []json.RawMessage{json.RawMessage(`{"name":"t"}`), json.RawMessage(`{"name":"u"}`)}, true
	a, _, err := call(t, p, conf, req)
	require.NoError(t, err)
	require.Equal(t, "tool_use", a.StopReason)
	return string(a.Content)
}

// The call of a server that has no list of them is a call.
func TestFunctionCall(t *testing.T) {
	const want = `[{"type":"tool_use","name":"t","input":{"a":1}}]`
	var blocks []wiretest.Block
	for _, piece := range []string{`{"name":"t","arguments":""}`, `{"arguments":"{\"a\":"}`, `{"arguments":"1}"}`} {
		blocks = append(blocks, wiretest.Block{Raw: json.RawMessage(`{"function_call":` + piece + `}`)})
	}
	require.JSONEq(t, want, calledBy(t, wiretest.Reply{Blocks: blocks, Stop: "function_call"}))
	message := `{"content":null,"function_call":{"name":"t","arguments":"{\"a\":1}"}`
	for _, more := range []string{`}`, `,"tool_calls":[]}`, `,"tool_calls":[` + t1 + `]}`} {
		body := `{"choices":[{"finish_reason":"function_call","message":` + message + more + `}]}`
		require.JSONEq(t, want, calledBy(t, wiretest.Reply{Raw: body}))
	}
}

// Arguments that no log can hold close their call alone, and the rest of the
// answer stays.
func TestArgumentsNobodyCanHold(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 150) + "1" + strings.Repeat("}", 150)
	for name, arguments := range map[string]string{"deep": deep, "half a character": `{"a":"\ud800"}`, "key twice": `{"a":1,"a":2}`} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, dialect string, more ...func(*port.Conf)) {
				a, _ := answered(t, dialect, say(wiretest.Say("x"), wiretest.Use("a", "fs_read", arguments), wiretest.Use("b", "fs_read", "{}")), more...)
				require.JSONEq(t, `[{"type":"text","text":"x"},{"type":"tool_use","id":"a","name":"fs.read","input":`+quote(arguments)+`},
					{"type":"tool_use","id":"b","name":"fs.read","input":{}}]`, string(a.Content))
				require.Equal(t, kernel.Usage{Input: 10, Output: 5}, a.Usage)
			})
		})
	}
	held := strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100)
	a, _ := answered(t, "vllm", say(wiretest.Use("a", "fs_read", held)))
	require.Contains(t, string(a.Content), `"input":`+held)
}
