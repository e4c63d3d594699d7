package script_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/script"
)

var hello = &kernel.Request{Messages: []json.RawMessage{json.RawMessage(`{"content":"hello","role":"user"}`)}}

func parse(t *testing.T, raw string) []script.Reply {
	t.Helper()
	replies, err := script.ParseReplies(json.RawMessage(raw))
	require.NoError(t, err)
	return replies
}

func open(t *testing.T, s *script.Script) kernel.LLM {
	t.Helper()
	llm, err := s.Open(port.Conf{})
	require.NoError(t, err)
	return llm
}

// ask asks the call-th call of a script.
func ask(t *testing.T, replies string, call int) (*kernel.Answer, error) {
	t.Helper()
	return open(t, script.New(parse(t, replies))).Call(context.Background(), hello, kernel.CallOptions{Beat: "B", Call: call})
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct{ name, reply, content, stop string }{
		{"text", `{"text":"hi"}`, `[{"text":"hi","type":"text"}]`, "end_turn"},
		{"short call", `{"calls":[["read",{"path":"a"}]]}`, `[{"id":"call_1_1","input":{"path":"a"},"name":"read","type":"tool_use"}]`, "tool_use"},
		{"call without arguments", `{"calls":[["read"],["list",[]]]}`, `[{"id":"call_1_1","input":{},"name":"read","type":"tool_use"},{"id":"call_1_2","input":{},"name":"list","type":"tool_use"}]`, "tool_use"},
		{"text and call", `{"text":"so","calls":[{"name":"read"}]}`, `[{"text":"so","type":"text"},{"id":"call_1_1","input":{},"name":"read","type":"tool_use"}]`, "tool_use"},
		{"thinking", `{"text":"hi","thinking":"hm"}`, `[{"provider":{"model":"script","port":"script"},"thinking":"hm","type":"thinking"},{"text":"hi","type":"text"}]`, "end_turn"},
		{"cut text", `{"text":"h","truncated":true}`, `[{"text":"h","type":"text"}]`, "max_tokens"},
		{"cut call", `{"calls":[["read",{}]],"truncated":true}`, `[{"id":"call_1_1","input":{},"name":"read","type":"tool_use"}]`, "max_tokens"},
		{"nothing", `{"text":""}`, `[]`, "end_turn"},
		{"empty content", `{"content":{}}`, `[]`, "end_turn"},
		{"raw content", `{"content":[{"type":"odd"},7]}`, `[{"type":"odd"},7]`, "end_turn"},
		{"unknown stop", `{"stop":"weary","text":"x"}`, `[{"text":"x","type":"text"}]`, "weary"},
		{"no stop", `{"stop":"","text":"x"}`, `[{"text":"x","type":"text"}]`, ""},
		{"missing id", `{"calls":[{"id":"","name":"read"}]}`, `[{"input":{},"name":"read","type":"tool_use"}]`, "tool_use"},
		{"same id twice", `{"calls":[{"id":"a","name":"r"},{"id":"a","name":"r"}]}`, `[{"id":"a","input":{},"name":"r","type":"tool_use"},{"id":"a","input":{},"name":"r","type":"tool_use"}]`, "tool_use"},
		{"nameless", `{"calls":[{"name":""}]}`, `[{"id":"call_1_1","input":{},"type":"tool_use"}]`, "tool_use"},
		{"torn arguments", `{"calls":[["read","{\"path\":"]]}`, `[{"id":"call_1_1","input":"{\"path\":","name":"read","type":"tool_use"}]`, "tool_use"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := ask(t, `[`+c.reply+`]`, 0)
			require.NoError(t, err)
			require.Equal(t, c.content, string(a.Content))
			require.Equal(t, c.stop, a.StopReason)
			require.False(t, a.Refused)
		})
	}
}

func TestRefusal(t *testing.T) {
	a, err := ask(t, `[{"calls":[["rm",{}]],"refuse":"I will not"}]`, 0)
	require.NoError(t, err)
	require.True(t, a.Refused)
	require.Equal(t, "model", a.RefusalKind)
	require.Equal(t, "I will not", a.RefusalDetail)
	require.Equal(t, "refusal", a.StopReason)
	require.Contains(t, string(a.Content), "tool_use")
}

