package luabind

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sampleJSON is a request of 2 KB as a port builds it.
const sampleJSON = `{"max_tokens":4096,"messages":[` +
	`{"content":[{"text":"Fix the failing test in parser_test.go and explain what was wrong. Keep the change small; the public API stays as it is.","type":"text"}],"role":"user"},` +
	`{"content":[{"text":"I will look at the test first, then at the code it covers.","type":"text"},{"id":"toolu_01A09q90qw90lq917835lq9","input":{"limit":120,"offset":1,"path":"internal/parser/parser_test.go"},"name":"fs_read","type":"tool_use"}],"role":"assistant"},` +
	`{"content":[{"content":"package parser\n\nimport \"testing\"\n\nfunc TestParse(t *testing.T) {\n\tgot := Parse(\"a+b\")\n\tif got != 3 {\n\t\tt.Fatalf(\"got %d, want 3\", got)\n\t}\n}\n","is_error":false,"tool_use_id":"toolu_01A09q90qw90lq917835lq9","type":"tool_result"}],"role":"user"},` +
	`{"content":[{"id":"toolu_01B","input":{"path":"internal/parser/parser.go"},"name":"fs_read","type":"tool_use"}],"role":"assistant"},` +
	`{"content":[{"content":"package parser\n\n// Parse counts the tokens of s.\nfunc Parse(s string) int {\n\treturn len(s) - 1\n}\n","is_error":false,"tool_use_id":"toolu_01B","type":"tool_result"}],"role":"user"}],` +
	`"model":"some-model-2026-01-01","system":"You are a careful engineer. Answer in short sentences.","temperature":0.7,` +
	`"tools":[{"description":"Reads lines of a file below the project root.","input_schema":{"properties":{"limit":{"type":"integer"},"offset":{"type":"integer"},"path":{"type":"string"}},"required":["path"],"type":"object"},"name":"fs_read"},` +
	`{"description":"Replaces one exact piece of text in a file.","input_schema":{"properties":{"path":{"type":"string"},"replace":{"type":"string"},"search":{"type":"string"}},"required":["path","search","replace"],"type":"object"},"name":"fs_replace"}]}`

// The benchmarks report how long the bridge takes beside encoding/json on the
// same text in the same run.

func BenchmarkFromJSON(b *testing.B) {
	l := newBridgeState(b)
	raw := []byte(sampleJSON)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := FromJSON(l, raw); err != nil {
			b.Fatal(err)
		}
	}
	reportRatio(b, func() {
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			b.Fatal(err)
		}
	})
}

func BenchmarkAppendJSON(b *testing.B) {
	l := newBridgeState(b)
	v, err := FromJSON(l, []byte(sampleJSON))
	require.NoError(b, err)
	out, err := AppendJSON(nil, v, nil)
	require.NoError(b, err)
	require.Equal(b, sampleJSON, string(out))
	b.ReportAllocs()
	for b.Loop() {
		if out, err = AppendJSON(out[:0], v, nil); err != nil {
			b.Fatal(err)
		}
	}
	var reference any
	require.NoError(b, json.Unmarshal(out, &reference))
	reportRatio(b, func() {
		if _, err := json.Marshal(reference); err != nil {
			b.Fatal(err)
		}
	})
}

// reportRatio runs reference as often as the benchmark ran.
func reportRatio(b *testing.B, reference func()) {
	ours := b.Elapsed()
	begin := time.Now()
	for range b.N {
		reference()
	}
	b.ReportMetric(float64(ours)/float64(time.Since(begin)), "x-encoding/json")
}
