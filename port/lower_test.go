package port_test

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
)

var update = flag.Bool("update", false, "rewrite testdata/*.golden")

// requestOf builds a request from the parts of a test.
func requestOf(messages ...string) *kernel.Request {
	req := &kernel.Request{}
	for _, m := range messages {
		req.Messages = append(req.Messages, json.RawMessage(m))
	}
	return req
}

func tools(req *kernel.Request, specs ...string) *kernel.Request {
	for _, s := range specs {
		req.Tools = append(req.Tools, json.RawMessage(s))
	}
	req.HasTools = true
	return req
}

const (
	ask       = `{"content":"fix the build","role":"user"}`
	callRead  = `{"content":[{"text":"reading","type":"text"},{"id":"toolu_1","input":{"path":"a.go"},"name":"fs.read","type":"tool_use"}],"role":"assistant"}`
	gotRead   = `{"content":[{"content":"package a","tool_use_id":"toolu_1","type":"tool_result"}],"role":"user"}`
	readTool  = `{"description":"reads a file","input_schema":{"properties":{"path":{"type":"string"}},"required":["path"],"type":"object"},"name":"fs.read"}`
	thinkRead = `{"content":[{"provider":{"model":"m","port":"anthropic"},"signature":"c2ln","thinking":"let me  see","type":"thinking"},{"id":"toolu_1","input":{},"name":"fs.read","type":"tool_use"}],"role":"assistant"}`
)

// lowered are the requests whose bodies stand in testdata.
var lowered = map[string]struct {
	req  *kernel.Request
	conf port.Conf
}{
	"loop":     {withSystem(tools(requestOf(ask, callRead, gotRead), readTool)), port.Conf{Model: "m"}},
	"no_tools": {requestOf(ask, callRead, gotRead), port.Conf{Model: "m"}},
	"careless": {requestOf(
		`{"content":"  ","role":"user"}`,
		`{"content":"I begin","role":"assistant"}`,
		`{"content":[{"id":"01J/1","input":null,"name":"","type":"tool_use"}],"role":"assistant"}`,
		`{"content":"meanwhile","role":"user"}`,
		`{"content":"stay calm","role":"system"}`,
		`{"content":[{"tool_use_id":"01J/1","is_error":true,"content":"","type":"tool_result"}],"role":"user"}`,
		`{"content":[{"id":"01J/1","input":"{\"a\":","name":"read","type":"tool_use"}],"role":"assistant"}`,
		`{"content":[{"tool_use_id":"01J/1","content":{"n":1},"type":"tool_result"}],"role":"user"}`,
		`{"content":"done","role":"assistant"}`,
	), port.Conf{Model: "m"}},
	"pictures": {requestOf(
		`{"content":[`+picture+`,`+textBlock("what is it?")+`],"role":"user"}`,
		`{"content":[{"id":"a","input":{},"name":"shot","type":"tool_use"}],"role":"assistant"}`,
		`{"content":[{"content":[`+textBlock("here")+`,`+picture+`],"tool_use_id":"a","type":"tool_result"},`+paper+`,`+linked+`],"role":"user"}`,
	), port.Conf{Model: "m"}},
	"documents": {requestOf(`{"content":[{"source":{"data":"plain","type":"text"},"title":"Plan","type":"document"},{"context":"of 2020","source":{"data":"aGk=","media_type":"application/pdf","type":"base64"},"title":"Plan","type":"document"}],"role":"user"}`), port.Conf{Model: "m"}},
	"thinking":  {tools(requestOf(ask, thinkRead, gotRead), readTool), port.Conf{Model: "m", Thinking: port.Thinking{On: true, BudgetTokens: 2000}}},
	"escalated": {
		tools(requestOf(ask, thinkRead, gotRead), readTool),
		port.Conf{Model: "stronger", Thinking: port.Thinking{On: true, BudgetTokens: 2000, Effort: "high"}},
	},
	"params": {
		overlaid(tools(requestOf(ask), readTool, `{"input_schema":{"oneOf":[{"properties":{"url":{"type":"string"}}},{"properties":{"path":{"type":"string"}}}]},"name":"open"}`)),
		port.Conf{Model: "m", MaxTokens: 100, Stop: []string{"END"}, ResponseFormat: json.RawMessage(`{"json_schema":{"name":"x","schema":{"type":"object"}},"type":"json_schema"}`)},
	},
}

