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

// answerMessage are what the fold makes of an answer, with the results of its calls.
func answerMessage(a *kernel.Answer) []string {
	results := []string{}
	var blocks []struct{ Type, ID string }
	_ = json.Unmarshal(a.Content, &blocks)
	for _, b := range blocks {
		if b.Type == "tool_use" {
			results = append(results, `{"content":"done","tool_use_id":"`+b.ID+`","type":"tool_result"}`)
		}
	}
	return []string{`{"content":` + string(a.Content) + `,"role":"assistant"}`, `{"content":[` + strings.Join(results, ",") + `],"role":"user"}`}
}

// thinking asks a model that thinks, and then goes on with what it answered.
func thinking(t *testing.T, dialect, thought string, blocks []wiretest.Block, more ...func(*port.Conf)) (next string, other string) {
	t.Helper()
	s := wiretest.New(t).Reply(say(blocks...), say(wiretest.Say("x")), say(wiretest.Say("x")))
	p, conf := at(s, dialect)
	for _, change := range more {
		change(&conf)
	}
	a, deltas, err := call(t, p, conf, withTool(requestOf(ask)))
	require.NoError(t, err)
	require.Equal(t, thought, joined(deltas, "thinking"))
	req := withTool(requestOf(append([]string{ask}, answerMessage(a)...)...))
	_, _, err = call(t, p, conf, req)
	require.NoError(t, err)
	next = string(s.Last().Body)
	conf.Model = "gpt-4.1"
	_, _, err = call(t, p, conf, req)
	require.NoError(t, err)
	return next, string(s.Last().Body)
}

// What was thought goes back in the field that it came in, byte for byte, and to
// that model alone.
func TestThinkingGoesBack(t *testing.T) {
	const thought = "let me  see\n\n ✓ "
	blocks := []wiretest.Block{wiretest.Think(thought, "c2ln+/="), wiretest.Use("call_1", "fs_read", "{}")}
	for dialect, want := range map[string]string{
		"vllm":       `"reasoning":"let me  see\n\n ✓ "`,
		"llamacpp":   `"reasoning_content":"let me  see\n\n ✓ "`,
		"ollama":     `"reasoning":"let me  see\n\n ✓ "`,
		"openrouter": `"reasoning_details":[{`,
	} {
		for _, way := range [][]func(*port.Conf){nil, {whole}} {
			t.Run(dialect, func(t *testing.T) {
				next, other := thinking(t, dialect, thought, blocks, way...)
				require.Contains(t, next, want)
				require.NotContains(t, next, "provider")
				require.NotContains(t, other, "let me")
			})
		}
	}
	next, _ := thinking(t, "openrouter", thought, blocks)
	require.JSONEq(t, `[{"format":"anthropic-claude-v1","index":0,"text":"let me  see\n\n ✓ ","type":"reasoning.text","signature":"c2ln+/="}]`, detailsOf(t, next))
	require.NotContains(t, next, `"reasoning":`)
}

func detailsOf(t *testing.T, body string) string {
	var b struct {
		Messages []struct {
			Details json.RawMessage `json:"reasoning_details"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &b))
	return string(b.Messages[1].Details)
}

// Details that came whole go back as they are: numbers, order, spelling.
func TestDetailsByteForByte(t *testing.T) {
	raw := `[{"type":"reasoning.encrypted","data":"eA==","id":"r1","n":1.10,"u":"\u00e9\/"},{"type":"reasoning.summary","summary":"short","index":1}]`
	blocks := []wiretest.Block{{Raw: json.RawMessage(`{"reasoning_details":` + raw + `}`)}, wiretest.Use("call_1", "fs_read", "{}")}
	s := wiretest.New(t).Reply(wiretest.Reply{Raw: `{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"reasoning_details":` + raw +
		`,"tool_calls":[{"id":"a","function":{"name":"fs_read","arguments":"{}"}}]}}]}`}, say(wiretest.Say("x")))
	p, conf := at(s, "openrouter")
	a, _, err := call(t, p, conf, withTool(requestOf(ask)))
	require.NoError(t, err)
	_, _, err = call(t, p, conf, withTool(requestOf(append([]string{ask}, answerMessage(a)...)...)))
	require.NoError(t, err)
	require.Contains(t, string(s.Last().Body), raw)
	next, _ := thinking(t, "openrouter", "short", blocks)
	require.JSONEq(t, raw, detailsOf(t, next))
}

// A server that writes the same thought in two fields is heard once.
func TestThinkingTwice(t *testing.T) {
	a, deltas := answered(t, "vllm", say(wiretest.Block{Raw: json.RawMessage(`{"reasoning":"hm","reasoning_content":"hm"}`)}, wiretest.Say("x")))
	require.Equal(t, "hm", joined(deltas, "thinking"))
	require.JSONEq(t, `[{"type":"thinking","thinking":"hm","provider":{"port":"vllm","model":"gpt-4o","field":"reasoning_content"}},{"type":"text","text":"x"}]`, string(a.Content))
}

// Items that mean something to the provider alone go back as they were, before
// the call that they belong to.
func TestItemsGoBack(t *testing.T) {
	const thought = "let me  see"
	search := `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"query":"a","n":1.10}}`
	blocks := []wiretest.Block{
		wiretest.Think(thought, "ZW5j+/="), {Raw: json.RawMessage(search)},
		{Raw: json.RawMessage(`{"type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"looking"}]}`)},
		wiretest.Use("call_1", "fs_read", "{}"),
	}
	for _, way := range []func(*port.Conf){whole, func(*port.Conf) {}} {
		s := wiretest.New(t).Reply(say(blocks...), say(wiretest.Say("x")), say(wiretest.Say("x")))
		p, conf := at(s, "openai")
		asItems(&conf)
		way(&conf)
		conf.Model = "gpt-5"
		a, _, err := call(t, p, conf, withTool(requestOf(ask)))
		require.NoError(t, err)
		req := withTool(requestOf(append([]string{ask}, answerMessage(a)...)...))
		_, _, err = call(t, p, conf, req)
		require.NoError(t, err)
		body := string(s.Last().Body)
		require.Contains(t, body, `"include":["reasoning.encrypted_content"]`)
		require.Contains(t, body, `"store":false`)
		reasoning := `{"encrypted_content":"ZW5j+/=","id":"rs_0","summary":[{"text":"let me  see","type":"summary_text"}],"type":"reasoning"}`
		said := `{"content":"looking","phase":"commentary","role":"assistant","type":"message"}`
		called := `{"arguments":"{}","call_id":"call_1","name":"fs_read","type":"function_call"}`
		output := `{"call_id":"call_1","output":"done","type":"function_call_output"}`
		user := `{"content":"go on","role":"user","type":"message"}`
		require.Contains(t, body, `"input":[`+strings.Join([]string{user, reasoning, search, said, called, output}, ",")+`]`)
		conf.Model = "gpt-5-mini"
		_, _, err = call(t, p, conf, req)
		require.NoError(t, err)
		require.NotContains(t, string(s.Last().Body), "ZW5j")
		require.NotContains(t, string(s.Last().Body), "web_search")
		require.Contains(t, string(s.Last().Body), `{"content":"looking","role":"assistant","type":"message"}`)
	}
}
