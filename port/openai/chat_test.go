package openai_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/port/wiretest"
)

// What a server says once more is heard once: the answer so far beside each delta,
// and all of it at the end.
func TestHeardOnce(t *testing.T) {
	const (
		hello = `[{"type":"text","text":"Hello, hello"}]`
		mused = `[{"type":"thinking","thinking":"hm hm","provider":{"port":"vllm","model":"gpt-4o","field":"reasoning"}},{"type":"text","text":"x"}]`
		used  = `[{"type":"text","text":"x"},{"type":"tool_use","id":"c","name":"fs.read","input":{"path":"a"}}]`
		one   = `"tool_calls":[{"index":0,"id":"c","function":{"name":"fs_read","arguments":"{\"path\":\"a\"}"}}]`
		plain = `"tool_calls":[{"id":"c","function":{"name":"fs_read","arguments":"{\"path\": \"a\"}"}}]`
		stop  = `"finish_reason":"stop"`
	)
	for name, c := range map[string]struct {
		choices []string
		want    string
	}{
		"so far, beside each delta": {[]string{`"delta":{"content":"Hello"},"message":{"content":"Hello"}`, `"delta":{"content":", hello"},"message":{"content":"Hello, hello"}`, `"delta":{},"message":{"content":"Hello, hello"},` + stop}, hello},
		"other than the deltas":     {[]string{`"delta":{"content":"Hello"}`, `"delta":{"content":", hello"},"message":{"content":"hello hello"},` + stop}, hello},
		"behind the deltas":         {[]string{`"delta":{"content":"Hello"}`, `"delta":{"content":", hello"}`, `"message":{"content":"Hello, hello"},` + stop}, hello},
		"as the last delta":         {[]string{`"delta":{"content":"Hello"}`, `"delta":{"content":", hello"}`, `"delta":{"content":"Hello, hello"},` + stop}, hello},
		"behind the reason":         {[]string{`"delta":{"content":"Hello"}`, `"delta":{"content":", hello"}`, `"delta":{},` + stop, `"delta":{"content":"Hello, hello"}`}, hello},
		"messages that grow":        {[]string{`"message":{"content":"Hello"}`, `"message":{"content":"Hello, hello"}`, `"message":{"content":"Hello, hello"},` + stop}, hello},
		"messages in pieces":        {[]string{`"message":{"content":"Hello"}`, `"message":{"content":", hello"},` + stop}, hello},
		"a delta of nothing":        {[]string{`"delta":{"role":"assistant","content":""},"message":{"content":"Hello, hello"},` + stop}, hello},
		"a model that says it twice": {[]string{`"delta":{"content":"Hello, "}`, `"delta":{"content":"Hello, "}`, `"delta":{},` + stop},
			`[{"type":"text","text":"Hello, Hello, "}]`},
		"twice, the last with the reason": {[]string{`"delta":{"content":"7"}`, `"delta":{"content":"7"},` + stop}, `[{"type":"text","text":"77"}]`},
		"again and again":                 {[]string{`"delta":{"content":"ha"}`, `"delta":{"content":"ha"}`, `"delta":{"content":"haha"},` + stop}, `[{"type":"text","text":"hahahaha"}]`},
		"rows of zeros":                   {[]string{`"delta":{"content":"00"}`, `"delta":{"content":"0"}`, `"delta":{"content":"000"},` + stop}, `[{"type":"text","text":"000000"}]`},
		"thoughts":                        {[]string{`"delta":{"reasoning":"hm "},"message":{"reasoning":"hm "}`, `"delta":{"reasoning":"hm"},"message":{"reasoning":"hm hm"}`, `"delta":{"content":"x"},"message":{"reasoning":"hm hm","content":"x"},` + stop}, mused},
		"thoughts at the end":             {[]string{`"delta":{"reasoning":"hm "}`, `"delta":{"reasoning":"hm"}`, `"delta":{"content":"x","reasoning":"hm hm"},` + stop}, mused},
		"a call":                          {[]string{`"delta":{"content":"x"}`, `"delta":{` + one + `},"message":{"content":"x",` + plain + `},` + stop}, used},
		"a call, a delta more":            {[]string{`"delta":{"content":"x"}`, `"delta":{` + one + `}`, `"delta":{` + one + `},` + stop}, used},
		"a call, behind":                  {[]string{`"delta":{"content":"x",` + one + `}`, `"message":{"content":"x",` + plain + `},` + stop}, used},
		"a call in messages":              {[]string{`"message":{"content":"x",` + plain + `}`, `"message":{"content":"x",` + plain + `},` + stop}, used},
		"a call that no delta had":        {[]string{`"delta":{"content":"x"},"message":{"content":"x"}`, `"delta":{},"message":{"content":"x",` + plain + `},` + stop}, used},
		"a function": {[]string{`"delta":{"content":"x","function_call":{"name":"fs_read","arguments":"{}"}},"message":{"content":"x","function_call":{"name":"fs_read","arguments":"{}"}},` + stop},
			`[{"type":"text","text":"x"},{"type":"tool_use","name":"fs.read","input":{}}]`},
	} {
		t.Run(name, func(t *testing.T) {
			body := ""
			for _, choice := range c.choices {
				body += `data: {"choices":[{"index":0,` + choice + "}]}\n\n"
			}
			a, deltas := answered(t, "vllm", wiretest.Reply{Type: "text/event-stream", Raw: body + "data: [DONE]\n\n"})
			require.JSONEq(t, c.want, string(a.Content))
			if text := joined(deltas, "text"); strings.Contains(text, "ell") {
				require.Contains(t, c.want, `"text":"`+text+`"`)
			}
		})
	}
	details := `"reasoning_details":[{"type":"reasoning.text","index":0,"text":"hm "}]`
	body := `data: {"choices":[{"delta":{` + details + `},"message":{` + details + `}}]}` + "\n\n" + `data: {"choices":[{"delta":{` + details + `,"content":"x"},"message":{"content":"x",` + strings.Replace(details, "hm ", "hm hm ", 1) + `},` + stop + `}]}` + "\n\n"
	a, deltas := answered(t, "openrouter", wiretest.Reply{Type: "text/event-stream", Raw: body})
	require.Equal(t, "hm hm ", joined(deltas, "thinking"))
	require.Contains(t, string(a.Content), `\"text\":\"hm hm \"`)
}

