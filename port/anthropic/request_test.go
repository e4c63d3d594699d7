package anthropic_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/wiretest"
)

func number(v float64) *float64 { return &v }

// What a model does not take is turned into what it takes, or left out and said.
func TestFitted(t *testing.T) {
	old := map[string]string{"anthropic-version": "2023-06-01"}
	schema := json.RawMessage(`{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","properties":{}}}}`)
	for name, c := range map[string]struct {
		conf   port.Conf
		params string
		body   map[string]string // "": the member is not there
		warned []string
	}{
		"a limit of its own": {port.Conf{MaxTokens: 77}, "", map[string]string{"max_tokens": "77"}, nil},
		"a roomy limit":      {port.Conf{}, "", map[string]string{"max_tokens": "32000", "thinking": "", "output_config": ""}, nil},
		"another's model":    {port.Conf{Model: "glm-9"}, "", map[string]string{"max_tokens": "4096"}, nil},
		"a stream":           {port.Conf{}, "", map[string]string{"stream": "true"}, nil},
		"no stream":          {port.Conf{NoStream: true}, "", map[string]string{"stream": ""}, nil},
		"knobs": {port.Conf{Temperature: number(0.5), TopP: number(0.9), TopK: 4}, "", map[string]string{"temperature": "", "top_p": "", "top_k": ""},
			[]string{"anthropic: claude-opus-4-7 takes no temperature, it was left out of the request", "anthropic: claude-opus-4-7 takes no top_k, it was left out of the request", "anthropic: claude-opus-4-7 takes no top_p, it was left out of the request"}},
		"knobs of an old wire":          {port.Conf{Model: "claude-sonnet-4-6", Temperature: number(0.5), Headers: old}, "", map[string]string{"temperature": "0.5"}, nil},
		"knobs of an old wire, thought": {port.Conf{Model: "claude-haiku-4-5", Temperature: number(0.5), Headers: old, Thinking: port.Thinking{On: true}}, "", map[string]string{"temperature": ""}, []string{"anthropic: claude-haiku-4-5 takes no temperature, it was left out of the request"}},
		"knobs of an old wire, refused": {port.Conf{Temperature: number(0.5), Headers: old}, "", map[string]string{"temperature": ""}, []string{"anthropic: claude-opus-4-7 takes no temperature, it was left out of the request"}},
		"knobs of another's model":      {port.Conf{Model: "glm-9", Temperature: number(0.5), TopP: number(0.9), TopK: 4, Thinking: port.Thinking{On: true, BudgetTokens: 1024}}, "", map[string]string{"temperature": "0.5", "top_p": "0.9", "top_k": "4"}, nil},
		"knobs of a proxy's Claude":     {port.Conf{Model: "bedrock/claude-9", Temperature: number(0.5)}, "", map[string]string{"temperature": ""}, []string{"anthropic: bedrock/claude-9 takes no temperature, it was left out of the request"}},
		"adaptive":                      {port.Conf{Thinking: port.Thinking{On: true, Effort: "xhigh"}}, "", map[string]string{"thinking": `{"type":"adaptive"}`, "output_config": `{"effort":"xhigh"}`}, nil},
		"adaptive for a budget": {port.Conf{Thinking: port.Thinking{On: true, BudgetTokens: 2000}}, "", map[string]string{"thinking": `{"type":"adaptive"}`},
			[]string{"anthropic: claude-opus-4-7 decides itself how long it thinks, thinking.budget_tokens was left out of the request: thinking.effort asks for more or less"}},
		"a budget as asked":       {port.Conf{Model: "claude-opus-4-6", Thinking: port.Thinking{On: true, BudgetTokens: 2000}}, "", map[string]string{"thinking": `{"budget_tokens":2000,"type":"enabled"}`}, nil},
		"a budget for an effort":  {port.Conf{Model: "claude-haiku-4-5-20251001", Thinking: port.Thinking{On: true, Effort: "low"}}, "", map[string]string{"thinking": `{"budget_tokens":2048,"type":"enabled"}`, "output_config": ""}, nil},
		"a budget for nothing":    {port.Conf{Model: "claude-haiku-4-5", Thinking: port.Thinking{On: true}}, "", map[string]string{"thinking": `{"budget_tokens":8192,"type":"enabled"}`}, nil},
		"a budget of half":        {port.Conf{Model: "claude-haiku-4-5"}, `{"max_tokens":4000,"thinking":{"effort":"max"}}`, map[string]string{"thinking": `{"budget_tokens":2000,"type":"enabled"}`, "max_tokens": "4000"}, nil},
		"no room for a budget":    {port.Conf{Model: "claude-haiku-4-5", MaxTokens: 2000, Thinking: port.Thinking{On: true}}, "", map[string]string{"thinking": ""}, []string{"anthropic: claude-haiku-4-5 has no room to think within max_tokens 2000, thinking was left out of the request: it takes 1024 tokens and as many again for the answer"}},
		"thinking turned off":     {port.Conf{Model: "claude-haiku-4-5", Thinking: port.Thinking{On: true}}, `{"thinking":false}`, map[string]string{"thinking": ""}, nil},
		"the least effort":        {port.Conf{Thinking: port.Thinking{On: true, Effort: "minimal"}}, "", map[string]string{"output_config": `{"effort":"low"}`}, []string{`anthropic: claude-opus-4-7 takes no thinking.effort "minimal", the request asks for "low"`}},
		"an effort it lacks":      {port.Conf{Model: "claude-opus-4-5", Thinking: port.Thinking{On: true, Effort: "max"}}, "", map[string]string{"output_config": `{"effort":"high"}`}, []string{`anthropic: claude-opus-4-5 takes no thinking.effort "max", the request asks for "high"`}},
		"a format":                {port.Conf{ResponseFormat: schema}, "", map[string]string{"output_config": `{"format":{"schema":{"type":"object","properties":{}},"type":"json_schema"}}`}, nil},
		"a format and a budget":   {port.Conf{Model: "claude-haiku-4-5", ResponseFormat: schema, Thinking: port.Thinking{On: true, Effort: "low"}}, "", map[string]string{"output_config": `{"format":{"schema":{"type":"object","properties":{}},"type":"json_schema"}}`}, nil},
		"thinking off, another's": {port.Conf{Model: "glm-9", Thinking: port.Thinking{Off: true}}, "", map[string]string{"thinking": `{"type":"disabled"}`}, nil},
		"thinking off, its own":   {port.Conf{Thinking: port.Thinking{Off: true}}, "", map[string]string{"thinking": ""}, nil},
		"stop sequences":          {port.Conf{Stop: []string{"END"}}, "", map[string]string{"stop_sequences": `["END"]`}, nil},
		"a model that came later": {port.Conf{Model: "claude-opus-9", Thinking: port.Thinking{On: true, Effort: "high"}}, "", map[string]string{"thinking": `{"type":"adaptive"}`, "output_config": `{"effort":"high"}`, "max_tokens": "32000"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.server.Reply(wiretest.Reply{}, wiretest.Reply{})
			req := hello()
			if c.params != "" {
				req.Params = json.RawMessage(c.params)
			}
			for range 2 { // what is left out is said once
				_, err := r.call(c.conf, req, nil)
				require.NoError(t, err)
			}
			for key, want := range c.body {
				require.Equal(t, want, r.body(key), key)
			}
			require.Equal(t, c.warned, r.warned)
		})
	}
}

