package openai_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/openai"
	"github.com/knl-run/knl/port/wiretest"
)

var update = flag.Bool("update", false, "rewrite testdata/*.golden")

// full is a request with everything that servers differ about.
func full() (*kernel.Request, port.Conf) {
	req := withTool(requestOf(ask))
	req.Tools = append(req.Tools, json.RawMessage(`{"name":"write"}`))
	req.System = json.RawMessage(`"be brief"`)
	half := 0.5
	return req, port.Conf{MaxTokens: 100, TopK: 7, Temperature: &half, Thinking: port.Thinking{On: true, BudgetTokens: 2000}}
}

// sent answers the body that a server of the dialect gets.
func sent(t *testing.T, dialect string, req *kernel.Request, conf port.Conf, more ...func(*port.Conf)) (body json.RawMessage, warned []string) {
	t.Helper()
	s := wiretest.New(t).Reply(say(wiretest.Say("x")))
	_, place := at(s, dialect)
	conf.Model, conf.BaseURL, conf.Dialect, conf.APIKeyEnv = place.Model, place.BaseURL, place.Dialect, place.APIKeyEnv
	for _, change := range more {
		change(&conf)
	}
	host := environment(map[string]string{"KEY": key})
	host.Warn = func(text string) { warned = append(warned, text) }
	_, _, err := call(t, openai.New(host), conf, req)
	require.NoError(t, err)
	return s.Last().Body, warned
}

func TestBodies(t *testing.T) {
	for _, dialect := range openai.Dialects {
		t.Run(dialect, func(t *testing.T) {
			req, conf := full()
			body, _ := sent(t, dialect, req, conf)
			compare(t, dialect, body)
		})
	}
	t.Run("responses", func(t *testing.T) {
		req, conf := full()
		conf.TopK = 0
		body, _ := sent(t, "openai", req, conf, asItems)
		compare(t, "responses", body)
	})
}

