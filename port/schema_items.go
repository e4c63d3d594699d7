package port

import (
	"encoding/json"

	"github.com/knl-run/knl/port/internal/field"
)

// Where schemas stand in a schema.
const (
	oneSchema    = " items additionalProperties contains not if then else propertyNames unevaluatedItems unevaluatedProperties "
	namedSchemas = " properties patternProperties $defs definitions dependentSchemas "
	eachSchema   = " anyOf oneOf allOf prefixItems "
)

// withItems answers a schema in which every list says what is in it: anything,
// where nothing is said. That is what its silence means, and OpenAI refuses it, as it
// does a choice among nothing, which goes. Another schema stays byte for byte.
func withItems(raw json.RawMessage) json.RawMessage {
	top := field.Map{}
	if field.KindOf(raw) != '{' || json.Unmarshal(raw, &top) != nil {
		return raw
	}
	changed := false
	for key, value := range top {
		mended := itemsUnder(key, value)
		changed = changed || string(mended) != string(value)
		top[key] = mended
	}
	if isList(top["type"]) && top["items"] == nil {
		top["items"], changed = json.RawMessage(`{}`), true
	}
	if choice, err := field.Elements(top["enum"]); err == nil && len(choice) == 0 && top["enum"] != nil {
		delete(top, "enum")
		changed = true
	}
	if !changed {
		return raw
	}
	return top.JSON()
}

// formatWithItems answers a response_format with such a schema.
func formatWithItems(raw json.RawMessage) json.RawMessage {
	format, named := field.Map{}, field.Map{}
	if json.Unmarshal(raw, &format) != nil || json.Unmarshal(format["json_schema"], &named) != nil || named["schema"] == nil {
		return raw
	}
	mended := withItems(named["schema"])
	if string(mended) == string(named["schema"]) {
		return raw
	}
	named["schema"] = mended
	format["json_schema"] = named.JSON()
	return format.JSON()
}

// itemsUnder does so for the schemas that stand under a key.
func itemsUnder(key string, value json.RawMessage) json.RawMessage {
	switch kind := field.KindOf(value); {
	case containsWord(oneSchema, key):
		return withItems(value)
	case kind == '{' && containsWord(namedSchemas, key):
		named, changed := field.Map{}, false
		_ = json.Unmarshal(value, &named)
		for name, schema := range named {
			named[name] = withItems(schema)
			changed = changed || string(named[name]) != string(schema)
		}
		if changed {
			return named.JSON()
		}
	case kind == '[' && containsWord(eachSchema, key):
		list, _ := field.Elements(value)
		changed := false
		for i, schema := range list {
			list[i] = withItems(schema)
			changed = changed || string(list[i]) != string(schema)
		}
		if changed {
			return field.Array(list)
		}
	}
	return value
}

// isList says whether a type allows a list.
func isList(kind json.RawMessage) bool {
	var one string
	var many []string
	if json.Unmarshal(kind, &one) == nil {
		return one == "array"
	}
	_ = json.Unmarshal(kind, &many)
	for _, k := range many {
		if k == "array" {
			return true
		}
	}
	return false
}
