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

// A member of the wrong type costs no answer: what is needed is read, the rest is
// left.
func TestOddMembers(t *testing.T) {
	message := func(members string) string {
		return `{"choices":[{"index":0,"finish_reason":"stop","message":{"content":"hi"` + members + `}}],"usage":{"prompt_tokens":10,"completion_tokens":5}}`
	}
	for name, body := range map[string]string{
		"reasoning":       message(`,"reasoning":{"t":"x"}`),
		"reasoning, list": message(`,"reasoning_content":["x"],"reasoning_details":{"a":1}`),
		"refusal":         message(`,"refusal":false`),
		"calls":           message(`,"tool_calls":{},"function_call":"none"`),
		"call":            message(`,"tool_calls":["x"]`),
		"error beside":    message(`},"error":{},"x":{"a":1`),
		"finish":          strings.Replace(message(""), `"stop"`, `{"reason":"stop"}`, 1),
		"index":           strings.Replace(message(""), `"index":0`, `"index":"0"`, 1),
		"empty error":     strings.Replace(message(""), `"choices"`, `"error":"","choices"`, 1),
		"no error":        strings.Replace(message(""), `"choices"`, `"error":false,"choices"`, 1),
		"other choices":   strings.Replace(message(""), `"choices":[`, `"choices":[null,7,{"index":1,"message":{"content":"no"}},`, 1),
		"usage as text":   strings.Replace(message(""), `"prompt_tokens":10`, `"prompt_tokens":10,"prompt_tokens_details":[],"completion_tokens_details":7`, 1),
		"floats":          strings.Replace(strings.Replace(message(""), ":10", ":10.0", 1), ":5}", `:5.5,"completion_tokens_details":{"reasoning_tokens":0.5}}`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			for _, reply := range []wiretest.Reply{{Raw: body}, {Type: "text/event-stream", Raw: "data: " + strings.ReplaceAll(body, `"message"`, `"delta"`) + "\n\ndata: [DONE]\n\n"}} {
				if name == "finish" && reply.Type != "" {
					continue // without the word for why a stream was cut
				}
				a, _ := answered(t, "vllm", reply)
				require.JSONEq(t, `[{"type":"text","text":"hi"}]`, string(a.Content))
				require.Equal(t, kernel.Usage{Input: 10, Output: 5}, a.Usage)
			}
		})
	}
	item := func(more string) string {
		return `{"status":"completed","output":[7,{"type":"message","content":[{"type":"output_text","text":"hi","annotations":7}],"phase":7},{"type":"function_call","call_id":7,"name":"fs_read","arguments":{}}],"usage":{"input_tokens":10.0,"output_tokens":5}` + more + `}`
	}
	for _, more := range []string{``, `,"error":""`, `,"incomplete_details":"none"`, `,"error":null`} {
		a, _ := answered(t, "openai", wiretest.Reply{Raw: item(more)}, asItems, whole)
		require.JSONEq(t, `[{"type":"item","provider":{"port":"openai","model":"gpt-4o","field":"item","raw":"7"}},{"type":"text","text":"hi"},
			{"type":"tool_use","id":"7","name":"fs.read","input":{}}]`, string(a.Content))
		require.Equal(t, kernel.Usage{Input: 10, Output: 5}, a.Usage)
	}
}