func TestRefusedRequests(t *testing.T) {
	seed := int64(3)
	for want, c := range map[string]struct {
		conf port.Conf
		req  kernel.Request
	}{
		"seed: got 3, want none":                                {port.Conf{Seed: &seed}, kernel.Request{}},
		"thinking.budget_tokens: got 40000":                     {port.Conf{Model: "claude-opus-4-6", Thinking: port.Thinking{On: true, BudgetTokens: 40000}}, kernel.Request{}},
		`request.tool_choice: unknown tool "x"`:                 {port.Conf{}, kernel.Request{ToolChoice: json.RawMessage(`{"name":"x"}`)}},
		`response_format: got type "json_object"`:               {port.Conf{ResponseFormat: json.RawMessage(`{"type":"json_object"}`)}, kernel.Request{}},
		"request.stream: a filter set what the port writes":     {port.Conf{}, kernel.Request{Extra: map[string]json.RawMessage{"stream": json.RawMessage("false")}}},
		`params: unknown key "temprature" (did you mean "tempe`: {port.Conf{}, kernel.Request{Params: json.RawMessage(`{"temprature":1}`)}},
	} {
		r := newRig(t)
		req := c.req
		req.Messages = hello().Messages
		_, err := r.call(c.conf, &req, nil)
		require.Equal(t, kernel.InvalidRequest, failure(t, err).Kind)
		require.ErrorContains(t, err, want)
		require.Empty(t, r.server.Requests())
	}
}

