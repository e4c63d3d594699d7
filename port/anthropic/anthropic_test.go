package anthropic_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/anthropic"
	"github.com/knl-run/knl/port/wiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const theKey = "sk-test-0123456789"

// rig is a port that talks to a server of its own.
type rig struct {
	t       *testing.T
	server  *wiretest.Server
	port    *anthropic.Port
	secrets []string
	warned  []string
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, server: wiretest.New(t)}
	r.port = anthropic.New(port.Host{
		Env: func(name string) (string, bool) {
			v, ok := map[string]string{"ANTHROPIC_API_KEY": theKey, "ANTHROPIC_BASE_URL": r.server.URL}[name]
			return v, ok
		},
		Secret: func(v string) {
			if !slices.Contains(r.secrets, v) {
				r.secrets = append(r.secrets, v)
			}
		},
		Warn: func(text string) { r.warned = append(r.warned, text) },
	})
	return r
}

func (r *rig) call(conf port.Conf, req *kernel.Request, on func(kernel.Delta)) (*kernel.Answer, error) {
	r.t.Helper()
	return r.callWith(context.Background(), conf, req, kernel.CallOptions{OnDelta: on})
}

func (r *rig) callWith(ctx context.Context, conf port.Conf, req *kernel.Request, opts kernel.CallOptions) (*kernel.Answer, error) {
	r.t.Helper()
	if conf.Model == "" {
		conf.Model = "claude-opus-4-7"
	}
	llm, err := r.port.Open(conf)
	require.NoError(r.t, err)
	return llm.Call(ctx, req, opts)
}

// body answers a top-level member of the last body that was sent.
func (r *rig) body(key string) string {
	var top map[string]json.RawMessage
	require.NoError(r.t, json.Unmarshal(r.server.Last().Body, &top))
	return string(top[key])
}

func hello() *kernel.Request {
	return &kernel.Request{Messages: []json.RawMessage{json.RawMessage(`{"content":"hello","role":"user"}`)}}
}

func failure(t *testing.T, err error) *kernel.CallError {
	t.Helper()
	var call *kernel.CallError
	require.True(t, errors.As(err, &call), "%v", err)
	return call
}

// bothWays runs a test with a stream and without.
func bothWays(t *testing.T, f func(t *testing.T, conf port.Conf)) {
	for name, conf := range map[string]port.Conf{"stream": {}, "whole": {NoStream: true}} {
		t.Run(name, func(t *testing.T) { f(t, conf) })
	}
}

const bag = `{"provider":{"model":"claude-opus-4-7","port":"anthropic"},`