// A character that a proxy cut in two is whole again, wherever it stands, and is shown
// whole.
func TestHalvesOfACharacter(t *testing.T) {
	chunk := func(delta string) string { return `data: {"choices":[{"index":0,"delta":` + delta + "}]}\n\n" }
	body := chunk(`{"reasoning":"hm \ud83d"}`) + chunk(`{"reasoning":"\ude00"}`) +
		chunk(`{"content":"a\ud83d"}`) + chunk(`{"content":"\ude01b\ud83d"}`) +
		chunk(`{"tool_calls":[{"index":0,"id":"c","function":{"name":"fs_read","arguments":"{\"path\":\"\ud83d"}}]}`) +
		chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"\ude02\"}"}}]}`) +
		`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	a, deltas := answered(t, "vllm", wiretest.Reply{Type: "text/event-stream", Raw: body})
	require.JSONEq(t, `[{"type":"thinking","thinking":"hm 😀","provider":{"port":"vllm","model":"gpt-4o","field":"reasoning"}},
		{"type":"text","text":"a😁b\ufffd"},{"type":"tool_use","id":"c","name":"fs.read","input":{"path":"😂"}}]`, string(a.Content))
	require.Equal(t, "a😁b", joined(deltas, "text"))
	require.Equal(t, "hm 😀", joined(deltas, "thinking"))

	a, _ = answered(t, "vllm", wiretest.Reply{Raw: `{"choices":[{"index":0,"finish_reason":"stop","message":{"content":"a\ud83d"}}]}`})
	require.JSONEq(t, `[{"type":"text","text":"a\ufffd"}]`, string(a.Content))

	_, deltas = answered(t, "openai", wiretest.Reply{Type: "text/event-stream", Raw: `data: {"type":"response.output_text.delta","delta":"a\ud83d"}` + "\n\n" +
		`data: {"type":"response.output_text.delta","delta":"\ude00"}` + "\n\n" + `data: {"type":"response.completed","response":{"status":"completed","output":[]}}` + "\n\n"}, asItems)
	require.Equal(t, "a😀", joined(deltas, "text"))
}
