package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/openai"
	"github.com/knl-run/knl/port/wiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-canary-0123456789"

// environment is a Host whose variables are those given.
func environment(vars map[string]string) port.Host {
	return port.Host{Env: func(name string) (string, bool) { v, ok := vars[name]; return v, ok }}
}

// at answers a port and the conf of a dialect that s serves.
func at(s *wiretest.Server, dialect string) (*openai.Port, port.Conf) {
	conf := port.Conf{Model: "gpt-4o", BaseURL: s.URL + "/" + dialect + "/v1", Dialect: dialect, APIKeyEnv: "KEY"}
	return openai.New(environment(map[string]string{"KEY": key})), conf
}

// requestOf builds a request from messages and tools.
func requestOf(messages ...string) *kernel.Request {
	req := &kernel.Request{}
	for _, m := range messages {
		req.Messages = append(req.Messages, json.RawMessage(m))
	}
	return req
}

func withTool(req *kernel.Request) *kernel.Request {
	req.Tools, req.HasTools = []json.RawMessage{json.RawMessage(readTool)}, true
	return req
}

const (
	ask      = `{"content":"go on","role":"user"}`
	readTool = `{"description":"reads","input_schema":{"properties":{"path":{"type":"string"}},"type":"object"},"name":"fs.read"}`
)

// call opens the model of conf and asks it.
func call(t *testing.T, p *openai.Port, conf port.Conf, req *kernel.Request) (*kernel.Answer, []kernel.Delta, error) {
	t.Helper()
	llm, err := p.Open(conf)
	require.NoError(t, err)
	var deltas []kernel.Delta
	a, err := llm.Call(context.Background(), req, kernel.CallOptions{OnDelta: func(d kernel.Delta) { deltas = append(deltas, d) }})
	return a, deltas, err
}

// answered asks a server of the dialect that has one reply.
func answered(t *testing.T, dialect string, reply wiretest.Reply, more ...func(*port.Conf)) (*kernel.Answer, []kernel.Delta) {
	t.Helper()
	s := wiretest.New(t).Reply(reply)
	p, conf := at(s, dialect)
	for _, change := range more {
		change(&conf)
	}
	a, deltas, err := call(t, p, conf, withTool(requestOf(ask)))
	require.NoError(t, err)
	return a, deltas
}

func failed(t *testing.T, dialect string, reply wiretest.Reply, more ...func(*port.Conf)) *kernel.CallError {
	t.Helper()
	s := wiretest.New(t).Reply(reply)
	p, conf := at(s, dialect)
	for _, change := range more {
		change(&conf)
	}
	a, _, err := call(t, p, conf, withTool(requestOf(ask)))
	require.Nil(t, a)
	var call *kernel.CallError
	require.True(t, errors.As(err, &call), "got %v", err)
	return call
}

func whole(c *port.Conf) { c.NoStream = true }
func asItems(c *port.Conf) {
	c.API, c.BaseURL = "responses", strings.Replace(c.BaseURL, "/openai/v1", "/v1", 1)
}

// joined answers the text of the deltas of a kind.
func joined(deltas []kernel.Delta, kind string) string {
	text := ""
	for _, d := range deltas {
		if d.Kind == kind {
			text += d.Text
		}
	}
	return text
}

func say(blocks ...wiretest.Block) wiretest.Reply { return wiretest.Reply{Blocks: blocks} }

// eachWay visits every way in which an answer may come: by every server, streamed and
// whole.
func eachWay(t *testing.T, visit func(t *testing.T, dialect string, more ...func(*port.Conf))) {
	for _, d := range openai.Dialects {
		t.Run(d, func(t *testing.T) { visit(t, d) })
		t.Run(d+"_whole", func(t *testing.T) { visit(t, d, whole) })
	}
	t.Run("responses", func(t *testing.T) { visit(t, "openai", asItems) })
	t.Run("responses_whole", func(t *testing.T) { visit(t, "openai", asItems, whole) })
}

