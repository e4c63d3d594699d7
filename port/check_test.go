package port_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/port"
)

// violation is a body that breaks one rule: base with old replaced by new.
type violation struct {
	old, new string
	rule     port.Rule
	at       string
}

const messagesBase = `{"max_tokens":9,"messages":[` +
	`{"content":"do it","role":"user"},` +
	`{"content":[{"text":"yes","type":"text"},{"id":"a","input":{},"name":"read","type":"tool_use"},{"id":"b","input":{},"name":"read","type":"tool_use"}],"role":"assistant"},` +
	`{"content":[{"content":"1","tool_use_id":"a","type":"tool_result"},{"content":[{"text":"2","type":"text"}],"tool_use_id":"b","type":"tool_result"},{"text":"and?","type":"text"}],"role":"user"}` +
	`],"model":"m","tools":[{"input_schema":{"type":"object"},"name":"read"}]}`

func TestCheckAnthropic(t *testing.T) {
	target := port.Target{Dialect: port.Anthropic}
	require.NoError(t, port.Check(target, []byte(messagesBase)))
	last := `,{"text":"and?","type":"text"}],"role":"user"}`
	checkEach(t, target, messagesBase, []violation{
		{`"max_tokens":9,`, ``, port.RuleForm, "max_tokens"},
		{`"model":"m"`, `"model":""`, port.RuleForm, "model"},
		{`"model":"m"`, `"model":"m","model":"n"`, port.RuleForm, "body"},
		{`"model":"m"`, `"model":"` + "\xff" + `"`, port.RuleForm, "body"},
		{`"model":"m"`, `"model":"m","system":" "`, port.RuleText, "system"},
		{`"model":"m"`, `"model":"m","system":[{"type":"thinking","thinking":"x"}]`, port.RuleThinking, "system[0]"},
		{`"model":"m"`, `"model":"m","tool_choice":{"type":"tool","name":"write"}`, port.RuleTools, "tool_choice"},
		{`"model":"m"`, `"model":"m","tool_choice":{"type":"required"}`, port.RuleTools, "tool_choice"},
		{`"model":"m"`, `"model":"m","thinking":{"type":"adaptive"},"tool_choice":{"type":"any"}`, port.RuleThinking, "tool_choice"},
		{`"model":"m"`, `"model":"m","thinking":{"type":"enabled"}`, port.RuleThinking, "messages[1]"},
		{`{"content":"do it","role":"user"},`, ``, port.RuleRoles, "messages[0]"},
		{`{"content":"do it","role":"user"},`, `{"content":"a","role":"user"},{"content":"b","role":"user"},`, port.RuleRoles, "messages[1]"},
		{`"do it","role":"user"`, `"do it","role":"system"`, port.RuleSystem, "messages[0]"},
		{`"do it","role":"user"`, `"do it","role":"tool"`, port.RuleRoles, "messages[0]"},
		{`"do it","role":"user"`, `"do it","name":"bob","role":"user"`, port.RuleForm, "messages[0]"},
		{`"do it"`, `""`, port.RuleText, "messages[0].content"},
		{`"do it"`, `"\n\t\u00a0"`, port.RuleText, "messages[0].content"},
		{`"do it"`, `[]`, port.RuleText, "messages[0].content"},
		{`"do it"`, `7`, port.RuleForm, "messages[0].content"},
		{`"do it"`, `[{"text":" ","type":"text"}]`, port.RuleText, "messages[0].content[0]"},
		{`"do it"`, `[{"type":"text"}]`, port.RuleText, "messages[0].content[0]"},
		{`"do it"`, `[{"text":"x"}]`, port.RuleForm, "messages[0].content[0]"},
		{`"do it"`, `[{"type":"image"}]`, port.RuleForm, "messages[0].content[0]"},
		{`"do it"`, `[{"type":"thinking","thinking":"x","signature":"s"}]`, port.RuleThinking, "messages[0].content[0]"},
		{`"do it"`, `[{"id":"z","input":{},"name":"read","type":"tool_use"}]`, port.RulePairs, "messages[0].content[0]"},
		{`"do it"`, `[{"tool_use_id":"z","type":"tool_result"}]`, port.RulePairs, "messages[0].content[0]"},
		{`{"text":"yes","type":"text"}`, `{"provider":{"port":"x"},"text":"yes","type":"text"}`, port.RuleForm, "messages[1].content[0]"},
		{`{"text":"yes","type":"text"}`, `{"type":"thinking","thinking":"x"}`, port.RuleThinking, "messages[1].content[0]"},
		{`"id":"b"`, `"id":"a"`, port.RuleIDs, "messages[1].content[2]"},
		{`"id":"b"`, `"id":"b/1"`, port.RuleIDs, "messages[1].content[2]"},
		{`"id":"b"`, `"id":""`, port.RuleIDs, "messages[1].content[2]"},
		{`"id":"b"`, `"id":"` + strings.Repeat("b", 65) + `"`, port.RuleIDs, "messages[1].content[2]"},
		{`"id":"a","input":{},"name":"read"`, `"id":"a","input":{},"name":"fs.read"`, port.RuleTools, "messages[1].content[1]"},
		{`"id":"a","input":{}`, `"id":"a","input":"{}"`, port.RuleForm, "messages[1].content[1]"},
		{`"id":"a","input":{}`, `"id":"a"`, port.RuleForm, "messages[1].content[1]"},
		{`{"content":"1","tool_use_id":"a","type":"tool_result"},`, ``, port.RulePairs, "messages[1].content[2]"},
		{`"tool_use_id":"b"`, `"tool_use_id":"c"`, port.RulePairs, "messages[2].content[1]"},
		{`"tool_use_id":"b"`, `"tool_use_id":"a"`, port.RulePairs, "messages[2].content[1]"},
		{`{"content":"1",`, `{"text":"first","type":"text"},{"content":"1",`, port.RulePairs, "messages[2].content[1]"},
		{`{"content":"1",`, `{"content":"1","name":"read",`, port.RuleForm, "messages[2].content[0]"},
		{`{"content":"1",`, `{"is_error":true,`, port.RuleText, "messages[2].content[0]"},
		{`{"text":"2","type":"text"}`, `{"text":"","type":"text"}`, port.RuleText, "messages[2].content[1].content[0]"},
		{`"tools":[{"input_schema":{"type":"object"},"name":"read"}]`, `"tools":[]`, port.RuleTools, "tools"},
		{`{"type":"object"}`, `{}`, port.RuleTools, "tools[0]"},
		{`{"type":"object"}`, `{"anyOf":[],"type":"object"}`, port.RuleTools, "tools[0]"},
		{`{"type":"object"}`, `"object"`, port.RuleTools, "tools[0]"},
		{`"name":"read"}]}`, `"name":"a b"}]}`, port.RuleTools, "tools[0]"},
		{`"name":"read"}]}`, `"name":"read"},{"input_schema":{"type":"object"},"name":"read"}]}`, port.RuleTools, "tools[1]"},
		{last, last + `,{"content":"done","role":"assistant"}`, port.RuleLast, "messages[3]"},
		{last, last + `,{"content":[{"signature":"s","thinking":"x","type":"thinking"}],"role":"assistant"}`, port.RuleThinking, "messages[3].content"},
		{last, last + `,{"content":[{"id":"c","input":{},"name":"read","type":"tool_use"}],"role":"assistant"}`, port.RulePairs, "messages[3].content[0]"},
		{`{"text":"and?","type":"text"}`, strings.TrimPrefix(strings.Repeat(`,{"cache_control":{},"text":"x","type":"text"}`, 5), ","), port.RuleCache, "body"},
	})
}

