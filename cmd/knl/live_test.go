package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
)

func TestShortNumbers(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1.0k", 1999: "1.9k", 9999: "9.9k", 10000: "10k", 999999: "999k",
		1000000: "1.0M", 25600000: "25M", 3e9: "3.0G", 4e12: "4000G", -5: "-5",
	} {
		require.Equal(t, want, short(n), "%d", n)
	}
}

func TestWhatDoesNotFitIsCounted(t *testing.T) {
	lines := []string{"a", "b", "c", "d"}
	require.Equal(t, lines, fitted(lines, 4))
	require.Equal(t, []string{"a", "b", "  and 2 more"}, fitted(lines, 3))
	require.Equal(t, []string{"a", "b", "c", "d"}, lines)
}

// What a session does is read from its log: a call in flight, the tools that
// run, or the script between them.
func TestDoing(t *testing.T) {
	at := time.UnixMilli(1_000_000)
	d := &drive{calls: map[string]string{}}
	for _, step := range []struct{ kind, data, want string }{
		{kernel.LLMRequest, `{}`, "model 5s"},
		{kernel.LLMResponse, `{"usage":{"input_tokens":3,"cache_read_tokens":4,"output_tokens":5}}`, "script"},
		{kernel.ToolCall, `{"call_id":"1","name":"sh"}`, "sh 5s"},
		{kernel.ToolCall, `{"call_id":"2","name":"re\u001b[2Jad"}`, `re\x1b[2Jad, sh 5s`},
		{kernel.ToolCall, `{"call_id":"3","name":"sh"}`, `re\x1b[2Jad, sh 5s`},
		{kernel.ToolResult, `{"call_id":"2"}`, "sh 5s"},
		{kernel.ToolResult, `{"call_id":"1"}`, "sh 5s"},
		{kernel.ToolResult, `{"call_id":"3"}`, "script"},
		{kernel.LLMRequest, `{"usage":"odd","name":7}`, "model 5s"},
		{kernel.LLMCallFailed, `{}`, "script"},
	} {
		d.take(&kernel.Event{Kind: step.kind, Data: []byte(step.data), EpochMS: at.UnixMilli()})
		require.Equal(t, step.want, d.doing(at.Add(5*time.Second)), "%s %s", step.kind, step.data)
	}
	require.Equal(t, []int64{2, 7, 5}, []int64{d.beats, d.in, d.out})
	d.take(&kernel.Event{Kind: kernel.SessionClosed, Data: []byte(`{}`)})
	require.True(t, d.ended())
}
