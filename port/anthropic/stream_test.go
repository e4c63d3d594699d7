package anthropic_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/wiretest"
)

// What proxies leave out of a stream, or add to it, costs nobody an answer that is
// there: one that said why it stopped is whole.
func TestStreamsOfProxies(t *testing.T) {
	beginning := `data: {"type":"message_start","message":{"type":"message","usage":{"input_tokens":100,"cache_read_input_tokens":50,"output_tokens":1}}}` + "\n\n"
	block := func(n int) string {
		return strings.NewReplacer("N", strconv.Itoa(n)).Replace(`data: {"type":"content_block_start","index":N,"content_block":{"type":"text","text":""}}` + "\n\n" +
			`data: {"type":"content_block_delta","index":N,"delta":{"type":"text_delta","text":"hi"}}` + "\n\n")
	}
	stop := func(n int) string {
		return `data: {"type":"content_block_stop","index":` + strconv.Itoa(n) + `}` + "\n\n"
	}
	why := `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":0,"output_tokens":5}}` + "\n\n"
	end := `data: {"type":"message_stop"}` + "\n\n"
	for name, reply := range map[string]wiretest.Reply{
		"numbered from 1":  {Raw: beginning + block(1) + stop(1) + why + end},
		"a block hidden":   {Raw: beginning + block(3) + stop(3) + why + end},
		"no block's end":   {Raw: beginning + block(0) + why + end},
		"no end":           {Raw: beginning + block(0) + stop(0) + why},
		"[DONE]":           {Raw: beginning + block(0) + stop(0) + why + "data: [DONE]\n\n"},
		"said to be plain": {Type: "text/plain", Raw: beginning + block(0) + stop(0) + why + end},
		"said to be JSON":  {Type: "application/json", Raw: beginning + block(0) + stop(0) + why + end},
		"a mark before":    {Type: "text/plain", Raw: "\ufeff" + beginning + block(0) + stop(0) + why + end},
		"a line before":    {Type: "text/plain", Raw: "\n" + beginning + block(0) + stop(0) + why + end},
		"a ping before":    {Type: "text/plain", Raw: ": ping\n\n" + beginning + block(0) + stop(0) + why + end},
		"no stream":        {Raw: `{"type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":100,"cache_read_input_tokens":50,"output_tokens":5}}`},
	} {
		t.Run(name, func(t *testing.T) {
			if reply.Type == "" {
				reply.Type = "text/event-stream"
			}
			r := newRig(t)
			r.server.Reply(reply)
			a, err := r.call(port.Conf{}, hello(), func(kernel.Delta) {})
			require.NoError(t, err)
			require.JSONEq(t, `[{"text":"hi","type":"text"}]`, string(a.Content))
			require.Equal(t, kernel.Usage{Input: 100, CacheRead: 50, Output: 5}, a.Usage)
			require.Equal(t, "end_turn", a.StopReason)
		})
	}
	r := newRig(t)
	r.server.Reply(wiretest.Reply{Type: "application/json", Raw: `{"type":"error","message":"Overloaded, come back"}`})
	_, err := r.call(port.Conf{}, hello(), func(kernel.Delta) {})
	require.Contains(t, failure(t, err).Message, "Overloaded, come back")

	r.server.Reply(wiretest.Reply{Type: "text/event-stream", Raw: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`})
	_, err = r.call(port.Conf{}, hello(), func(kernel.Delta) {})
	require.Equal(t, kernel.Overloaded, failure(t, err).Kind)
	require.Contains(t, failure(t, err).Message, "Overloaded")

	r.server.Reply(wiretest.Reply{Type: "text/event-stream", Raw: beginning + block(0) + stop(0) + strings.ReplaceAll(block(0)+stop(0), "hi", "ho") + why + end})
	same, err := r.call(port.Conf{}, hello(), func(kernel.Delta) {})
	require.NoError(t, err)
	require.JSONEq(t, `[{"text":"hi","type":"text"},{"text":"ho","type":"text"}]`, string(same.Content))

	r.server.Reply(wiretest.Reply{Type: "text/event-stream", Raw: beginning +
		`data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}` + "\n\n" +
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm","estimated_tokens":9}}` + "\n\n" +
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}` + "\n\n" +
		stop(0) + block(1) + stop(1) + why + end})
	a, err := r.call(port.Conf{}, hello(), func(kernel.Delta) {})
	require.NoError(t, err)
	require.NotContains(t, string(a.Content), "estimated_tokens")
}

// Proxies that cut by UTF-16 units cut a character in two.
func TestAHalfOfACharacter(t *testing.T) {
	piece := func(n int, kind, member, text string) string {
		return fmt.Sprintf(`data: {"type":"content_block_delta","index":%d,"delta":{"type":"%s","%s":"%s"}}`+"\n\n", n, kind, member, text)
	}
	body := `data: {"type":"message_start","message":{"type":"message"}}` + "\n\n" +
		`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n" +
		piece(0, "text_delta", "text", `a\ud83d`) + piece(0, "text_delta", "text", `\ude00b`) + `data: {"type":"content_block_stop","index":0}` + "\n\n" +
		`data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"x","input":{}}}` + "\n\n" +
		piece(1, "input_json_delta", "partial_json", `{\"s\":\"\ud83d`) + piece(1, "input_json_delta", "partial_json", `\ude00\"}`) + `data: {"type":"content_block_stop","index":1}` + "\n\n" +
		`data: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}` + "\n\n" + `data: {"type":"message_stop"}` + "\n\n"
	r := newRig(t)
	r.server.Reply(wiretest.Reply{Type: "text/event-stream", Raw: body})
	shown := ""
	a, err := r.call(port.Conf{}, hello(), func(d kernel.Delta) { shown += d.Text })
	require.NoError(t, err)
	require.JSONEq(t, `[{"text":"a😀b","type":"text"},{"id":"a","input":{"s":"😀"},"name":"x","type":"tool_use"}]`, string(a.Content))
	require.Equal(t, "a😀b", shown)
}

