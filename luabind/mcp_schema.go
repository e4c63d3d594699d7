package luabind

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
)

// ArgSchema is the input_schema of a tool that came from outside, compiled as
// the strictest provider reads it: JSON Schema of 2020-12, whatever its $schema
// says.
type ArgSchema struct {
	JSON     json.RawMessage // the schema, mended
	compiled *jsonschema.Schema
}

// NewArgSchema compiles a schema. The error says why no request that offers the
// tool would be taken.
func NewArgSchema(raw json.RawMessage) (*ArgSchema, error) {
	if err := port.ToolFault(raw); err != nil {
		return nil, err
	}
	raw, err := mended(raw)
	if err != nil {
		return nil, err
	}
	compiled, err := kernel.CompileSchema(raw)
	if err != nil {
		return nil, fmt.Errorf("input_schema: %w", err)
	}
	return &ArgSchema{raw, compiled}, nil
}

// mended answers what a server means that cannot spell an object without keys:
// PHP writes it as a list. No schema at all takes any arguments.
func mended(raw json.RawMessage) (json.RawMessage, error) {
	top := map[string]json.RawMessage{}
	if text := string(raw); text != "" && text != "null" && text != "[]" {
		if err := json.Unmarshal(raw, &top); err != nil {
			return nil, fmt.Errorf("input_schema: got %.40s, want a JSON Schema of an object", raw)
		}
	}
	if top["type"] == nil {
		top["type"] = json.RawMessage(`"object"`)
	}
	if p := top["properties"]; len(p) == 0 || p[0] != '{' {
		top["properties"] = json.RawMessage(`{}`)
	}
	return json.Marshal(top)
}

// Check answers what the schema has against the arguments, or nil.
func (s *ArgSchema) Check(args json.RawMessage) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err == nil {
		err = s.compiled.Validate(doc)
	}
	if err != nil {
		return fmt.Errorf("the arguments do not match the tool's input_schema: %w", kernel.SchemaFault(err))
	}
	return nil
}