func compare(t *testing.T, name string, got json.RawMessage) {
	path := filepath.Join("testdata", name+".golden")
	var pretty bytes.Buffer
	require.NoError(t, json.Indent(&pretty, got, "", "  "))
	pretty.WriteByte('\n')
	if *update {
		require.NoError(t, os.WriteFile(path, pretty.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), pretty.String())
}

// What a model does not take is left out, and said once.
func TestDropped(t *testing.T) {
	req, conf := full()
	reasoner := func(c *port.Conf) { c.Model = "gpt-5-mini"; c.TopP = c.Temperature }
	body, warned := sent(t, "openai", req, conf, reasoner)
	require.NotContains(t, string(body), "top_k")
	require.NotContains(t, string(body), "temperature")
	require.Equal(t, []string{
		"gpt-5-mini: top_k = 7 is not sent: openai takes no top_k",
		"gpt-5-mini: temperature = 0.5 is not sent: a model that reasons takes none",
		"gpt-5-mini: top_p = 0.5 is not sent: a model that reasons takes none",
		`gpt-5-mini: thinking.budget_tokens = 2000 is not sent: openai takes an effort, and gets "medium"`,
	}, warned)
	body, warned = sent(t, "openai", req, port.Conf{Temperature: conf.Temperature}, func(c *port.Conf) { c.Model = "gpt-5-chat-latest" })
	require.Contains(t, string(body), `"temperature":0.5`)
	require.Empty(t, warned)

	s := wiretest.New(t).Reply(say(), say())
	_, again := at(s, "ollama")
	again.TopK, again.APIKeyEnv = 3, ""
	said := 0
	p := openai.New(port.Host{Warn: func(string) { said++ }})
	for range 2 {
		_, _, err := call(t, p, again, requestOf(ask))
		require.NoError(t, err)
	}
	require.Equal(t, 1, said)
}

// A filter's thinking goes over the params', and they over the conf's.
func TestThinkingOfRequest(t *testing.T) {
	for want, c := range map[string]struct{ params, extra string }{
		`"reasoning":{"max_tokens":2000}`: {"", ""},
		`"reasoning":{"max_tokens":3000}`: {`{"thinking":{"budget_tokens":3000}}`, ""},
		`"reasoning":{"effort":"low"}`:    {`{"thinking":{"effort":"low"}}`, ""},
		`"reasoning":{"effort":"high"}`:   {`{"thinking":{"effort":"low"}}`, `{"effort":"high"}`},
		`"model":"gpt-4o","stream":true`:  {`{"thinking":false}`, ""},
	} {
		req, conf := full()
		if c.params != "" {
			req.Params = json.RawMessage(c.params)
		}
		if c.extra != "" {
			req.Extra = map[string]json.RawMessage{"thinking": json.RawMessage(c.extra)}
		}
		body, _ := sent(t, "openrouter", req, conf)
		if c.params == `{"thinking":false}` {
			require.NotContains(t, string(body), "reasoning")
			continue
		}
		require.Contains(t, string(body), want)
	}
}

func TestToolChoice(t *testing.T) {
	for name, c := range map[string]struct{ dialect, choice, want, wantNot string }{
		"named":         {"vllm", `{"name":"fs.read"}`, `"tool_choice":{"function":{"name":"fs_read"},"type":"function"}`, "required"},
		"named, one":    {"llamacpp", `{"name":"fs.read"}`, `"tool_choice":"required"`, `"write"`},
		"required":      {"llamacpp", `"required"`, `"write"`, "auto"},
		"none":          {"ollama", `"none"`, `"messages"`, "tools"},
		"auto, default": {"ollama", `"auto"`, `"tools"`, "tool_choice"},
	} {
		t.Run(name, func(t *testing.T) {
			req, _ := full()
			req.ToolChoice = json.RawMessage(c.choice)
			body, _ := sent(t, c.dialect, req, port.Conf{})
			require.Contains(t, string(body), c.want)
			require.NotContains(t, string(body), c.wantNot)
		})
	}
	req, _ := full()
	req.ToolChoice = json.RawMessage(`"required"`)
	_, _, err := call(t, openai.New(environment(nil)), port.Conf{Model: "m", Dialect: "ollama"}, req)
	require.EqualError(t, err, `invalid_request: request.tool_choice: got "required", want "auto" or "none": ollama makes no model call a tool`)
}

// Some models have the Responses API alone; every other one is asked by it only
// when conf says so.
func TestWhichAPI(t *testing.T) {
	for model, path := range map[string]string{
		"gpt-4o": "/v1/chat/completions", "gpt-5": "/v1/chat/completions", "o3": "/v1/chat/completions",
		"o3-pro": "/v1/responses", "gpt-5-pro": "/v1/responses", "gpt-5.1-codex-max": "/v1/responses", "o4-mini-deep-research": "/v1/responses",
	} {
		s := wiretest.New(t).Reply(say(wiretest.Say("x")))
		p, conf := at(s, "openai")
		conf.Model, conf.BaseURL = model, s.URL
		_, _, err := call(t, p, conf, requestOf(ask))
		require.NoError(t, err)
		require.Equal(t, path, s.Last().Path, model)
	}
}

// The dialect follows from where a server is.
func TestDialectByPlace(t *testing.T) {
	for base, want := range map[string]string{
		"https://api.openai.com/v1": "max_completion_tokens", "https://x.openai.azure.com/openai/v1": "max_completion_tokens",
		"https://evilopenai.com/v1": "max_tokens", "http://127.0.0.1:8000/v1": "max_tokens",
	} {
		require.Contains(t, string(openai.BodyFor(t, port.Conf{Model: "m", BaseURL: base, MaxTokens: 5}, requestOf(ask))), want, base)
	}
}

var sayings = rapid.SampledFrom([]string{"", " ", "hello", "Ünï ✓ 🙂", "a\x00b", `{"json":true}`, "ends in space "})

// someAnswer draws blocks that a server may send.
func someAnswer(t *rapid.T) wiretest.Reply {
	var blocks []wiretest.Block
	for range rapid.IntRange(0, 4).Draw(t, "blocks") {
		switch rapid.IntRange(0, 2).Draw(t, "block") {
		case 0:
			blocks = append(blocks, wiretest.Say(sayings.Draw(t, "text")))
		case 1:
			blocks = append(blocks, wiretest.Think("hm "+sayings.Draw(t, "thought"), rapid.SampledFrom([]string{"", "c2ln"}).Draw(t, "signature")))
		case 2:
			id := rapid.SampledFrom([]string{"", "call_1", "call_1", "a b", "functions.read:0"}).Draw(t, "id")
			input := rapid.SampledFrom([]string{"", "{}", `{"a":`, `{"path":"x"}`, "null", "[1]", `"x"`}).Draw(t, "input")
			blocks = append(blocks, wiretest.Use(id, rapid.SampledFrom([]string{"fs_read", "write", "un known"}).Draw(t, "name"), input))
		}
	}
	return wiretest.Reply{Blocks: blocks, Stop: rapid.SampledFrom([]string{"", "", "length"}).Draw(t, "stop")}
}

// TestLawAccepted: whatever a server answered, the request that follows from the
// log is one that it accepts. The wire server checks each body.
func TestLawAccepted(t *testing.T) {
	for _, dialect := range append([]string{"responses"}, openai.Dialects...) {
		t.Run(dialect, func(t *testing.T) {
			s := wiretest.New(t)
			name := dialect
			if dialect == "responses" {
				name = "openai"
			}
			p, conf := at(s, name)
			if dialect == "responses" {
				asItems(&conf)
			}
			conf.Model = "gpt-5"
			llm, err := p.Open(conf)
			require.NoError(t, err)
			rapid.Check(t, func(r *rapid.T) {
				messages := []string{ask}
				for range rapid.IntRange(1, 3).Draw(r, "beats") {
					s.Reply(someAnswer(r))
					a, err := llm.Call(t.Context(), withTool(requestOf(messages...)), kernel.CallOptions{})
					require.NoError(r, err)
					messages = append(messages, closed(a)...)
				}
			})
		})
	}
}

// closed answers the messages of an answer as the kernel would record and fold
// them: every call with an id and a result.
func closed(a *kernel.Answer) []string {
	var blocks []map[string]json.RawMessage
	_ = json.Unmarshal(a.Content, &blocks)
	results := []json.RawMessage{}
	for i, b := range blocks {
		if string(b["type"]) != `"tool_use"` {
			continue
		}
		b["id"] = json.RawMessage(`"01J/` + string(rune('a'+i)) + `"`)
		results = append(results, json.RawMessage(`{"content":"","tool_use_id":`+string(b["id"])+`,"type":"tool_result"}`))
	}
	said, _ := json.Marshal(blocks)
	done, _ := json.Marshal(results)
	return []string{`{"content":` + string(said) + `,"role":"assistant"}`, `{"content":` + string(done) + `,"role":"user"}`}
}
