package luabind

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

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
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("input_schema: %w", err)
	}
	if top, ok := doc.(map[string]any); ok {
		delete(top, "$schema")
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(closedLoader{})
	c.UseRegexpEngine(lenientRegexp)
	const at = "knl:///schema"
	if err := c.AddResource(at, doc); err != nil {
		return nil, fmt.Errorf("input_schema: %s", schemaWords(err))
	}
	compiled, err := c.Compile(at)
	if err != nil {
		return nil, fmt.Errorf("input_schema: %s", schemaWords(err))
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
		return errors.New("the arguments do not match the tool's input_schema: " + schemaWords(err))
	}
	return nil
}

// schemaWords answers the places that a schema's error names, without the schema.
func schemaWords(err error) string {
	text := err.Error()
	if head, places, more := strings.Cut(text, "\n"); more && strings.Contains(head, "knl:///") {
		text = places
	}
	return strings.TrimPrefix(strings.Join(strings.Fields(text), " "), "- ")
}

// closedLoader keeps a schema to itself.
type closedLoader struct{}

// Load refuses.
func (closedLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("$ref %q leads out of the schema", url)
}

// anyText matches everything.
type anyText string

// MatchString answers true.
func (anyText) MatchString(string) bool { return true }

// String answers the pattern.
func (a anyText) String() string { return string(a) }

// lenientRegexp compiles a pattern; one in the language of JavaScript that Go
// does not know matches everything, for the server knows it.
func lenientRegexp(pattern string) (jsonschema.Regexp, error) {
	if re, err := regexp.Compile(pattern); err == nil {
		return re, nil
	}
	return anyText(pattern), nil
}