// A stream that is not whole is an error, and what it said is no answer.
func TestBrokenStreams(t *testing.T) {
	blocks := []wiretest.Block{wiretest.Say("hello"), wiretest.Use("a", "x", "{}")}
	without := func(event string) func(string, string) (string, string) {
		return func(name, data string) (string, string) {
			if name == event {
				return "", ""
			}
			return name, data
		}
	}
	as := func(event, instead string) func(string, string) (string, string) {
		return func(name, data string) (string, string) {
			if name == event {
				return name, instead
			}
			return name, data
		}
	}
	for name, c := range map[string]struct {
		reply wiretest.Reply
		kind  kernel.CallKind
		says  string
	}{
		"broken off at once":         {wiretest.Reply{Blocks: blocks, Cut: 1}, kernel.Transport, "the stream ended before the answer was whole"},
		"broken off in a text":       {wiretest.Reply{Blocks: blocks, Cut: 4}, kernel.Transport, "the stream ended before the answer was whole"},
		"without its end":            {wiretest.Reply{Blocks: blocks, Quiet: true}, kernel.Transport, "the stream ended before the answer was whole"},
		"without why it stopped":     {wiretest.Reply{Blocks: blocks, Mangle: without("message_delta"), Quiet: true}, kernel.Transport, "the stream ended before the answer was whole"},
		"without message_start":      {wiretest.Reply{Blocks: blocks, Mangle: without("message_start")}, kernel.Server, "content_block_start for block 0"},
		"a block without a start":    {wiretest.Reply{Blocks: blocks, Mangle: without("content_block_start")}, kernel.Server, "content_block_delta for block 0, which is not open"},
		"a block of another number":  {wiretest.Reply{Blocks: blocks, Mangle: as("content_block_start", `{"type":"content_block_start","index":7,"content_block":{"type":"text","text":""}}`)}, kernel.Server, "content_block_delta for block 0, which is not open"},
		"a block that is none":       {wiretest.Reply{Blocks: blocks, Mangle: as("content_block_start", `{"type":"content_block_start","index":0,"content_block":null}`)}, kernel.Server, "without a block"},
		"a delta that is none":       {wiretest.Reply{Blocks: blocks, Mangle: as("content_block_delta", `{"type":"content_block_delta","index":0,"delta":7}`)}, kernel.Server, "without a delta"},
		"a number below zero":        {wiretest.Reply{Blocks: blocks, Mangle: as("content_block_delta", `{"type":"content_block_delta","index":-1,"delta":{}}`)}, kernel.Server, "block -1"},
		"data that is no JSON":       {wiretest.Reply{Blocks: blocks, Mangle: as("content_block_delta", `<html>`)}, kernel.Server, "an event that is no JSON: <html>"},
		"two beginnings":             {wiretest.Reply{Blocks: blocks, Mangle: as("ping", `{"type":"message_start","message":{}}`)}, kernel.Server, "message_start twice"},
		"an end that is none":        {wiretest.Reply{Blocks: blocks, Mangle: as("message_delta", `{"type":"message_delta","delta":[]}`)}, kernel.Server, "message_delta that cannot be read"},
		"an error behind the text":   {wiretest.Reply{Blocks: blocks, Error: "overloaded_error", Say: "busy"}, kernel.Overloaded, "busy"},
		"an error of a quota":        {wiretest.Reply{Blocks: blocks, Error: "rate_limit_error", Say: "slow"}, kernel.RateLimited, "slow"},
		"an error nobody knows":      {wiretest.Reply{Blocks: blocks, Error: "gremlin_error", Say: "boo"}, kernel.Server, "boo"},
		"an error that echoes a key": {wiretest.Reply{Blocks: blocks, Error: "api_error", Say: "key " + theKey}, kernel.Server, "key ***"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.server.Reply(c.reply)
			a, err := r.call(port.Conf{}, hello(), func(kernel.Delta) {})
			require.Nil(t, a)
			require.Equal(t, c.kind, failure(t, err).Kind)
			require.Contains(t, err.Error(), c.says)
		})
	}
}

// Events of a kind that nobody knows say nothing, and deltas that came later
// than this code grow the members they name.
func TestUnknownEvents(t *testing.T) {
	r := newRig(t)
	first := true
	r.server.Reply(wiretest.Reply{Blocks: []wiretest.Block{{Raw: []byte(`{"type":"summary","content":"a"}`)}}, Mangle: func(name, data string) (string, string) {
		switch {
		case name == "ping":
			return "weather", `{"type":"weather"}`
		case name == "content_block_stop" && first:
			first = false
			return "content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"summary_delta","content":"b","n":1}}` +
				"\n\nevent: content_block_stop\ndata: " + data
		}
		return name, data
	}})
	a, err := r.call(port.Conf{}, hello(), nil)
	require.NoError(t, err)
	require.JSONEq(t, `[`+bag+`"content":"ab","n":1,"type":"summary"}]`, string(a.Content))
}
