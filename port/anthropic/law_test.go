package anthropic_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/anthropic"
	"github.com/knl-run/knl/port/wiretest"
)

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

var (
	awkward   = rapid.SampledFrom([]string{"", " ", "\n", "hello", "Ünï 🙂", "a\x00b", `{"json":true}`, "ends in space ", `"cache_control"`})
	awkwardID = rapid.SampledFrom([]string{"", "toolu_1", "toolu_1", "01J/1", "a b", "ü", strings.Repeat("long", 30)})
	toolNames = rapid.SampledFrom([]string{"read", "fs.read", "ü", strings.Repeat("name", 30)})
	someBlock = rapid.SampledFrom([]string{
		`{"source":{"data":"aGk=","media_type":"image/png","type":"base64"},"type":"image"}`, `{"odd":1}`, `null`, `7`,
		bag + `"signature":"c2ln","thinking":"hm","type":"thinking"}`, bag + `"signature":"","thinking":"cut","type":"thinking"}`,
		bag + `"data":"eA==","type":"redacted_thinking"}`, bag + `"id":"s","input":{},"name":"web_search","type":"server_tool_use"}`,
		`{"provider":{"model":"another","port":"anthropic"},"signature":"c2ln","thinking":"hm","type":"thinking"}`,
		bag + `"citations":[{"type":"char_location"}],"text":"so","type":"text"}`,
	})
)

func blocks(t *rapid.T, most int) []string {
	var out []string
	for range rapid.IntRange(0, most).Draw(t, "blocks") {
		if rapid.Bool().Draw(t, "plain") {
			out = append(out, `{"text":`+quoted(awkward.Draw(t, "text"))+`,"type":"text"}`)
		} else {
			out = append(out, someBlock.Draw(t, "block"))
		}
	}
	return out
}

// exchange draws messages whose calls are closed.
func exchange(t *rapid.T) []json.RawMessage {
	said := blocks(t, 3)
	message := func(role string, list []string) json.RawMessage {
		return json.RawMessage(`{"content":[` + strings.Join(list, ",") + `],"role":"` + role + `"}`)
	}
	role := rapid.SampledFrom([]string{"user", "assistant", "system", "calls", "calls"}).Draw(t, "role")
	if role != "calls" {
		return []json.RawMessage{message(role, said)}
	}
	var results []string
	for range rapid.IntRange(1, 3).Draw(t, "calls") {
		id, name := quoted(awkwardID.Draw(t, "id")), quoted(toolNames.Draw(t, "name"))
		input := rapid.SampledFrom([]string{`{}`, `{"a":1}`, `"cut {"`}).Draw(t, "input")
		said = append(said, `{"id":`+id+`,"input":`+input+`,"name":`+name+`,"type":"tool_use"}`)
		results = append(results, `{"content":`+quoted(awkward.Draw(t, "result"))+`,"tool_use_id":`+id+`,"type":"tool_result"}`)
	}
	return []json.RawMessage{message("assistant", said), message("user", append(results, blocks(t, 2)...))}
}

func someRequest(t *rapid.T) *kernel.Request {
	req := &kernel.Request{}
	for range rapid.IntRange(0, 5).Draw(t, "exchanges") {
		req.Messages = append(req.Messages, exchange(t)...)
	}
	if rapid.Bool().Draw(t, "system") {
		req.System = json.RawMessage(quoted(awkward.Draw(t, "prompt")))
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "tools") {
		req.Tools = append(req.Tools, json.RawMessage([]string{`{"name":"read"}`, `{"input_schema":{"anyOf":[]},"name":"fs.read"}`}[i]))
	}
	if rapid.Bool().Draw(t, "params") {
		req.Params = json.RawMessage(rapid.SampledFrom([]string{`{"max_tokens":1500}`, `{"thinking":{"effort":"minimal"}}`, `{"temperature":0.5,"thinking":true}`, `{"max_tokens":9000,"thinking":{"budget_tokens":2000}}`}).Draw(t, "param"))
	}
	return req
}

// Any log whose calls are closed makes a body that the provider takes, with its
// marks, streamed or not, counted too; and the same body every time.
func TestLawAccepted(t *testing.T) {
	server := wiretest.New(t)
	p := anthropic.New(port.Host{Env: func(name string) (string, bool) {
		return map[string]string{"ANTHROPIC_API_KEY": theKey, "ANTHROPIC_BASE_URL": server.URL}[name], true
	}})
	rapid.Check(t, func(t *rapid.T) {
		conf := port.Conf{
			Model:    rapid.SampledFrom([]string{"claude-opus-4-7", "claude-opus-4-6", "claude-haiku-4-5", "glm"}).Draw(t, "model"),
			NoStream: rapid.Bool().Draw(t, "whole"),
			Thinking: rapid.SampledFrom([]port.Thinking{{}, {On: true}, {On: true, Effort: "high"}}).Draw(t, "thinking"),
		}
		req := someRequest(t)
		if familyTakesPrefill := strings.Contains(conf.Model, "haiku"); familyTakesPrefill {
			server.Prefill(true)
			defer server.Prefill(false)
		}
		llm, err := p.Open(conf)
		require.NoError(t, err)
		for range 2 {
			server.Reply(wiretest.Reply{})
			_, err = llm.Call(context.Background(), req, kernel.CallOptions{})
			require.NoError(t, err)
			require.NoError(t, server.Last().Fault)
		}
		all := server.Requests()
		first, second := all[len(all)-2].Body, all[len(all)-1].Body
		require.Equal(t, string(first), string(second))
		require.LessOrEqual(t, strings.Count(string(first), `"cache_control":{"type":"ephemeral"}`), 4)
		_, err = p.Count(context.Background(), req, conf)
		require.NoError(t, err)
	})
}