func withSystem(req *kernel.Request) *kernel.Request {
	req.System = json.RawMessage(`"you fix builds"`)
	return req
}

// overlaid is a request whose params and filters win over its conf.
func overlaid(req *kernel.Request) *kernel.Request {
	req.Params = json.RawMessage(`{"max_tokens":200,"temperature":1,"top_p":0.5}`)
	req.Extra = map[string]json.RawMessage{"temperature": json.RawMessage("0.25"), "metadata": json.RawMessage(`{"user_id":"u"}`)}
	req.ToolChoice = json.RawMessage(`{"name":"fs.read"}`)
	return req
}

func TestLowerGolden(t *testing.T) {
	for name, c := range lowered {
		for _, d := range port.Dialects {
			t.Run(name+"_"+string(d), func(t *testing.T) {
				target, conf := port.Target{Dialect: d}, c.conf
				if d == port.Responses {
					conf.Stop = nil // it takes none
				}
				wire, err := port.Lower(target, c.req, conf)
				require.NoError(t, err)
				require.NoError(t, port.Check(target, wire.Body))
				compare(t, filepath.Join("testdata", name+"_"+string(d)+".golden"), wire.Body)
			})
		}
	}
}

// compare holds got against a golden file, which has one line a value.
func compare(t *testing.T, path string, got []byte) {
	var v any
	require.NoError(t, json.Unmarshal(got, &v))
	var pretty strings.Builder
	enc := json.NewEncoder(&pretty)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	require.NoError(t, enc.Encode(v))
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(pretty.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), pretty.String())
}

// The model's own thinking goes back byte for byte, two spaces and all, and
// another model never sees it.
func TestLowerKeepsOwnBytes(t *testing.T) {
	body := string(lower(t, port.Anthropic, requestOf(ask, thinkRead, gotRead), port.Conf{Model: "m"}).Body)
	require.Contains(t, body, `{"signature":"c2ln","thinking":"let me  see","type":"thinking"}`)
	for _, target := range []port.Target{{Dialect: port.OpenAI}, {Dialect: port.Anthropic, Port: "bedrock"}} {
		wire, err := port.Lower(target, requestOf(ask, thinkRead, gotRead), port.Conf{Model: "m"})
		require.NoError(t, err)
		require.NotContains(t, string(wire.Body), "let me")
	}
}

// Strange numbers and long integers in arguments reach the wire digit for digit.
func TestLowerKeepsNumbers(t *testing.T) {
	req := requestOf(ask, `{"content":[{"id":"a","input":{"n":9007199254740993,"x":1.10},"name":"f","type":"tool_use"}],"role":"assistant"}`,
		`{"content":[{"tool_use_id":"a","type":"tool_result"}],"role":"user"}`)
	require.Contains(t, string(lower(t, port.Anthropic, req, port.Conf{Model: "m"}).Body), `{"n":9007199254740993,"x":1.10}`)
	require.Contains(t, string(lower(t, port.OpenAI, req, port.Conf{Model: "m"}).Body), `"{\"n\":9007199254740993,\"x\":1.10}"`)
}

// A final assistant text stays for a model that continues it.
func TestLowerPrefill(t *testing.T) {
	req := requestOf(ask, `{"content":"{","role":"assistant"}`)
	for _, d := range port.Dialects {
		require.Contains(t, string(lower(t, d, req, port.Conf{Model: "m"}).Body), `Continue.`)
		wire, err := port.Lower(port.Target{Dialect: d, Prefill: true}, req, port.Conf{Model: "m"})
		require.NoError(t, err)
		require.NotContains(t, string(wire.Body), `Continue.`)
	}
}