const chatBase = `{"messages":[` +
	`{"content":"be brief","role":"system"},` +
	`{"content":"do it","role":"user"},` +
	`{"content":"yes","role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"read"},"id":"a","type":"function"},{"function":{"arguments":"{}","name":"read"},"id":"b","type":"function"}]},` +
	`{"content":"1","role":"tool","tool_call_id":"a"},` +
	`{"content":"2","role":"tool","tool_call_id":"b"},` +
	`{"content":[{"text":"and?","type":"text"}],"role":"user"}` +
	`],"model":"m","tools":[{"function":{"name":"read","parameters":{"type":"object"}},"type":"function"}]}`

func TestCheckOpenAI(t *testing.T) {
	target := port.Target{Dialect: port.OpenAI}
	require.NoError(t, port.Check(target, []byte(chatBase)))
	last := `{"content":[{"text":"and?","type":"text"}],"role":"user"}`
	checkEach(t, target, chatBase, []violation{
		{`"model":"m"`, `"model":""`, port.RuleForm, "model"},
		{`{"content":"be brief","role":"system"}`, `{"content":"","role":"system"}`, port.RuleText, "messages[0].content"},
		{last, `{"content":"x","role":"system"}`, port.RuleSystem, "messages[5]"},
		{`{"content":"do it","role":"user"},`, ``, port.RuleRoles, "messages[1]"},
		{`"do it","role":"user"`, `"do it","role":"function"`, port.RuleRoles, "messages[1]"},
		{`{"content":"do it","role":"user"},`, `{"content":"a","role":"user"},{"content":"b","role":"user"},`, port.RuleRoles, "messages[2]"},
		{`"do it"`, `" "`, port.RuleText, "messages[1].content"},
		{`"do it"`, `null`, port.RuleForm, "messages[1].content"},
		{`"do it"`, `[]`, port.RuleText, "messages[1].content"},
		{`"do it"`, `[{"type":"image"}]`, port.RuleForm, "messages[1].content[0]"},
		{`"do it"`, `[{"text":"","type":"text"}]`, port.RuleText, "messages[1].content[0]"},
		{`"do it","role":"user"`, `"do it","role":"user","tool_calls":[]`, port.RuleForm, "messages[1]"},
		{`"id":"b"`, `"id":"a"`, port.RuleIDs, "messages[2].tool_calls[1]"},
		{`"id":"b"`, `"id":"` + strings.Repeat("b", 41) + `"`, port.RuleIDs, "messages[2].tool_calls[1]"},
		{`"id":"a","type":"function"`, `"id":"a","type":"tool"`, port.RuleForm, "messages[2].tool_calls[0]"},
		{`"arguments":"{}","name":"read"},"id":"a"`, `"arguments":{},"name":"read"},"id":"a"`, port.RuleForm, "messages[2].tool_calls[0]"},
		{`"arguments":"{}","name":"read"},"id":"a"`, `"arguments":"{\"a\":","name":"read"},"id":"a"`, port.RuleForm, "messages[2].tool_calls[0]"},
		{`"arguments":"{}","name":"read"},"id":"a"`, `"arguments":"{}","name":""},"id":"a"`, port.RuleTools, "messages[2].tool_calls[0]"},
		{`{"content":"1","role":"tool","tool_call_id":"a"},`, ``, port.RulePairs, "messages[2].tool_calls[1]"},
		{`"tool_call_id":"b"`, `"tool_call_id":"a"`, port.RulePairs, "messages[4]"},
		{`"tool_call_id":"b"`, `"tool_call_id":"z"`, port.RulePairs, "messages[4]"},
		{`{"content":"2","role":"tool","tool_call_id":"b"},`, `{"content":"wait","role":"user"},{"content":"2","role":"tool","tool_call_id":"b"},`, port.RulePairs, "messages[2].tool_calls[1]"},
		{`{"content":"2","role":"tool"`, `{"content":"","role":"tool"`, port.RuleText, "messages[4].content"},
		{`{"content":"2","role":"tool"`, `{"content":[{"image_url":{},"type":"image_url"}],"role":"tool"`, port.RuleForm, "messages[4].content[0]"},
		{last, `{"content":"done","role":"assistant"}`, port.RuleLast, "messages[5]"},
		{last, `{"content":"","role":"assistant"}`, port.RuleText, "messages[5].content"},
		{last, `{"role":"assistant"}`, port.RuleForm, "messages[5].content"},
		{last, `{"content":"x","role":"assistant","tool_calls":[]}`, port.RulePairs, "messages[5]"},
		{last, `{"role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"read"},"id":"c","type":"function"}]}`, port.RulePairs, "messages[5].tool_calls[0]"},
		{`"model":"m"`, `"model":"m","tool_choice":"any"`, port.RuleTools, "tool_choice"},
		{`"model":"m"`, `"model":"m","tool_choice":{"function":{"name":"write"},"type":"function"}`, port.RuleTools, "tool_choice"},
		{`"tools":[{"function":{"name":"read","parameters":{"type":"object"}},"type":"function"}]`, `"tools":[]`, port.RuleTools, "tools"},
		{`"tools":[{"function":{"name":"read","parameters":{"type":"object"}},"type":"function"}]`, `"tool_choice":"auto"`, port.RuleTools, "tool_choice"},
		{`"parameters":{"type":"object"}`, `"parameters":{"type":"string"}`, port.RuleTools, "tools[0]"},
	})
}