func TestAnswers(t *testing.T) {
	eachWay(t, func(t *testing.T, dialect string, more ...func(*port.Conf)) {
		a, deltas := answered(t, dialect, say(
			wiretest.Say("Ünï ✓ 🙂 reading"),
			wiretest.Use("call_1", "fs_read", `{"path":"a.go","n":9007199254740993}`),
			wiretest.Use("call_2", "fs_read", ``),
		), more...)
		require.JSONEq(t, `[{"type":"text","text":"Ünï ✓ 🙂 reading"},
			{"type":"tool_use","id":"call_1","name":"fs.read","input":{"path":"a.go","n":9007199254740993}},
			{"type":"tool_use","id":"call_2","name":"fs.read","input":{}}]`, string(a.Content))
		require.Contains(t, string(a.Content), `"n":9007199254740993`)
		require.Equal(t, "tool_use", a.StopReason)
		require.False(t, a.Refused)
		require.Equal(t, kernel.Usage{Input: 10, Output: 5}, a.Usage)
		if len(more) == 0 || len(deltas) > 1 {
			require.Equal(t, "Ünï ✓ 🙂 reading", joined(deltas, "text"))
		}
	})
}

func TestAnswersNothing(t *testing.T) {
	eachWay(t, func(t *testing.T, dialect string, more ...func(*port.Conf)) {
		a, _ := answered(t, dialect, say(), more...)
		require.Equal(t, "[]", string(a.Content))
		require.Equal(t, "end_turn", a.StopReason)
	})
}

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

// What a model did goes before what its server says of it.
func TestStops(t *testing.T) {
	use := wiretest.Use("a", "fs_read", "{}")
	limited := func(c *port.Conf) { c.MaxTokens = 5 }
	for _, c := range []struct {
		reply wiretest.Reply
		want  string
		more  []func(*port.Conf)
	}{
		{wiretest.Reply{Blocks: []wiretest.Block{use}, Stop: "stop"}, "tool_use", nil},
		{wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say("x")}, Stop: "tool_calls"}, "end_turn", nil},
		{wiretest.Reply{Blocks: []wiretest.Block{use}, Stop: "length"}, "max_tokens", nil},
		{wiretest.Reply{Blocks: []wiretest.Block{use}, Stop: "function_call"}, "tool_use", nil},
		{wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say("x")}, Stop: "stop"}, "max_tokens", []func(*port.Conf){limited}},
		{wiretest.Reply{Blocks: []wiretest.Block{use}, Stop: "tool_calls"}, "max_tokens", []func(*port.Conf){limited}},
		{wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say("x")}, Stop: "bored"}, "bored", nil},
		{wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say("x")}, Mangle: func(_, data string) (string, string) {
			return "", strings.Replace(data, `"finish_reason":"stop","index":0,"logprobs":null,"stop_reason":null`, `"finish_reason":"stop","index":0,"logprobs":null,"stop_reason":"END"`, 1)
		}}, "stop_sequence", nil},
	} {
		a, _ := answered(t, "vllm", c.reply, c.more...)
		require.Equal(t, c.want, a.StopReason, "%+v", c.reply)
		require.False(t, a.Refused)
	}
	for reason, want := range map[string]string{"max_output_tokens": "max_tokens", "bored": "bored"} {
		a, _ := answered(t, "openai", wiretest.Reply{Blocks: []wiretest.Block{use}, Stop: reason}, asItems)
		require.Equal(t, want, a.StopReason)
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		dialect, kind, detail string
		reply                 wiretest.Reply
		more                  []func(*port.Conf)
	}{
		"model":         {"openai", "model", "I will not.", say(wiretest.Block{Raw: json.RawMessage(`{"refusal":"I will not."}`)}), nil},
		"model, whole":  {"openai", "model", "I will not.", say(wiretest.Block{Raw: json.RawMessage(`{"refusal":"I will not."}`)}), []func(*port.Conf){whole}},
		"model, items":  {"openai", "model", "I will not.", say(wiretest.Block{Raw: json.RawMessage(`{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"I will not."}]}`)}), []func(*port.Conf){asItems}},
		"filter":        {"openai", "content_filter", "", wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say("The")}, Stop: "content_filter"}, nil},
		"filter, items": {"openai", "content_filter", "", wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say("The")}, Stop: "content_filter"}, []func(*port.Conf){asItems}},
		"prompt":        {"openai", "content_filter", "The prompt was filtered.", wiretest.Reply{Status: 400, Error: "content_filter", Say: "The prompt was filtered."}, nil},
		"moderation": {"openrouter", "content_filter", "Your input was flagged violence", wiretest.Reply{Status: 403,
			Raw: `{"error":{"code":403,"message":"Your input was flagged","metadata":{"reasons":["violence"],"flagged_input":"…"}}}`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := answered(t, c.dialect, c.reply, c.more...)
			require.True(t, a.Refused)
			require.Equal(t, c.kind, a.RefusalKind)
			require.Equal(t, c.detail, a.RefusalDetail)
			require.Equal(t, "refusal", a.StopReason)
		})
	}
}