func TestFailure(t *testing.T) {
	_, err := ask(t, `[{"fail":{"kind":"rate_limited","retry_after":2.5,"status":429,"message":"slow down"}}]`, 0)
	require.Equal(t, &kernel.CallError{Kind: kernel.RateLimited, Message: "slow down", RetryAfter: 2.5, Status: 429}, err)
	_, err = ask(t, `[{"fail":{"kind":"server"}}]`, 0)
	require.Equal(t, &kernel.CallError{Kind: kernel.Server, Message: "the script fails this call"}, err)
}

func TestUsage(t *testing.T) {
	a, err := ask(t, `[{"text":"hello","thinking":"12345678"}]`, 0)
	require.NoError(t, err)
	require.Equal(t, kernel.Usage{Input: port.Estimate(hello), Output: int64(len(a.Content)+3) / 4, Thinking: 2}, a.Usage)
	a, err = ask(t, `[{"text":"x","usage":{"input_tokens":1,"output_tokens":5,"thinking_tokens":3,"cache_read_tokens":4,"cache_write_tokens":6}}]`, 0)
	require.NoError(t, err)
	require.Equal(t, kernel.Usage{Input: 1, Output: 5, Thinking: 3, CacheRead: 4, CacheWrite: 6}, a.Usage)
}

// The reply follows from the number of the call, not from what this process
// asked before: a resumed run goes on where the log ends.
func TestResumedRunGoesOn(t *testing.T) {
	const three = `[{"text":"one"},{"fail":{"kind":"server"}},{"calls":[["read"]]}]`
	a, err := ask(t, three, 2)
	require.NoError(t, err)
	require.Contains(t, string(a.Content), `"id":"call_3_1"`)
	again, err := ask(t, three, 2)
	require.NoError(t, err)
	require.Equal(t, a, again)
}

func TestPastTheLastReply(t *testing.T) {
	_, err := ask(t, `[{"text":"one"}]`, 1)
	var call *kernel.CallError
	require.True(t, errors.As(err, &call))
	require.Equal(t, kernel.Unknown, call.Kind)
	require.Equal(t, "script: beat B: call 2 of the session, want at most 1: the script has no more replies", call.Message)
	_, err = ask(t, `[]`, 0)
	require.ErrorContains(t, err, "want at most 0")
}

func TestDelayEndsWithTheCall(t *testing.T) {
	llm := open(t, script.New(parse(t, `[{"text":"late","delay":3600}]`)))
	ctx, cancel := context.WithCancel(context.Background())
	cancelled := make(chan error)
	go func() {
		_, err := llm.Call(ctx, hello, kernel.CallOptions{})
		cancelled <- err
	}()
	cancel()
	require.Equal(t, kernel.Cancelled, kindOf(t, <-cancelled))
	_, err := llm.Call(context.Background(), hello, kernel.CallOptions{Deadline: time.Unix(1, 0)})
	require.Equal(t, kernel.Transport, kindOf(t, err))
	_, err = llm.Call(ctx, hello, kernel.CallOptions{})
	require.Equal(t, kernel.Cancelled, kindOf(t, err))
}

func TestDelayPasses(t *testing.T) {
	a, err := ask(t, `[{"text":"late","delay":0.001}]`, 0)
	require.NoError(t, err)
	require.Contains(t, string(a.Content), "late")
}

func kindOf(t *testing.T, err error) kernel.CallKind {
	t.Helper()
	var call *kernel.CallError
	require.True(t, errors.As(err, &call), "got %v", err)
	return call.Kind
}

func TestDeltas(t *testing.T) {
	var got []kernel.Delta
	llm := open(t, script.New(parse(t, `[{"text":"hi","thinking":"hm","calls":[["read"]]}]`)))
	_, err := llm.Call(context.Background(), hello, kernel.CallOptions{OnDelta: func(d kernel.Delta) { got = append(got, d) }})
	require.NoError(t, err)
	require.Equal(t, []kernel.Delta{{Kind: "thinking", Text: "hm"}, {Kind: "text", Text: "hi"}}, got)
}