func lower(t *testing.T, d port.Dialect, req *kernel.Request, conf port.Conf) port.Wire {
	wire, err := port.Lower(port.Target{Dialect: d}, req, conf)
	require.NoError(t, err)
	return wire
}

// The names that a provider refuses come back by their wire names. A tool whose
// name is legal keeps it, wherever it stands.
func TestLowerNames(t *testing.T) {
	long := strings.Repeat("x", 70)
	req := tools(requestOf(ask), `{"name":"srv.read/all"}`, `{"name":"a b"}`, `{"name":"a_b"}`, `{"name":"ü"}`, `{"name":"`+long+`"}`, `{"name":"`+long+`y"}`)
	wire := lower(t, port.OpenAI, req, port.Conf{Model: "m"})
	require.Equal(t, map[string]string{
		"srv_read_all": "srv.read/all", "a_b-2": "a b", "tool": "ü", long[:64]: long, long[:62] + "-2": long + "y",
	}, wire.Names)
	require.Equal(t, "a_b", wire.Name("a_b"))
	require.Equal(t, "a b", wire.Name("a_b-2"))
}

// Two calls whose ids would be one on the wire stay two, in their own pairs.
func TestLowerIDs(t *testing.T) {
	pair := func(id string) []string {
		return []string{
			`{"content":[{"id":"` + id + `","input":{},"name":"f","type":"tool_use"}],"role":"assistant"}`,
			`{"content":[{"content":"of ` + id + `","tool_use_id":"` + id + `","type":"tool_result"}],"role":"user"}`,
		}
	}
	req := requestOf(append(append(append([]string{ask}, pair("01J/1")...), pair("01J.1")...), pair("01J_1")...)...)
	body := string(lower(t, port.OpenAI, req, port.Conf{Model: "m"}).Body)
	require.Contains(t, body, `{"content":"of 01J/1","role":"tool","tool_call_id":"01J_1"}`)
	require.Contains(t, body, `{"content":"of 01J.1","role":"tool","tool_call_id":"01J_1-2"}`)
	require.Contains(t, body, `{"content":"of 01J_1","role":"tool","tool_call_id":"01J_1-3"}`)
}

