package port_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/port"
)

const itemsBase = `{"input":[` +
	`{"content":"do it","role":"user","type":"message"},` +
	`{"encrypted_content":"eA","id":"rs_1","summary":[],"type":"reasoning"},` +
	`{"content":"yes","role":"assistant","type":"message"},` +
	`{"arguments":"{}","call_id":"a","name":"read","type":"function_call"},` +
	`{"arguments":"{}","call_id":"b","name":"read","type":"function_call"},` +
	`{"call_id":"a","output":"1","type":"function_call_output"},` +
	`{"call_id":"b","output":[{"text":"2","type":"input_text"}],"type":"function_call_output"},` +
	`{"content":[{"text":"and?","type":"input_text"}],"role":"user","type":"message"}` +
	`],"model":"m","store":false,"tools":[{"name":"read","parameters":{"type":"object"},"type":"function"}]}`

func TestCheckResponses(t *testing.T) {
	target := port.Target{Dialect: port.Responses}
	require.NoError(t, port.Check(target, []byte(itemsBase)))
	last := `{"content":[{"text":"and?","type":"input_text"}],"role":"user","type":"message"}`
	said := `{"content":"yes","role":"assistant","type":"message"},`
	call := `{"arguments":"{}","call_id":"b","name":"read","type":"function_call"},`
	checkEach(t, target, itemsBase, []violation{
		{`"model":"m"`, `"model":""`, port.RuleForm, "model"},
		{`"model":"m"`, `"model":"m","instructions":" "`, port.RuleText, "instructions"},
		{`"type":"reasoning"`, `"type":"thought"`, port.RuleForm, "input[1]"},
		{`"content":"yes"`, `"name":"x","content":"yes"`, port.RuleForm, "input[2]"},
		{`"do it","role":"user"`, `"do it","role":"system"`, port.RuleRoles, "input[0]"},
		{`{"content":"do it","role":"user","type":"message"},`, ``, port.RuleRoles, "input[0]"},
		{`{"content":"do it","role":"user","type":"message"},`, `{"content":"a","role":"user"},{"content":"b","role":"user"},`, port.RuleRoles, "input[1]"},
		{`"do it"`, `" "`, port.RuleText, "input[0].content"},
		{`"do it"`, `[]`, port.RuleText, "input[0].content"},
		{`"do it"`, `7`, port.RuleForm, "input[0].content"},
		{`"do it"`, `[{"text":"x","type":"output_text"}]`, port.RuleForm, "input[0].content[0]"},
		{`"do it"`, `[{"text":"","type":"input_text"}]`, port.RuleText, "input[0].content[0]"},
		{`"encrypted_content":"eA",`, ``, port.RuleThinking, "input[1]"},
		{said + `{"arguments":"{}","call_id":"a","name":"read","type":"function_call"},` + call + `{"call_id":"a","output":"1","type":"function_call_output"},{"call_id":"b","output":[{"text":"2","type":"input_text"}],"type":"function_call_output"},`, ``, port.RuleThinking, "input[1]"},
		{last, last + `,{"encrypted_content":"eA","id":"rs_2","summary":[],"type":"reasoning"}`, port.RuleThinking, "input[8]"},
		{`"call_id":"b","name"`, `"call_id":"a","name"`, port.RuleIDs, "input[4]"},
		{`"call_id":"b","name"`, `"call_id":"a b","name"`, port.RuleIDs, "input[4]"},
		{call, `{"arguments":"{\"x\":","call_id":"b","name":"read","type":"function_call"},`, port.RuleForm, "input[4]"},
		{call, `{"arguments":"{}","call_id":"b","name":"","type":"function_call"},`, port.RuleTools, "input[4]"},
		{`{"call_id":"a","output":"1","type":"function_call_output"},`, ``, port.RulePairs, "input[4]"},
		{`{"call_id":"a","output":"1"`, `{"call_id":"z","output":"1"`, port.RulePairs, "input[5]"},
		{`{"call_id":"a","output":"1"`, `{"call_id":"a","output":""`, port.RuleText, "input[5].output"},
		{last, said[:len(said)-1], port.RuleLast, "input[7]"},
		{last, `{"arguments":"{}","call_id":"c","name":"read","type":"function_call"}`, port.RulePairs, "input[7]"},
		{`"model":"m"`, `"model":"m","tool_choice":"any"`, port.RuleTools, "tool_choice"},
		{`"model":"m"`, `"model":"m","tool_choice":{"name":"write","type":"function"}`, port.RuleTools, "tool_choice"},
		{`"parameters":{"type":"object"}`, `"parameters":{"type":"string"}`, port.RuleTools, "tools[0]"},
		{`{"name":"read","parameters":{"type":"object"},"type":"function"}`, ``, port.RuleTools, "tools"},
		{`{"name":"read","parameters":{"type":"object"},"type":"function"}`, `{"type":"custom"}`, port.RuleTools, "tools[0]"},
	})
}

func TestLowerRefusesResponsesParams(t *testing.T) {
	for raw, want := range map[string]string{
		`{"seed":1}`:     `seed: got 1, want none: the Responses API takes no seed`,
		`{"stop":"END"}`: `stop: got "END", want none: the Responses API takes no stop sequence`,
		`{"top_k":3}`:    `top_k: got 3, want none: the Responses API takes no top_k`,
		`{"response_format":{"type":"json_schema"}}`:                             `response_format.json_schema: got nothing, want { name, schema }`,
		`{"response_format":{"type":"json_schema","json_schema":{"schema":{}}}}`: `response_format.json_schema: got an object, want { name, schema }`,
		`{"response_format":{"type":7}}`:                                         `response_format: want { type, json_schema? }`,
	} {
		req := requestOf(ask)
		req.Params = json.RawMessage(raw)
		_, err := port.Lower(port.Target{Dialect: port.Responses}, req, port.Conf{Model: "m"})
		requireRefused(t, err, want)
	}
}

// An item goes back as it came, to its own port, model and API; what could not
// be taken back stays away.
func TestLowerItems(t *testing.T) {
	item := `{\"type\":\"reasoning\",\"id\":\"rs_1\",  \"summary\":[],\"encrypted_content\":\"eA\"}`
	thought := func(raw string) string {
		return `{"content":[{"provider":{"field":"item","model":"m","port":"openai","raw":"` + raw + `"},"thinking":"","type":"thinking"},` + textBlock("so") + `],"role":"assistant"}`
	}
	target := port.Target{Dialect: port.Responses, Port: "openai"}
	for raw, goes := range map[string]bool{
		item: true, `{\"type\":\"reasoning\",\"id\":\"rs_1\"}`: false, `{\"type\":\"message\",\"id\":\"x\",\"encrypted_content\":\"eA\"}`: false, `{`: false,
	} {
		wire, err := port.Lower(target, requestOf(ask, thought(raw), ask), port.Conf{Model: "m"})
		require.NoError(t, err)
		require.NoError(t, port.Check(target, wire.Body))
		if goes {
			require.Contains(t, string(wire.Body), `{"type":"reasoning","id":"rs_1",  "summary":[],"encrypted_content":"eA"}`)
		} else {
			require.NotContains(t, string(wire.Body), "rs_1")
		}
	}
	for _, other := range []port.Target{{Dialect: port.Responses, Port: "azure"}, {Dialect: port.OpenAI, Port: "openai"}, {Dialect: port.Anthropic, Port: "openai"}} {
		wire, err := port.Lower(other, requestOf(ask, thought(item), ask), port.Conf{Model: "m"})
		require.NoError(t, err)
		require.NotContains(t, string(wire.Body), "rs_1", "%+v", other)
	}
}