// Events are read as they come, whatever they are called and however they end.
func TestEventsOfAnyKind(t *testing.T) {
	said := func(delta, finish string) string {
		return `{"choices":[{"index":0,"delta":{` + delta + `},"finish_reason":` + finish + `}]}`
	}
	hi, stop, counted := "data: "+said(`"content":"hi"`, "null"), "data: "+said("", `"stop"`), `data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}}`
	all := strings.Join([]string{hi, stop, counted, "data: [DONE]"}, "\n\n")
	for name, c := range map[string]struct{ kind, body string }{
		"plain text":      {"text/plain", all + "\n\n"},
		"no type":         {"application/json", ": a comment\n\n" + all + "\n\n"},
		"byte order mark": {"text/event-stream", "\ufeff" + all + "\n\n"},
		"no last line":    {"text/event-stream", all},
		"CRLF":            {"text/event-stream", strings.ReplaceAll(all, "\n", "\r\n")},
		"no [DONE]":       {"text/event-stream", strings.Join([]string{hi, stop, counted}, "\n\n") + "\n\n"},
		"lines of data":   {"text/event-stream", strings.ReplaceAll(all, `"delta"`, "\ndata: \"delta\"")},
		"all of it whole": {"text/event-stream", `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5}}`},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := answered(t, "vllm", wiretest.Reply{Type: c.kind, Raw: c.body})
			require.JSONEq(t, `[{"type":"text","text":"hi"}]`, string(a.Content))
			require.Equal(t, kernel.Usage{Input: 10, Output: 5}, a.Usage)
		})
	}
	a, _ := answered(t, "vllm", wiretest.Reply{Type: "text/event-stream", Raw: hi + "\n\n" + stop + "\n\n"})
	require.JSONEq(t, `[{"type":"text","text":"hi"}]`, string(a.Content))
	require.Positive(t, a.Usage.Input, "nobody counted it, so it is estimated")
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
		{wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say("x")}, Stop: "STOP"}, "end_turn", nil},
		{wiretest.Reply{Blocks: []wiretest.Block{use}, Stop: "STOP"}, "tool_use", nil},
		{wiretest.Reply{Blocks: []wiretest.Block{use}, Stop: "MAX_TOKENS"}, "max_tokens", nil},
		{wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say("x")}, Stop: "model_length"}, "max_tokens", nil},
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
		"filter, large": {"openai", "content_filter", "", wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say("The")}, Stop: "SAFETY"}, nil},
		"filter, items": {"openai", "content_filter", "", wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say("The")}, Stop: "content_filter"}, []func(*port.Conf){asItems}},
		"prompt":        {"openai", "content_filter", "The prompt was filtered.", wiretest.Reply{Status: 400, Error: "content_filter", Say: "The prompt was filtered."}, nil},
		"flagged":       {"openai", "content_filter", "Invalid prompt", wiretest.Reply{Status: 400, Error: "invalid_prompt", Say: "Invalid prompt"}, nil},
		"flagged, late": {"openai", "content_filter", "Invalid prompt", wiretest.Reply{Raw: `{"status":"failed","error":{"code":"invalid_prompt","message":"Invalid prompt"}}`}, []func(*port.Conf){asItems, whole}},
		"relayed":       {"openrouter", "content_filter", "Provider returned error (Azure): no", relayed(`{"error":{"code":"content_filter","message":"no"}}`), nil},
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

// Each dialect has a variable for its address, and a key goes to a place that
// another names only when the conf says so.
func TestPlaces(t *testing.T) {
	for _, dialect := range openai.Dialects {
		s := wiretest.New(t)
		at := openai.As(dialect, port.Host{}).Place()
		require.Equal(t, strings.ToUpper(dialect)+"_BASE_URL", at.BaseVariable)
		require.NotEmpty(t, at.Base)
		env := map[string]string{at.BaseVariable: s.URL + "/" + dialect + "/v1", "OPENAI_API_KEY": "sk-of-openai", "OPENROUTER_API_KEY": "sk-of-router"}
		p := openai.As(dialect, port.Host{Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
		llm, err := p.Open(port.Conf{Model: "m"})
		require.NoError(t, err)
		s.Reply(wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say("hi")}})
		_, err = llm.Call(context.Background(), requestOf(ask), kernel.CallOptions{})
		require.NoError(t, err, dialect)
		want := ""
		if at.KeyVariable != "" {
			want = "Bearer " + env[at.KeyVariable]
		}
		require.Equal(t, want, s.Last().Header.Get("authorization"), dialect)
	}
	require.Equal(t, port.Place{KeyVariable: "OPENAI_API_KEY", BaseVariable: "OPENAI_BASE_URL", Base: "https://api.openai.com/v1"}, openai.New(port.Host{}).Place())
}