func TestFunc(t *testing.T) {
	s := script.Func(func(_ context.Context, req *kernel.Request, opts kernel.CallOptions) (script.Reply, error) {
		switch opts.Call {
		case 0:
			return script.Reply{Text: opts.Session + string(req.Messages[0])}, nil
		case 1:
			return script.Reply{}, &kernel.CallError{Kind: kernel.Auth, Message: "no key"}
		}
		return script.Reply{}, errors.New("no idea")
	})
	llm := open(t, s)
	a, err := llm.Call(context.Background(), hello, kernel.CallOptions{Session: "S"})
	require.NoError(t, err)
	require.Contains(t, string(a.Content), `S{`)
	_, err = llm.Call(context.Background(), hello, kernel.CallOptions{Call: 1})
	require.Equal(t, kernel.Auth, kindOf(t, err))
	_, err = llm.Call(context.Background(), hello, kernel.CallOptions{Call: 2})
	require.Equal(t, kernel.Unknown, kindOf(t, err))
	require.ErrorContains(t, err, "no idea")
}

// Sessions share a script and each starts at its first reply.
func TestSessionsShareAScript(t *testing.T) {
	llm := open(t, script.New(parse(t, `[{"text":"one"},{"text":"two"}]`)))
	var wg sync.WaitGroup
	answers := make([][]string, 8)
	for i := range answers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for call := range 2 {
				a, err := llm.Call(context.Background(), hello, kernel.CallOptions{Call: call})
				if err == nil {
					answers[i] = append(answers[i], string(a.Content))
				}
			}
		}()
	}
	wg.Wait()
	for _, got := range answers {
		require.Equal(t, []string{`[{"text":"one","type":"text"}]`, `[{"text":"two","type":"text"}]`}, got)
	}
}

