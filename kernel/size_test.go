package kernel

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSizeIsThatOfCanonical(t *testing.T) {
	m := []json.RawMessage{json.RawMessage(`{"content":"a","role":"user"}`), json.RawMessage(`{"content":[],"role":"assistant"}`)}
	for _, r := range []*Request{
		{}, {Messages: m[:1]}, {Messages: m}, {Messages: m, System: quote("x")}, {HasTools: true},
		{Messages: m, HasTools: true, Params: json.RawMessage(`{"top_p":1}`), Extra: map[string]json.RawMessage{"x": quote("y")}},
	} {
		assert.Equal(t, len(r.Canonical()), r.Size(), "%s", r.Canonical())
	}
}
