package luabind

import (
	"encoding/json"
)

// Servers write what the protocol does not know: PHP an empty object as a list,
// drafts of the protocol sizes as text, others a version as a number. The SDK reads
// a list as one, so a single such field takes every tool with it, or the whole
// server. It is given the fields that knl reads, where they are of the right kind;
// tools, and what a tool, a resource and a prompt answered, it is not given at all,
// for knl reads them itself, one by one.

// mcpKind is what a field holds: a text, a number, a truth value, an object of
// mcpFields, or a list of such.
type mcpKind any

type (
	mcpText   struct{}
	mcpNumber struct{}
	mcpTruth  struct{}
	mcpFields map[string]mcpKind
	mcpList   struct {
		of   mcpFields
		must string // a text that an element has, or it is passed over
	}
)

var (
	mcpAbility = mcpFields{"listChanged": mcpTruth{}, "subscribe": mcpTruth{}}
	mcpTitled  = func(more mcpFields) mcpFields {
		f := mcpFields{"name": mcpText{}, "title": mcpText{}, "description": mcpText{}}
		for key, kind := range more {
			f[key] = kind
		}
		return f
	}
)

// mcpResults is what the SDK gets of an answer, by method; of the others all.
var mcpResults = map[string]mcpFields{
	"initialize": {
		"protocolVersion": mcpText{}, "instructions": mcpText{},
		"serverInfo":   mcpTitled(mcpFields{"version": mcpText{}}),
		"capabilities": mcpFields{"tools": mcpAbility, "resources": mcpAbility, "prompts": mcpAbility, "logging": mcpFields{}},
	},
	"tools/list": {"nextCursor": mcpText{}, "tools": mcpList{}},
	"resources/list": {"nextCursor": mcpText{}, "resources": mcpList{
		mcpTitled(mcpFields{"uri": mcpText{}, "mimeType": mcpText{}, "size": mcpNumber{}}), "uri",
	}},
	"resources/templates/list": {"nextCursor": mcpText{}, "resourceTemplates": mcpList{
		mcpTitled(mcpFields{"uriTemplate": mcpText{}, "mimeType": mcpText{}}), "uriTemplate",
	}},
	"prompts/list": {"nextCursor": mcpText{}, "prompts": mcpList{
		mcpTitled(mcpFields{"arguments": mcpList{mcpTitled(mcpFields{"required": mcpTruth{}}), "name"}}), "name",
	}},
}

// mcpTidied answers the result of a method as the SDK can read it.
func mcpTidied(method string, result json.RawMessage) json.RawMessage {
	switch method {
	case "tools/call", "resources/read", "prompts/get":
		if !fieldsOf(result).has("inputRequests") { // those the SDK answers
			return json.RawMessage(`{}`)
		}
	}
	fields, known := mcpResults[method]
	object := map[string]json.RawMessage{}
	if !known || json.Unmarshal(result, &object) != nil || object == nil {
		return result
	}
	out, err := json.Marshal(fields.of(object))
	if err != nil {
		panic("BUG: a part of JSON does not encode: " + err.Error())
	}
	return out
}

// of answers the fields of an object that are what they should be.
func (f mcpFields) of(object map[string]json.RawMessage) map[string]any {
	out := map[string]any{}
	for key, kind := range f {
		raw, given := object[key]
		if !given || string(raw) == "null" {
			continue
		}
		switch kind := kind.(type) {
		case mcpFields:
			if string(raw) == "false" {
				continue
			}
			inner := map[string]json.RawMessage{}
			_ = json.Unmarshal(raw, &inner) // what is no object has no fields
			out[key] = kind.of(inner)
		case mcpList:
			if list, ok := kind.elements(raw); ok {
				out[key] = list
			} else {
				out[key] = raw // the SDK says what is wrong
			}
		default:
			if isOfKind(kind, raw) {
				out[key] = raw
			}
		}
	}
	return out
}

// elements answers what a list holds, but for what has not what it must have.
func (l mcpList) elements(raw json.RawMessage) ([]any, bool) {
	var given []json.RawMessage
	if json.Unmarshal(raw, &given) != nil {
		return nil, false
	}
	out := []any{}
	for _, element := range given {
		object := map[string]json.RawMessage{}
		if l.must == "" || json.Unmarshal(element, &object) != nil || !isOfKind(mcpText{}, object[l.must]) {
			continue
		}
		out = append(out, l.of.of(object))
	}
	return out, true
}

func isOfKind(kind mcpKind, raw json.RawMessage) bool {
	if len(raw) == 0 {
		return false
	}
	switch kind.(type) {
	case mcpText:
		return raw[0] == '"'
	case mcpNumber:
		var n int64
		return json.Unmarshal(raw, &n) == nil
	case mcpTruth:
		return raw[0] == 't' || raw[0] == 'f'
	}
	return false
}