func TestAnswer(t *testing.T) {
	search := `{"id":"srvtoolu_1","input":{"query":"x"},"name":"web_search","type":"server_tool_use"}`
	found := `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","encrypted_content":"<&>ü","z":1,"a":2}]}`
	cited := `{"type":"text","text":"so","citations":[{"type":"char_location","cited_text":"c"}]}`
	for name, c := range map[string]struct {
		blocks  []wiretest.Block
		content string
		stop    string
	}{
		"text":                       {[]wiretest.Block{wiretest.Say("Grüße <b>&amp; 🙂")}, `[{"text":"Grüße <b>&amp; 🙂","type":"text"}]`, "end_turn"},
		"nothing":                    {nil, `[]`, "end_turn"},
		"empty text":                 {[]wiretest.Block{wiretest.Say("")}, `[{"text":"","type":"text"}]`, "end_turn"},
		"a call":                     {[]wiretest.Block{wiretest.Use("toolu_1", "read", `{"path":"a/b","n":12345678901234567890}`)}, `[{"id":"toolu_1","input":{"path":"a/b","n":12345678901234567890},"name":"read","type":"tool_use"}]`, "tool_use"},
		"a call without arguments":   {[]wiretest.Block{wiretest.Use("toolu_1", "now", "")}, `[{"id":"toolu_1","input":{},"name":"now","type":"tool_use"}]`, "tool_use"},
		"a call without an id":       {[]wiretest.Block{wiretest.Use("", "now", "{}")}, `[{"input":{},"name":"now","type":"tool_use"}]`, "tool_use"},
		"two calls with one id":      {[]wiretest.Block{wiretest.Use("a", "x", "{}"), wiretest.Use("a", "y", "{}")}, `[{"id":"a","input":{},"name":"x","type":"tool_use"},{"id":"a","input":{},"name":"y","type":"tool_use"}]`, "tool_use"},
		"cut arguments":              {[]wiretest.Block{wiretest.Use("a", "x", `{"path":"a`)}, `[{"id":"a","input":"{\"path\":\"a","name":"x","type":"tool_use"}]`, "tool_use"},
		"arguments with a key twice": {[]wiretest.Block{wiretest.Use("a", "x", `{"p":1,"p":2}`)}, `[{"id":"a","input":"{\"p\":1,\"p\":2}","name":"x","type":"tool_use"}]`, "tool_use"},
		"arguments that are a list":  {[]wiretest.Block{wiretest.Use("a", "x", `[1]`)}, `[{"id":"a","input":[1],"name":"x","type":"tool_use"}]`, "tool_use"},
		"a mapped name":              {[]wiretest.Block{wiretest.Use("a", "fs_read", `{}`)}, `[{"id":"a","input":{},"name":"fs.read","type":"tool_use"}]`, "tool_use"},
		"thinking": {[]wiretest.Block{wiretest.Think("hm <ü>", "c2ln+/=="), wiretest.Say("x")},
			`[` + bag + `"signature":"c2ln+/==","thinking":"hm <ü>","type":"thinking"},{"text":"x","type":"text"}]`, "end_turn"},
		"thinking that is not shown": {[]wiretest.Block{wiretest.Think("", "c2ln"), wiretest.Say("x")},
			`[` + bag + `"signature":"c2ln","thinking":"","type":"thinking"},{"text":"x","type":"text"}]`, "end_turn"},
		"redacted thinking":  {[]wiretest.Block{{Raw: json.RawMessage(`{"type":"redacted_thinking","data":"eA=="}`)}}, `[` + bag + `"type":"redacted_thinking","data":"eA=="}]`, "end_turn"},
		"the server's tools": {[]wiretest.Block{{Raw: json.RawMessage(search)}, {Raw: json.RawMessage(found)}, {Raw: json.RawMessage(cited)}}, `[` + bag + search[1:] + `,` + bag + found[1:] + `,` + bag + cited[1:] + `]`, "end_turn"},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, conf port.Conf) {
				r := newRig(t)
				r.server.Reply(wiretest.Reply{Blocks: c.blocks})
				req := hello()
				req.Tools = []json.RawMessage{json.RawMessage(`{"name":"fs.read"}`), json.RawMessage(`{"name":"read"}`)}
				a, err := r.call(conf, req, nil)
				require.NoError(t, err)
				require.True(t, json.Valid(a.Content), "%s", a.Content)
				if strings.Contains(c.content, `"signature"`) { // a whole answer keeps the server's order of members
					require.JSONEq(t, c.content, string(a.Content))
				} else {
					require.Equal(t, c.content, string(a.Content))
				}
				require.Equal(t, c.stop, a.StopReason)
				require.False(t, a.Refused)
				require.Equal(t, []string{theKey}, r.secrets)
			})
		})
	}
}

// What the model thought goes back as it came, to the model that thought it.
func TestThinkingGoesBack(t *testing.T) {
	bothWays(t, func(t *testing.T, conf port.Conf) {
		r := newRig(t)
		r.server.Reply(wiretest.Reply{Blocks: []wiretest.Block{wiretest.Think("hm", "c2ln"), wiretest.Use("a", "read", "{}")}},
			wiretest.Reply{}, wiretest.Reply{})
		req := hello()
		a, err := r.call(conf, req, nil)
		require.NoError(t, err)
		req.Messages = append(req.Messages, json.RawMessage(`{"content":`+string(a.Content)+`,"role":"assistant"}`),
			json.RawMessage(`{"content":[{"content":"ok","tool_use_id":"a","type":"tool_result"}],"role":"user"}`))
		_, err = r.call(conf, req, nil)
		require.NoError(t, err)
		var messages []struct{ Content []json.RawMessage }
		require.NoError(t, json.Unmarshal([]byte(r.body("messages")), &messages))
		require.JSONEq(t, `{"signature":"c2ln","thinking":"hm","type":"thinking"}`, string(messages[1].Content[0]))

		conf.Model = "claude-opus-4-6"
		_, err = r.call(conf, req, nil)
		require.NoError(t, err)
		require.NotContains(t, r.body("messages"), "thinking")
	})
}