func TestToolChoices(t *testing.T) {
	for choice, want := range map[string]string{`"auto"`: `{"type":"auto"}`, `"none"`: `{"type":"none"}`, `"required"`: `{"type":"any"}`, `{"name":"a.b"}`: `{"name":"a_b","type":"tool"}`} {
		r := newRig(t)
		r.server.Reply(wiretest.Reply{})
		req := hello()
		req.Tools, req.ToolChoice = []json.RawMessage{json.RawMessage(`{"name":"a.b"}`)}, json.RawMessage(choice)
		_, err := r.call(port.Conf{}, req, nil)
		require.NoError(t, err)
		require.Equal(t, want, r.body("tool_choice"))
	}
}

// TestGoldenBody pins the bytes of a body with everything in it; UPDATE=1 in
// the environment writes them anew.
func TestGoldenBody(t *testing.T) {
	r := newRig(t)
	r.server.Reply(wiretest.Reply{})
	req := &kernel.Request{
		System: json.RawMessage(`"You are careful."`),
		Tools:  []json.RawMessage{json.RawMessage(`{"description":"Reads a file.","input_schema":{"properties":{"path":{"type":"string"}},"type":"object"},"name":"fs.read"}`), json.RawMessage(`{"name":"now"}`)},
		Messages: []json.RawMessage{
			json.RawMessage(`{"content":[{"text":"look","type":"text"},{"source":{"data":"aGk=","media_type":"image/png","type":"base64"},"type":"image"}],"role":"user"}`),
			json.RawMessage(`{"content":[` + bag + `"signature":"c2ln","thinking":"hm","type":"thinking"},{"id":"01J/1","input":{"path":"a"},"name":"fs.read","type":"tool_use"},{"id":"toolu_2","input":{},"name":"now","type":"tool_use"}],"role":"assistant"}`),
			json.RawMessage(`{"content":[{"content":[{"source":{"data":"aGk=","media_type":"application/pdf","type":"base64"},"type":"document"}],"tool_use_id":"01J/1","type":"tool_result"},{"content":"","is_error":true,"tool_use_id":"toolu_2","type":"tool_result"}],"role":"user"}`),
		},
	}
	conf := port.Conf{Thinking: port.Thinking{On: true, Effort: "high"}, Stop: []string{"END"}, ResponseFormat: json.RawMessage(`{"type":"json_schema","json_schema":{"schema":{"type":"object"}}}`)}
	_, err := r.call(conf, req, nil)
	require.NoError(t, err)
	var pretty []byte
	pretty, err = json.MarshalIndent(r.server.Last().Body, "", "  ")
	require.NoError(t, err)
	const path = "testdata/body.json"
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, append(pretty, '\n'), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(pretty)+"\n")
}

// Thinking that cannot be asked for is given up, and that is said.
func TestThinkingGivenUp(t *testing.T) {
	r := newRig(t)
	r.server.Reply(wiretest.Reply{}, wiretest.Reply{})
	req := hello()
	req.Tools, req.HasTools = []json.RawMessage{json.RawMessage(`{"name":"t"}`)}, true
	req.ToolChoice = json.RawMessage(`"required"`)
	for range 2 {
		_, err := r.call(port.Conf{Thinking: port.Thinking{On: true}}, req, nil)
		require.NoError(t, err)
	}
	require.Empty(t, r.body("thinking"))
	require.Equal(t, []string{"anthropic: claude-opus-4-7 is not asked to think where a tool is forced, nor in a tool loop that began without: thinking was left out of the request"}, r.warned)
}
