package port

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/knl-run/knl/port/internal/field"
)

// tool is what a model is told of a tool.
type tool struct {
	name        string // the own one
	description string
	schema      json.RawMessage // object-typed, nothing composed at the top
}

// readTools reads the tools in the order of their names and gives each its
// wire name: first those that need not change, and all of them before any name
// of the history.
func (l *lowering) readTools(raws []json.RawMessage) error {
	for i, raw := range raws {
		t, err := readTool(fmt.Sprintf("tools[%d]", i), raw)
		if err != nil {
			return err
		}
		if reason := l.target.refuses(t); reason != "" {
			l.refused = append(l.refused, RefusedTool{t.name, reason})
			continue
		}
		l.tools = append(l.tools, t)
	}
	sort.SliceStable(l.tools, func(i, j int) bool { return l.tools[i].name < l.tools[j].name })
	for i, t := range l.tools {
		if i > 0 && l.tools[i-1].name == t.name {
			return fmt.Errorf("tools: two tools are named %q, want each name once", t.name)
		}
		if l.names.stem(t.name) == t.name {
			l.names.same(t.name)
		}
	}
	for _, t := range l.tools {
		l.names.same(t.name)
	}
	return nil
}

// RefusedTool is a tool that its provider would refuse the whole request for.
type RefusedTool struct{ Name, Reason string }

// propertyName is what Anthropic takes for the name of an argument.
var propertyName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// refuses answers why the provider of t takes no request with this tool, or
// nothing. A server that only resembles it has no such rule.
func (t Target) refuses(tool tool) string {
	if t.Dialect != Anthropic || t.Compatible {
		return ""
	}
	return nameFault(tool.schema)
}

// nameFault names an argument that Anthropic does not take, the first in order.
func nameFault(schema []byte) string {
	var top struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(schema, &top)
	for _, name := range slices.Sorted(maps.Keys(top.Properties)) {
		if !propertyName.MatchString(name) {
			return fmt.Sprintf("input_schema.properties: got the name %q, want 1 to 64 letters, digits, _, . or -", name)
		}
	}
	return ""
}

func readTool(at string, raw json.RawMessage) (tool, error) {
	var in struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
	}
	if field.KindOf(raw) != '{' {
		return tool{}, fmt.Errorf("%s: got %s, want { name, description?, input_schema? }", at, field.Got(raw))
	}
	if err := jsonv2.Unmarshal(raw, &in); err != nil {
		return tool{}, fmt.Errorf("%s: want { name, description?, input_schema? }: %w", at, err)
	}
	if in.Name == "" {
		return tool{}, fmt.Errorf("%s.name: got nothing, want the name of a tool", at)
	}
	t := tool{name: in.Name, description: in.Description}
	if err := t.setSchema(in.InputSchema); err != nil {
		return tool{}, fmt.Errorf("tool %q: %w", in.Name, err)
	}
	return t, nil
}

// composers are the keys that no provider takes at the top of a tool's schema.
var composers = []string{"anyOf", "oneOf", "allOf", "enum", "not"}

// setSchema makes of a schema what every provider takes. A schema that is
// composed at the top keeps its properties, and the model reads the whole of
// it in the description: one such tool must not break the others.
func (t *tool) setSchema(raw json.RawMessage) error {
	top := field.Map{}
	switch {
	case len(raw) == 0 || field.KindOf(raw) == 'n' || string(raw) == "[]":
	case field.KindOf(raw) != '{':
		return fmt.Errorf("input_schema: got %s, want a JSON Schema of an object", field.Got(raw))
	default:
		if err := json.Unmarshal(raw, &top); err != nil {
			return fmt.Errorf("input_schema: not JSON: %w", err)
		}
	}
	if kind := top["type"]; kind != nil && !allowsObject(kind) {
		return fmt.Errorf("input_schema: got type %s, want \"object\": the arguments of a tool have names", kind)
	}
	top["type"] = json.RawMessage(`"object"`)
	if t.flatten(top) {
		t.description = strings.TrimPrefix(t.description+joint, joint) + "The arguments must satisfy this JSON Schema: " + string(raw)
	}
	if field.KindOf(top["properties"]) != '{' {
		top["properties"] = json.RawMessage(`{}`)
	}
	t.schema = withItems(top.JSON())
	return nil
}

func allowsObject(kind json.RawMessage) bool {
	var one string
	var many []string
	if json.Unmarshal(kind, &one) == nil {
		return one == "object"
	}
	_ = json.Unmarshal(kind, &many)
	for _, k := range many {
		if k == "object" {
			return true
		}
	}
	return false
}

// flatten takes the composers from top, adds the properties of their branches,
// and says whether there were any.
func (t *tool) flatten(top field.Map) bool {
	properties := field.Map{}
	if field.KindOf(top["properties"]) == '{' {
		_ = json.Unmarshal(top["properties"], &properties)
	}
	found := false
	for _, key := range composers {
		raw, composed := top[key]
		if !composed {
			continue
		}
		found = true
		delete(top, key)
		var branches []struct {
			Properties field.Map `json:"properties"`
		}
		_ = json.Unmarshal(raw, &branches)
		for _, branch := range branches {
			for name, schema := range branch.Properties {
				if _, own := properties[name]; !own {
					properties[name] = schema
				}
			}
		}
	}
	if found {
		top["properties"] = properties.JSON()
	}
	return found
}

// historic answers the tools that the history calls and the request does not
// offer, in the order of their wire names, with nothing said about them.
func (l *lowering) historic() []tool {
	offered := map[string]bool{}
	for _, t := range l.tools {
		offered[t.name] = true
	}
	var out []tool
	for _, turn := range l.turns {
		for _, call := range turn.calls() {
			if !offered[call.name] {
				offered[call.name] = true
				out = append(out, tool{name: call.name, schema: json.RawMessage(`{"properties":{},"type":"object"}`)})
			}
		}
	}
	sort.Slice(out, func(i, j int) bool { return l.names.same(out[i].name) < l.names.same(out[j].name) })
	return out
}