func TestPort(t *testing.T) {
	s := script.New(nil)
	ctx := context.Background()
	n, err := s.Count(ctx, hello, port.Conf{})
	require.NoError(t, err)
	require.Equal(t, port.Estimate(hello), n)
	require.NoError(t, s.Health(ctx, port.Conf{}))
	for _, c := range []struct {
		conf port.Conf
		want port.Profile
	}{
		{port.Conf{}, port.Profile{ContextWindow: 200_000, MaxOutput: 8192}},
		{port.Conf{ContextWindow: 400}, port.Profile{ContextWindow: 400, MaxOutput: 100}},
		{port.Conf{ContextWindow: 400, MaxTokens: 300}, port.Profile{ContextWindow: 400, MaxOutput: 300}},
	} {
		got, err := s.Profile(ctx, c.conf)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
}

func TestParseRefuses(t *testing.T) {
	for raw, want := range map[string]string{
		`"hi"`:                                    `replies: got a string, want a list of replies`,
		`{"text":"hi"}`:                           `replies: got an object, want a list of replies`,
		`null`:                                    `replies: got null, want a list of replies`,
		`[{"text":"a"},"b"]`:                      `replies[2]: got a string, want an object`,
		`[{}]`:                                    `replies[1]: says nothing, want one of text, calls, content, refuse, fail, truncated, stop`,
		`[{"thinking":"hm"}]`:                     `replies[1]: says nothing, want one of text, calls, content, refuse, fail, truncated, stop`,
		`[{"txt":"a"}]`:                           `replies[1]: unknown key "txt" (did you mean "text"?)`,
		`[{"text":1}]`:                            `replies[1].text: got 1, want a string`,
		`[{"text":"a"},{"calls":["read"]}]`:       `replies[2].calls[1]: got a string, want { name, args? }`,
		`[{"calls":"read"}]`:                      `replies[1].calls: got a string, want a list of { name, args? }`,
		`[{"calls":[[]]}]`:                        `replies[1].calls[1]: got a list of 0, want { name, args? }`,
		`[{"calls":[["a",{},1]]}]`:                `replies[1].calls[1]: got a list of 3, want { name, args? }`,
		`[{"calls":[[{},"a"]]}]`:                  `replies[1].calls[1]: got a list of 2, want { name, args? }`,
		`[{"calls":[["a",[1]]]}]`:                 `replies[1].calls[1].args: got a list, want an object, or a string for arguments that are no JSON`,
		`[{"calls":[["a",7]]}]`:                   `replies[1].calls[1].args: got 7, want an object, or a string for arguments that are no JSON`,
		`[{"calls":[{"args":{}}]}]`:               `replies[1].calls[1].name: got nothing, want the name of a tool`,
		`[{"calls":[{"name":"a","arg":{}}]}]`:     `replies[1].calls[1]: unknown key "arg" (did you mean "args"?)`,
		`[{"calls":[{"name":"a","id":1}]}]`:       `replies[1].calls[1].id: got 1, want a string`,
		`[{"refuse":""}]`:                         `replies[1].refuse: got an empty text, want the words of the refusal`,
		`[{"fail":"server"}]`:                     `replies[1].fail: got a string, want an object`,
		`[{"fail":{}}]`:                           `replies[1].fail.kind: got nothing, want one of transport, rate_limited, overloaded, server, auth, invalid_request, context_overflow, cancelled, unknown`,
		`[{"fail":{"kind":"rate_limit"}}]`:        `replies[1].fail.kind: got "rate_limit" (did you mean "rate_limited"?), want one of transport, rate_limited, overloaded, server, auth, invalid_request, context_overflow, cancelled, unknown`,
		`[{"fail":{"kind":"server","after":1}}]`:  `replies[1].fail: unknown key "after" (known: kind, message, retry_after, status)`,
		`[{"fail":{"kind":"server"},"text":"x"}]`: `replies[1].text: stands beside fail, want a call that fails or one that answers`,
		`[{"content":[],"text":"x"}]`:             `replies[1].text: stands beside content, want one of the two`,
		`[{"content":"x"}]`:                       `replies[1].content: got a string, want a list of blocks`,
		`[{"delay":-1,"text":"x"}]`:               `replies[1].delay: got -1, want a number >= 0`,
		`[{"delay":1e9,"text":"x"}]`:              `replies[1].delay: got 1e9, want seconds, at most 86400`,
		`[{"truncated":"yes","text":"x"}]`:        `replies[1].truncated: got a string, want true or false`,
		`[{"text":"x","usage":{"input":1}}]`:      `replies[1].usage: unknown key "input"`,
		`[{"text":"x","usage":{"output_tokens":1,"thinking_tokens":2}}]`: `replies[1].usage.thinking_tokens: got 2, want at most output_tokens, 1: thinking is a part of it`,
	} {
		_, err := script.ParseReplies(json.RawMessage(raw))
		require.Error(t, err, raw)
		require.True(t, strings.HasPrefix(err.Error(), want), "%s\ngot  %s\nwant %s", raw, err, want)
	}
	_, err := script.ParseReply(nil)
	require.EqualError(t, err, "reply: got nothing, want a reply")
	_, err = script.ParseReply(json.RawMessage(`"x"`))
	require.EqualError(t, err, "reply: got a string, want an object")
}

// What the script says goes back to it and to every provider.
func TestAnswersLower(t *testing.T) {
	a, err := ask(t, `[{"text":"so","thinking":"hm","calls":[["read",{"p":1}],["list"]]}]`, 0)
	require.NoError(t, err)
	req := &kernel.Request{Messages: []json.RawMessage{
		hello.Messages[0],
		json.RawMessage(`{"content":` + string(a.Content) + `,"role":"assistant"}`),
		json.RawMessage(`{"content":[{"content":"1","tool_use_id":"call_1_1","type":"tool_result"},{"content":"","tool_use_id":"call_1_2","type":"tool_result"}],"role":"user"}`),
	}}
	for _, d := range port.Dialects {
		wire, err := port.Lower(port.Target{Dialect: d}, req, port.Conf{Model: "m"})
		require.NoError(t, err)
		require.NoError(t, port.Check(port.Target{Dialect: d}, wire.Body))
		require.NotContains(t, string(wire.Body), "hm")
	}
}
