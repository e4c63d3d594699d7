package port

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestToolNames(t *testing.T) {
	long := strings.Repeat("a", 70)
	for _, c := range []struct{ names, want []string }{
		{nil, []string{}},
		{[]string{"read", "Write-2"}, []string{"read", "Write-2"}},
		{[]string{"fs.read"}, []string{"fs_read"}},
		{[]string{"fs/read", "fs.read", "fs_read"}, []string{"fs_read-96379919", "fs_read-4074bc02", "fs_read"}},
		{[]string{"fs_read", "fs.read", "fs/read"}, []string{"fs_read", "fs_read-4074bc02", "fs_read-96379919"}},
		{[]string{"fs.read", "fs/read"}, []string{"fs_read-4074bc02", "fs_read-96379919"}},
		{[]string{"日本", "..."}, []string{"tool-cf2abf0c", "tool-ab5df625"}},
		{[]string{long}, []string{long[:64]}},
		{[]string{long, long + "b"}, []string{long[:55] + "-6bd5e503", long[:55] + "-ffe7dc5b"}},
	} {
		assert.Equal(t, c.want, ToolNames(c.names), "%q", c.names)
	}
}

func TestToolFault(t *testing.T) {
	for schema, want := range map[string]string{
		``:                                 "",
		`{}`:                               "",
		`{"type":"object"}`:                "",
		`{"anyOf":[{"type":"object"}]}`:    "",
		`{"type":["object","null"]}`:       "",
		`{"type":"string"}`:                `input_schema: got type "string", want "object": the arguments of a tool have names`,
		`true`:                             "input_schema: got true, want a JSON Schema of an object",
		`{"type":"object","properties":3}`: "",
	} {
		err := ToolFault(json.RawMessage(schema))
		if want == "" {
			assert.NoError(t, err, schema)
		} else {
			assert.EqualError(t, err, want, schema)
		}
	}
}