func TestDeltas(t *testing.T) {
	bothWays(t, func(t *testing.T, conf port.Conf) {
		r := newRig(t)
		r.server.Reply(wiretest.Reply{Chunk: 3, Blocks: []wiretest.Block{wiretest.Think("think ü first", "c2ln"), wiretest.Say("then 🙂 say"), wiretest.Use("a", "x", `{"text":"no delta"}`)}})
		heard, pieces := map[string]string{}, 0
		_, err := r.call(conf, hello(), func(d kernel.Delta) { heard[d.Kind] += d.Text; pieces++ })
		require.NoError(t, err)
		require.Equal(t, map[string]string{"thinking": "think ü first", "text": "then 🙂 say"}, heard)
		require.Equal(t, map[bool]bool{true: pieces == 2, false: pieces > 4}[conf.NoStream], true, "%d", pieces)
	})
}

func TestStops(t *testing.T) {
	use := []wiretest.Block{wiretest.Use("a", "x", `{}`)}
	for name, c := range map[string]struct {
		reply wiretest.Reply
		want  string
	}{
		"the limit":                        {wiretest.Reply{Stop: "max_tokens"}, "max_tokens"},
		"a stop sequence":                  {wiretest.Reply{Stop: "stop_sequence"}, "stop_sequence"},
		"a pause":                          {wiretest.Reply{Stop: "pause_turn"}, "pause_turn"},
		"a full window":                    {wiretest.Reply{Stop: "model_context_window_exceeded", Blocks: use}, "max_tokens"},
		"an unknown word":                  {wiretest.Reply{Stop: "bored"}, "bored"},
		"calls under end_turn":             {wiretest.Reply{Stop: "end_turn", Blocks: use}, "tool_use"},
		"tool_use without calls":           {wiretest.Reply{Stop: "tool_use"}, "end_turn"},
		"tool_use at the limit":            {wiretest.Reply{Blocks: use, Usage: wiretest.Usage{Output: 50}}, "max_tokens"},
		"end_turn at the limit":            {wiretest.Reply{Usage: wiretest.Usage{Output: 50}}, "max_tokens"},
		"end_turn one token below the end": {wiretest.Reply{Usage: wiretest.Usage{Output: 49}}, "end_turn"},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, conf port.Conf) {
				r := newRig(t)
				r.server.Reply(c.reply)
				conf.MaxTokens = 50
				a, err := r.call(conf, hello(), nil)
				require.NoError(t, err)
				require.Equal(t, c.want, a.StopReason)
			})
		})
	}
}

func TestRefusals(t *testing.T) {
	bothWays(t, func(t *testing.T, conf port.Conf) {
		r := newRig(t)
		r.server.Reply(wiretest.Reply{Stop: "refusal", Blocks: []wiretest.Block{wiretest.Say("No")}}, wiretest.Reply{Stop: "refusal", Say: "not that"})
		a, err := r.call(conf, hello(), nil)
		require.NoError(t, err)
		require.Equal(t, []any{true, "model", "", "refusal"}, []any{a.Refused, a.RefusalKind, a.RefusalDetail, a.StopReason})
		a, err = r.call(conf, hello(), nil)
		require.NoError(t, err)
		require.Equal(t, []any{true, "content_filter", "not that"}, []any{a.Refused, a.RefusalKind, a.RefusalDetail})
	})
}

