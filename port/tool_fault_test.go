package port_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
)

// A list of which nothing is said holds anything: OpenAI wants that said.
func TestAListSaysWhatIsInIt(t *testing.T) {
	req := &kernel.Request{HasTools: true, Tools: []json.RawMessage{json.RawMessage(
		`{"input_schema":{"properties":{"deep":{"anyOf":[{"type":["array","null"]},{"type":"string"}]},"list":{"type":"array"},"of":{"items":{"type":"string"},"type":"array"}},"type":"object"},"name":"t"}`)}}
	for _, target := range dialects {
		wire, err := port.Lower(target, req, port.Conf{Model: "m", MaxTokens: 9})
		require.NoError(t, err)
		require.Contains(t, string(wire.Body), `"deep":{"anyOf":[{"items":{},"type":["array","null"]},{"type":"string"}]},"list":{"items":{},"type":"array"},"of":{"items":{"type":"string"},"type":"array"}`)
	}
}

// A choice among nothing is what a script has that listed nothing: it goes, and its
// tool stays.
func TestAChoiceAmongNothing(t *testing.T) {
	req := &kernel.Request{HasTools: true, Tools: []json.RawMessage{json.RawMessage(
		`{"input_schema":{"properties":{"a":{"enum":[],"type":"string"},"b":{"enum":["x"]},"enum":{"type":"string"}},"type":"object"},"name":"t"}`)}}
	for _, target := range dialects {
		wire, err := port.Lower(target, req, port.Conf{Model: "m", MaxTokens: 9})
		require.NoError(t, err)
		require.Contains(t, string(wire.Body), `"properties":{"a":{"type":"string"},"b":{"enum":["x"]},"enum":{"type":"string"}}`)
	}
}

// OpenAI wants the same of a format as of a tool.
func TestAListInAFormat(t *testing.T) {
	format := func(list string) json.RawMessage {
		return json.RawMessage(`{"json_schema":{"name":"n","schema":{"properties":{"l":` + list + `},"type":"object"}},"type":"json_schema"}`)
	}
	for _, target := range dialects[1:] {
		for _, list := range []string{`{"type":"array"}`, `{"items":{},"type":"array"}`} {
			wire, err := port.Lower(target, &kernel.Request{}, port.Conf{Model: "m", ResponseFormat: format(list)})
			require.NoError(t, err)
			require.Contains(t, string(wire.Body), `"l":{"items":{},"type":"array"}`)
		}
	}
}

// One tool that a provider refuses a request for is left out by name, and only
// there.
func TestOneToolDoesNotSpoilTheOthers(t *testing.T) {
	req := &kernel.Request{HasTools: true, Tools: []json.RawMessage{
		json.RawMessage(`{"input_schema":{"properties":{"$filter":{"type":"string"}},"type":"object"},"name":"odata"}`),
		json.RawMessage(`{"input_schema":{"properties":{"q":{"type":"string"}},"type":"object"},"name":"search"}`),
	}, Messages: []json.RawMessage{json.RawMessage(`{"content":"go","role":"user"}`)}}
	conf := port.Conf{Model: "m", MaxTokens: 9}
	for _, target := range append(dialects, port.Target{Dialect: port.Anthropic, Compatible: true}) {
		wire, err := port.Lower(target, req, conf)
		require.NoError(t, err)
		require.NoError(t, port.Check(target, wire.Body))
		require.Contains(t, string(wire.Body), "search")
		if target.Dialect == port.Anthropic && !target.Compatible {
			require.NotContains(t, string(wire.Body), "odata")
			require.Equal(t, []port.RefusedTool{{Name: "odata", Reason: `input_schema.properties: got the name "$filter", want 1 to 64 letters, digits, _, . or -`}}, wire.Refused)
		} else {
			require.Contains(t, string(wire.Body), "$filter")
			require.Empty(t, wire.Refused)
		}
	}
	req.ToolChoice = json.RawMessage(`{"name":"odata"}`)
	_, err := port.Lower(port.Target{Dialect: port.Anthropic}, req, conf)
	require.ErrorContains(t, err, `the tool "odata" cannot be offered: input_schema.properties: got the name "$filter"`)
}

// Thinking that no one signed goes back where nobody signs.
func TestUnsignedThinking(t *testing.T) {
	answer := `{"content":[{"provider":{"model":"m","port":"anthropic"},"signature":"","thinking":"hm","type":"thinking"},{"id":"a","input":{},"name":"t","type":"tool_use"}],"role":"assistant"}`
	result := `{"content":[{"content":"r","tool_use_id":"a","type":"tool_result"}],"role":"user"}`
	said := bodyWith(t, port.Target{Dialect: port.Anthropic, Compatible: true}, `{"content":"go","role":"user"}`, answer, result)
	require.Contains(t, said, `{"signature":"","thinking":"hm","type":"thinking"}`)
	require.NotContains(t, bodyWith(t, port.Target{Dialect: port.Anthropic}, `{"content":"go","role":"user"}`, answer, result), "hm")
}