func TestLowerRefuses(t *testing.T) {
	conf := port.Conf{Model: "m"}
	for _, c := range []struct {
		req  *kernel.Request
		conf port.Conf
		want string
	}{
		{requestOf(ask), port.Conf{}, `conf.model: got nothing, want the name of a model`},
		{requestOf(`7`), conf, `messages[0]: got 7, want { role, content }`},
		{requestOf(`{"content":"x","role":"asistant"}`), conf, `messages[0].role: got "asistant" (did you mean "assistant"?), want one of user, assistant, system`},
		{requestOf(ask, callRead), conf, `messages[1].content[1]: tool_use "toolu_1" has no tool_result in the next message, want every call answered before the next one`},
		{requestOf(ask, callRead, ask), conf, `messages[1].content[1]: tool_use "toolu_1" has no tool_result in the next message, want every call answered before the next one`},
		{requestOf(ask, callRead, ask, `{"content":"x","role":"assistant"}`, gotRead), conf, `messages[1].content[1]: tool_use "toolu_1" has no`},
		{requestOf(gotRead), conf, `messages[0].content[0]: tool_result "toolu_1" answers no tool_use of the message before it, want each call answered once`},
		{requestOf(ask, callRead, gotRead, gotRead), conf, `messages[3].content[0]: tool_result "toolu_1" answers no tool_use`},
		{requestOf(`{"content":[{"id":"a","input":{},"name":"x","type":"tool_use"}],"role":"user"}`), conf, `messages[0].content[0]: tool_use "a" in a user message, want it in an assistant message`},
		{requestOf(ask, `{"content":[{"tool_use_id":"a","type":"tool_result"}],"role":"assistant"}`), conf, `messages[1].content[0]: tool_result "a" answers no tool_use`},
		{tools(requestOf(ask), `"read"`), conf, `tools[0]: got a string, want { name, description?, input_schema? }`},
		{tools(requestOf(ask), `{"description":"x"}`), conf, `tools[0].name: got nothing, want the name of a tool`},
		{tools(requestOf(ask), `{"name":"a"}`, `{"name":"a"}`), conf, `tools: two tools are named "a", want each name once`},
		{tools(requestOf(ask), `{"input_schema":{"type":"array"},"name":"a"}`), conf, `tool "a": input_schema: got type "array", want "object": the arguments of a tool have names`},
		{tools(requestOf(ask), `{"input_schema":"object","name":"a"}`), conf, `tool "a": input_schema: got a string, want a JSON Schema of an object`},
		{choosing(`"any"`, readTool), conf, `request.tool_choice: got "any", want one of auto, none, required`},
		{choosing(`7`, readTool), conf, `request.tool_choice: got 7, want "auto", "none", "required" or { name }`},
		{choosing(`{"name":"fs.reed"}`, readTool), conf, `request.tool_choice: unknown tool "fs.reed" (did you mean "fs.read"?)`},
		{choosing(`{"tool":"x"}`, readTool), conf, `request.tool_choice: unknown key "tool"`},
		{choosing(`"required"`), conf, `request.tool_choice: got "required" and no tools, want a tool to choose`},
		{&kernel.Request{Params: json.RawMessage(`{"temprature":1}`)}, conf, `params: unknown key "temprature" (did you mean "temperature"?)`},
		{extra("max_tokens", `"x"`), conf, `request.max_tokens: got a string, want a whole number >= 1`},
		{extra("model", `"x"`), conf, `request.model: a filter set what the port writes itself, want it in params or on the device`},
		{extra("stream", `true`), conf, `request.stream: a filter set what the port writes itself`},
	} {
		for _, d := range port.Dialects {
			_, err := port.Lower(port.Target{Dialect: d}, c.req, c.conf)
			requireRefused(t, err, c.want)
		}
	}
	_, err := port.Lower(port.Target{Dialect: "gemini"}, requestOf(ask), conf)
	requireRefused(t, err, `dialect: got "gemini", want one of anthropic, openai, responses`)
}

func TestLowerRefusesAnthropicParams(t *testing.T) {
	for raw, want := range map[string]string{
		`{"seed":1}`:    `seed: got 1, want none: anthropic takes no seed`,
		`{"stop":"\n"}`: `stop: got "\n", want a stop sequence that is not only space: anthropic takes no other`,
		`{"thinking":{"budget_tokens":2000},"max_tokens":2000}`: `thinking.budget_tokens: got 2000, want at least 1024 and less than max_tokens 2000`,
		`{"thinking":{"budget_tokens":5}}`:                      `thinking.budget_tokens: got 5, want at least 1024 and less than max_tokens 4101`,
		`{"response_format":{"type":"json_object"}}`:            `response_format: got type "json_object", want "json_schema" with json_schema.schema: anthropic takes no other`,
	} {
		req := requestOf(ask)
		req.Params = json.RawMessage(raw)
		_, err := port.Lower(port.Target{Dialect: port.Anthropic}, req, port.Conf{Model: "m"})
		requireRefused(t, err, want)
	}
}

func requireRefused(t *testing.T, err error, want string) {
	t.Helper()
	var call *kernel.CallError
	require.True(t, errors.As(err, &call), "want %s, got %v", want, err)
	require.Equal(t, kernel.InvalidRequest, call.Kind)
	require.Contains(t, call.Message, want)
}

func choosing(choice string, specs ...string) *kernel.Request {
	req := tools(requestOf(ask), specs...)
	req.ToolChoice = json.RawMessage(choice)
	return req
}

func extra(key, value string) *kernel.Request {
	req := requestOf(ask)
	req.Extra = map[string]json.RawMessage{key: json.RawMessage(value)}
	return req
}