func TestUsage(t *testing.T) {
	for name, c := range map[string]struct {
		sent wiretest.Usage
		want kernel.Usage
	}{
		"plain":                   {wiretest.Usage{Input: 10, Output: 5}, kernel.Usage{Input: 10, Output: 5}},
		"read from a cache":       {wiretest.Usage{Input: 3, Output: 5, CacheRead: 900}, kernel.Usage{Input: 3, Output: 5, CacheRead: 900}},
		"written to a cache":      {wiretest.Usage{Input: 3, Output: 5, CacheRead: 900, CacheWrite: 70}, kernel.Usage{Input: 3, Output: 5, CacheRead: 900, CacheWrite: 70}},
		"thought":                 {wiretest.Usage{Input: 3, Output: 50, Thinking: 40}, kernel.Usage{Input: 3, Output: 50, Thinking: 40}},
		"thought more than said":  {wiretest.Usage{Input: 3, Output: 50, Thinking: 60}, kernel.Usage{Input: 3, Output: 50, Thinking: 50}},
		"counters that are wrong": {wiretest.Usage{Input: -3, Output: 5, CacheRead: -1}, kernel.Usage{Output: 5}},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, conf port.Conf) {
				r := newRig(t)
				r.server.Reply(wiretest.Reply{Usage: c.sent})
				a, err := r.call(conf, hello(), nil)
				require.NoError(t, err)
				require.Equal(t, c.want, a.Usage)
			})
		})
	}
}

// What the end of a stream does not repeat, its beginning said.
func TestUsageOfAShortEnd(t *testing.T) {
	r := newRig(t)
	r.server.Reply(wiretest.Reply{Usage: wiretest.Usage{Input: 7, Output: 5, CacheRead: 9}, Mangle: func(name, data string) (string, string) {
		if name == "message_delta" {
			return name, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":11}}`
		}
		return name, data
	}})
	a, err := r.call(port.Conf{}, hello(), nil)
	require.NoError(t, err)
	require.Equal(t, kernel.Usage{Input: 7, Output: 11, CacheRead: 9}, a.Usage)
}

func TestALargeDelta(t *testing.T) {
	r := newRig(t)
	text := strings.Repeat("0123456789ü", 1<<20)[:10<<20]
	r.server.Reply(wiretest.Reply{Chunk: len(text), Blocks: []wiretest.Block{wiretest.Say(text)}})
	a, err := r.call(port.Conf{}, hello(), nil)
	require.NoError(t, err)
	require.Greater(t, len(a.Content), 9<<20)
}

func TestCancel(t *testing.T) {
	for name, reply := range map[string]wiretest.Reply{
		"before the first byte": {Delay: time.Minute},
		"in a stream":           {Blocks: []wiretest.Block{wiretest.Say("hello")}, Never: true},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, conf port.Conf) {
				if conf.NoStream {
					reply = wiretest.Reply{Delay: time.Minute}
				}
				r := newRig(t)
				r.server.Reply(reply)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				time.AfterFunc(30*time.Millisecond, cancel)
				begun := time.Now()
				a, err := r.callWith(ctx, conf, hello(), kernel.CallOptions{})
				require.Nil(t, a)
				require.Equal(t, kernel.Cancelled, failure(t, err).Kind)
				require.Less(t, time.Since(begun), 5*time.Second)
			})
		})
	}
}

func TestEnds(t *testing.T) {
	for name, reply := range map[string]wiretest.Reply{
		"a server that says nothing": {Delay: time.Minute},
		"a stream without an end":    {Blocks: []wiretest.Block{wiretest.Say("hello")}, Never: true},
		"a stream that is too slow":  {Blocks: []wiretest.Block{wiretest.Say("hello")}, Pace: 40 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.server.Reply(reply, reply)
			a, err := r.call(port.Conf{Timeout: 0.1}, hello(), nil)
			require.Nil(t, a)
			require.Equal(t, &kernel.CallError{Kind: kernel.Transport, Message: "no whole answer within 0.1 seconds: conf.timeout sets how long a call may take"}, failure(t, err))
			a, err = r.callWith(context.Background(), port.Conf{}, hello(), kernel.CallOptions{Deadline: time.Now().Add(100 * time.Millisecond)})
			require.Nil(t, a)
			require.Equal(t, kernel.Transport, failure(t, err).Kind)
		})
	}
}
