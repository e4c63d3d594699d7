package port

import (
	"encoding/json"
	"slices"
)

// ToolNames answers what every provider takes for each of names, in their
// order: the name itself where it is legal, else what [Lower] would make of it.
// No two names become one, and the same set gives the same answer in any order.
func ToolNames(names []string) []string {
	l := newLegal(nameLimit, "tool")
	sorted := slices.Sorted(slices.Values(names))
	for _, name := range sorted {
		if l.isLegal(name) {
			l.same(name)
		}
	}
	for _, name := range sorted {
		l.same(name)
	}
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = l.same(name)
	}
	return out
}

// ToolFault answers why [Lower] would refuse a request that offers a tool with
// this input schema, or nil. A nil schema is one that takes anything.
func ToolFault(schema json.RawMessage) error { return (&tool{}).setSchema(schema) }