// checkEach breaks base in each way and wants the rule and the place named.
func checkEach(t *testing.T, target port.Target, base string, cases []violation) {
	for i, c := range cases {
		t.Run(fmt.Sprintf("%d_%s", i, c.rule), func(t *testing.T) {
			require.Contains(t, base, c.old)
			err := port.Check(target, []byte(strings.Replace(base, c.old, c.new, 1)))
			var v *port.Violation
			require.True(t, errors.As(err, &v), "got %v", err)
			require.Equal(t, c.rule, v.Rule, "%v", v)
			require.Equal(t, c.at, v.At, "%v", v)
		})
	}
}

func TestCheckPrefill(t *testing.T) {
	for _, d := range port.Dialects {
		body := []byte(`{"max_tokens":9,"messages":[{"content":"hi","role":"user"},{"content":"{","role":"assistant"}],"model":"m"}`)
		if d == port.Responses {
			body = []byte(`{"input":[{"content":"hi","role":"user"},{"content":"{","role":"assistant"}],"model":"m"}`)
		}
		require.Error(t, port.Check(port.Target{Dialect: d}, body))
		require.NoError(t, port.Check(port.Target{Dialect: d, Prefill: true}, body))
	}
	spaced := []byte(`{"max_tokens":9,"messages":[{"content":"hi","role":"user"},{"content":"{ ","role":"assistant"}],"model":"m"}`)
	require.EqualError(t, port.Check(port.Target{Dialect: port.Anthropic, Prefill: true}, spaced), "messages[1]: got a prefill that ends with space (rule last)")
}

func TestCheckUnknownDialect(t *testing.T) {
	require.EqualError(t, port.Check(port.Target{Dialect: "gemini"}, []byte(`{}`)), `dialect: got "gemini", want one of anthropic, openai, responses`)
}

// A body that goes back to thinking inside a tool loop begins with it.
func TestCheckThinkingLoop(t *testing.T) {
	body := strings.Replace(messagesBase, `"model":"m"`, `"model":"m","thinking":{"type":"enabled"}`, 1)
	body = strings.Replace(body, `{"text":"yes","type":"text"}`, `{"signature":"s","thinking":"x","type":"thinking"}`, 1)
	require.NoError(t, port.Check(port.Target{Dialect: port.Anthropic}, []byte(body)))
}
