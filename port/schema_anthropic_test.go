package port_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/port"
)

// formatted answers the schema that Anthropic gets for one.
func formatted(t *testing.T, schema string) (string, error) {
	t.Helper()
	format := json.RawMessage(`{"json_schema":{"name":"x","schema":` + schema + `},"type":"json_schema"}`)
	w, err := port.Lower(port.Target{Dialect: port.Anthropic}, requestOf(ask), port.Conf{Model: "m", ResponseFormat: format})
	if err != nil {
		return "", err
	}
	var body struct {
		Config struct {
			Format struct {
				Schema json.RawMessage `json:"schema"`
			} `json:"format"`
		} `json:"output_config"`
	}
	require.NoError(t, json.Unmarshal(w.Body, &body))
	return string(body.Config.Format.Schema), nil
}

// Anthropic wants every object closed and has no bounds: they become words, and
// everything else stays as it is and where it is.
func TestSchemaOfAResponse(t *testing.T) {
	const closed = `"additionalProperties":false`
	for schema, want := range map[string]string{
		`{"type":"object"}`:                  `{"type":"object"}`,
		`{"properties":{},"type":"object"}`:  `{"properties":{},"type":"object"}`,
		`{"type":"object",` + closed + `}`:   `{"type":"object",` + closed + `}`,
		`{"type":"string","enum":["b","a"]}`: `{"type":"string","enum":["b","a"]}`,
		`{"type":"array","items":true}`:      `{"type":"array","items":true}`,
		`{"minItems":1,"type":"array"}`:      `{"minItems":1,"type":"array"}`,
		`{"minItems":3,"type":"array"}`:      `{"type":"array","description":"{minItems: 3}"}`,
		`{"type":"integer","minimum":1.50}`:  `{"type":"integer","description":"{minimum: 1.50}"}`,
		`{"oneOf":[{"type":"string"}]}`:      `{"anyOf":[{"type":"string"}]}`,
		`{"properties":{"minimum":{"$ref":"#/$defs/a"}},"$defs":{"a":{"properties":{"b":{}}}}}`:                                                                                                                           `{"properties":{"minimum":{"$ref":"#/$defs/a"}},"$defs":{"a":{"properties":{"b":{}},` + closed + `}},` + closed + `}`,
		`{"type":"object","properties":{"z":{"type":"string","description":"a name","maxLength":9,"minLength":1},"a":{"type":"array","items":{"properties":{"n":{"type":"integer"}},"type":"object"}}},"required":["z"]}`: `{"type":"object","properties":{"z":{"type":"string","description":"a name\n\n{maxLength: 9, minLength: 1}"},"a":{"type":"array","items":{"properties":{"n":{"type":"integer"}},"type":"object",` + closed + `}}},"required":["z"],` + closed + `}`,
		`{"anyOf":[{"properties":{"a":{}}},{"allOf":[{"properties":{"b":{}}}]}]}`:                                                                                                                                         `{"anyOf":[{"properties":{"a":{}},` + closed + `},{"allOf":[{"properties":{"b":{}},` + closed + `}]}]}`,
	} {
		got, err := formatted(t, schema)
		require.NoError(t, err, schema)
		require.Equal(t, want, got)
	}
	for schema, want := range map[string]string{
		`{"properties":{"a":{}},"additionalProperties":true}`:                                     "response_format.json_schema.schema.additionalProperties: got true, want false: anthropic takes no object with keys that its schema does not name",
		`{"properties":{"a":{"anyOf":[{},{"additionalProperties":{"type":"string"}}]}}}`:          "response_format.json_schema.schema.properties.a.anyOf[1].additionalProperties: got an object, want false: anthropic takes no object with keys that its schema does not name",
		`{"$defs":{"a":{"items":{"properties":{"b":{"type":"x"}},"additionalProperties":null}}}}`: "response_format.json_schema.schema.$defs.a.items.additionalProperties: got null, want false: anthropic takes no object with keys that its schema does not name",
	} {
		_, err := formatted(t, schema)
		requireRefused(t, err, want)
	}
}
