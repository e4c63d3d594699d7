package port

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/knl-run/knl/port/internal/field"
)

// unchecked are the keywords of a schema that Anthropic's grammar does not have.
const unchecked = "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength maxItems uniqueItems"

// closedSchema makes of a schema what Anthropic takes: an object with properties
// says that it has no other keys, and what the grammar does not check stands in
// the description, where the model reads it. An object without properties stays as
// it is: closed it would always be empty, and the provider says what it wants.
func closedSchema(at string, raw json.RawMessage) (json.RawMessage, error) {
	if field.KindOf(raw) != '{' {
		return raw, nil
	}
	s := schema{at: at}
	err := field.Each(raw, s.take, at)
	return s.json(), err
}

// schema is one that is written, its members in the order in which they came: the
// model answers in that order.
type schema struct {
	at          string
	members     []string
	description string
	notes       []string // what is not checked
	closed      bool
}

func (s *schema) set(key string, value json.RawMessage) {
	s.members = append(s.members, string(field.Quoted(key))+":"+string(value))
}

func (s *schema) json() json.RawMessage {
	if len(s.notes) > 0 {
		s.description = strings.TrimSpace(s.description + joint + "{" + strings.Join(s.notes, ", ") + "}")
	}
	if s.description != "" {
		s.set("description", field.Quoted(s.description))
	}
	if s.closed {
		s.set("additionalProperties", json.RawMessage("false"))
	}
	return json.RawMessage("{" + strings.Join(s.members, ",") + "}")
}

// take takes a member.
func (s *schema) take(key string, value json.RawMessage) (err error) {
	at := s.at + "." + key
	switch key {
	case "additionalProperties":
		if s.closed = field.KindOf(value) == 'f'; !s.closed {
			return fmt.Errorf("%s: got %s, want false: anthropic takes no object with keys that its schema does not name", at, field.Got(value))
		}
		return nil
	case "description":
		if field.KindOf(value) != '"' {
			return fmt.Errorf("%s: got %s, want a string", at, field.Got(value))
		}
		return json.Unmarshal(value, &s.description) // held back for what is added to it
	case "properties", "$defs", "definitions":
		s.closed = s.closed || key == "properties" && field.KindOf(value) == '{' && strings.Contains(string(value), ":")
		value, err = closedMembers(at, value)
	case "items":
		value, err = closedSchema(at, value)
	case "oneOf", "anyOf", "allOf":
		if key == "oneOf" {
			key = "anyOf"
		}
		value, err = closedEach(at, value)
	default:
		if containsWord(unchecked, key) || key == "minItems" && !containsWord("0 1", string(value)) {
			s.notes = append(s.notes, key+": "+string(value))
			return nil
		}
	}
	s.set(key, value)
	return err
}

// closedMembers answers an object of schemas.
func closedMembers(at string, raw json.RawMessage) (json.RawMessage, error) {
	if field.KindOf(raw) != '{' {
		return raw, nil
	}
	var out schema
	err := field.Each(raw, func(key string, value json.RawMessage) error {
		closed, err := closedSchema(at+"."+key, value)
		out.set(key, closed)
		return err
	}, at)
	return out.json(), err
}

// closedEach answers a list of schemas.
func closedEach(at string, raw json.RawMessage) (json.RawMessage, error) {
	if field.KindOf(raw) != '[' {
		return raw, nil
	}
	list, err := field.Elements(raw)
	for i := range list {
		if err != nil {
			break
		}
		list[i], err = closedSchema(fmt.Sprintf("%s[%d]", at, i), list[i])
	}
	return field.Array(list), err
}
