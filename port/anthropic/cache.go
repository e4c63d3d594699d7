package anthropic

import (
	"encoding/json"

	"github.com/knl-run/knl/port/internal/field"
)

// The provider keeps the prompt up to a mark and reads it back when a later
// request begins with the same blocks. It takes four marks. Nobody but mark
// sets one, at places that follow from the conversation alone:
//
//	tools     behind the last tool
//	system    behind the last block of the system prompt
//	last      behind the last message, which is the user's: written now
//	before    behind the user's message before it: read now
//
// The next request has two messages more. Its "before" stands where this one's
// "last" stood, so whatever was written is found again, however many blocks
// came between. The lifetime of an entry is the provider's default.
//
// A filter that sets cache_control on the body lets the provider set the marks,
// and then no other is set.

// mark sets the marks of a body.
func mark(top field.Map) {
	if top["cache_control"] != nil {
		return
	}
	markLast(top, "tools")
	markLast(top, "system")
	messages, err := field.Elements(top["messages"])
	if err != nil {
		panic("BUG: port.Lower wrote messages that are no list: " + err.Error())
	}
	for i, left := len(messages)-1, 2; i >= 0 && left > 0; i-- {
		var m field.Map
		if json.Unmarshal(messages[i], &m) == nil && string(m["role"]) == `"user"` {
			markLast(m, "content")
			messages[i] = m.JSON()
			left--
		}
	}
	top["messages"] = field.Array(messages)
}

// markLast marks the last block of a list, where there is one. It never is
// thinking, which takes no mark: that stands in answers.
func markLast(in field.Map, key string) {
	blocks, err := field.Elements(in[key])
	if err != nil || len(blocks) == 0 {
		return
	}
	last := len(blocks) - 1
	var b field.Map
	if json.Unmarshal(blocks[last], &b) != nil {
		return
	}
	b["cache_control"] = json.RawMessage(`{"type":"ephemeral"}`)
	blocks[last] = b.JSON()
	in[key] = field.Array(blocks)
}
