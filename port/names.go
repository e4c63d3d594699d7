package port

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
)

// ToolNames answers what every provider takes for each of names, in their
// order: a legal name itself, another one its legal letters. Where two would be
// one, each that is not legal gets a mark of its own behind it, so that a name
// that stood for one tool never comes to stand for another when tools are added.
func ToolNames(names []string) []string {
	l := newLegal(nameLimit, "tool")
	heirs := map[string]int{} // by what names would become
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		heirs[l.stem(name)]++
	}
	out := make([]string, len(names))
	for i, name := range names {
		if out[i] = l.stem(name); out[i] != name && heirs[out[i]] > 1 {
			mark := fmt.Sprintf("-%x", sha256.Sum256([]byte(name)))[:9]
			out[i] = out[i][:min(len(out[i]), nameLimit-len(mark))] + mark
		}
	}
	return out
}

// ToolFault answers why [Lower] would refuse a request that offers a tool with
// this input schema, or nil. A nil schema is one that takes anything.
func ToolFault(schema json.RawMessage) error { return (&tool{}).setSchema(schema) }
