package openai_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/openai"
	"github.com/knl-run/knl/port/wiretest"
)

// callsOf answers the calls of the messages of a body.
func callsOf(t *testing.T, body string) (calls []string) {
	t.Helper()
	var b struct {
		Messages []struct {
			Calls []json.RawMessage `json:"tool_calls"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &b))
	for _, m := range b.Messages {
		for _, call := range m.Calls {
			calls = append(calls, string(call))
		}
	}
	return calls
}

// What a server wrote beside a call goes back beside it, to that model alone, and
// nothing else that it wrote there.
func TestWhatStoodBesideACallGoesBack(t *testing.T) {
	const (
		google  = `"extra_content":{"google":{"thought_signature":"c2ln+/="}}`
		litellm = `"provider_specific_fields":{"thought_signature":"c2ln"}`
		name    = `"function":{"name":"fs_read","arguments":"{}"}`
		plain   = `{"function":{"arguments":"{}","name":"fs_read"},"id":"c","type":"function"}`
	)
	with := func(members string) string { return plain[:len(plain)-1] + `,` + members + `}` }
	for title, c := range map[string]struct {
		pieces []string // of calls, a list for each chunk
		want   []string
	}{
		"Gemini":            {[]string{`{"index":0,"id":"c",` + google + `,` + name + `}`}, []string{with(google)}},
		"LiteLLM":           {[]string{`{"index":0,"id":"c",` + litellm + `,` + name + `}`}, []string{with(litellm)}},
		"both":              {[]string{`{"index":0,"id":"c",` + google + `,` + litellm + `,` + name + `}`}, []string{with(google + `,` + litellm)}},
		"of the function":   {[]string{`{"index":0,"id":"c","function":{"name":"fs_read","arguments":"{}",` + litellm + `}}`}, []string{`{"function":{"arguments":"{}","name":"fs_read",` + litellm + `},"id":"c","type":"function"}`}},
		"the first of two":  {[]string{`{"index":0,"id":"c",` + google + `,` + name + `},{"index":1,"id":"d","function":{"name":"fs_read","arguments":"{\"a\":1}"}}`}, []string{with(google), `{"function":{"arguments":"{\"a\":1}","name":"fs_read"},"id":"d","type":"function"}`}},
		"in a later piece":  {[]string{`{"index":0,"id":"c","function":{"name":"fs_read","arguments":""}}`, `{"index":0,` + google + `,"function":{"arguments":"{}"}}`, `{"index":0,"extra_content":null,"function":{"arguments":""}}`}, []string{with(google)}},
		"an id of its own":  {[]string{`{"index":0,"id":"c d",` + google + `,` + name + `}`}, []string{`{"function":{"arguments":"{}","name":"fs_read"},"id":"c_d","type":"function",` + google + `}`}},
		"nothing":           {[]string{`{"index":0,"id":"c","extra_content":null,` + name + `}`}, []string{plain}},
		"what nobody wants": {[]string{`{"index":0,"id":"c","x_note":{"a":1},` + name + `}`}, []string{plain}},
	} {
		ways := [][]func(*port.Conf){nil, {whole}}
		if len(c.pieces) > 1 {
			ways = ways[:1]
		}
		for _, way := range ways {
			t.Run(title, func(t *testing.T) {
				var blocks []wiretest.Block
				for _, p := range c.pieces {
					blocks = append(blocks, wiretest.Block{Raw: json.RawMessage(`{"tool_calls":[` + p + `]}`)})
				}
				next, other := thinking(t, "vllm", "", blocks, way...)
				got := callsOf(t, next)
				require.Len(t, got, len(c.want))
				for i, want := range c.want {
					require.JSONEq(t, want, got[i])
				}
				for _, call := range callsOf(t, other) {
					require.NotContains(t, call, "thought_signature")
				}
			})
		}
	}
}

// Gemini refuses an answer whose first call has no signature: one that another model
// made gets the word that Google has for it, the others what they had.
func TestCallsOfAnotherModelForGemini(t *testing.T) {
	const unsigned = `"extra_content":{"google":{"thought_signature":"skip_thought_signature_validator"}}`
	call := func(id, bag string) string {
		return `{"id":"` + id + `","input":{},"name":"fs.read"` + bag + `,"type":"tool_use"}`
	}
	of := func(model string) string {
		return `,"provider":{"model":"` + model + `","port":"vllm","raw":"{\"extra_content\":{\"google\":{\"thought_signature\":\"S\"}}}"}`
	}
	result := func(id string) string { return `{"content":"r","tool_use_id":"` + id + `","type":"tool_result"}` }
	req := withTool(requestOf(ask,
		`{"content":[`+call("a", of("gemini-3-flash"))+`,`+call("b", "")+`],"role":"assistant"}`, `{"content":[`+result("a")+`,`+result("b")+`],"role":"user"}`,
		`{"content":[`+call("c", "")+`],"role":"assistant"}`, `{"content":[`+result("c")+`],"role":"user"}`,
		`{"content":[`+call("d", of("gemini-3-pro"))+`],"role":"assistant"}`, `{"content":[`+result("d")+`],"role":"user"}`))
	plain := func(id, more string) string {
		return `{"function":{"arguments":"{}","name":"fs_read"},"id":"` + id + `","type":"function"` + more + `}`
	}
	own := `,"extra_content":{"google":{"thought_signature":"S"}}`
	for _, base := range []string{"https://generativelanguage.googleapis.com/v1beta/openai", "http://127.0.0.1:4000/v1"} {
		got := callsOf(t, string(openai.BodyFor(t, nil, port.Conf{Model: "gemini-3-pro", BaseURL: base}, req)))
		for i, want := range []string{plain("a", ","+unsigned), plain("b", ""), plain("c", ","+unsigned), plain("d", own)} {
			require.JSONEq(t, want, got[i])
		}
	}
	for _, conf := range []port.Conf{{Model: "qwen3", BaseURL: "http://127.0.0.1:8000"}, {Model: "google/gemini-3-pro", BaseURL: "https://openrouter.ai/api/v1"}} {
		for i, got := range callsOf(t, string(openai.BodyFor(t, nil, conf, req))) {
			require.JSONEq(t, plain(string("abcd"[i]), ""), got)
		}
	}
}

// A bag that is broken, of another, or of what no server wants changes nothing.
func TestABagThatDoesNotFitStaysOut(t *testing.T) {
	for name, bag := range map[string]string{
		"no JSON":       `"port":"vllm","raw":"{"`,
		"a key twice":   `"port":"vllm","raw":"{\"extra_content\":{\"a\":1,\"a\":2}}"`,
		"no object":     `"port":"vllm","raw":"[1]"`,
		"another port":  `"port":"openai","raw":"{\"extra_content\":1}"`,
		"its own words": `"port":"vllm","raw":"{\"id\":\"x\",\"function\":{\"name\":\"y\"}}"`,
		"no text":       `"port":"vllm","raw":7`,
	} {
		t.Run(name, func(t *testing.T) {
			call := `{"id":"c","input":{},"name":"fs.read","provider":{"model":"m",` + bag + `},"type":"tool_use"}`
			req := withTool(requestOf(ask, `{"content":[`+call+`],"role":"assistant"}`, `{"content":[{"content":"done","tool_use_id":"c","type":"tool_result"}],"role":"user"}`))
			body := openai.BodyFor(t, nil, port.Conf{Model: "m", Dialect: "vllm", BaseURL: "http://127.0.0.1:1"}, req)
			got := callsOf(t, string(body))
			require.Len(t, got, 1)
			require.JSONEq(t, `{"function":{"arguments":"{}","name":"fs_read"},"id":"c","type":"function"}`, got[0])
		})
	}
}
