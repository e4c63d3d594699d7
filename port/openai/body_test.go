package openai_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
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
	body, warned = sent(t, "openai", req, port.Conf{Temperature: conf.Temperature, Stop: []string{"END"}}, func(c *port.Conf) { c.Model = "gpt-5-chat-latest" })
	require.Contains(t, string(body), `"temperature":0.5`)
	require.Contains(t, string(body), `"stop":["END"]`)
	require.Empty(t, warned)
	body, warned = sent(t, "openai", req, port.Conf{Stop: []string{"END"}}, func(c *port.Conf) { c.Model = "o3" })
	require.NotContains(t, string(body), "stop")
	require.Equal(t, []string{`o3: stop = ["END"] is not sent: a model that reasons takes none`}, warned)

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

// Every server is asked to think, or not to, in its own words; an effort that a
// model does not take becomes the nearest that it does, and that is said.
func TestThinking(t *testing.T) {
	effort := func(word string) port.Thinking { return port.Thinking{On: true, Effort: word} }
	on, off := port.Thinking{On: true}, port.Thinking{Off: true}
	nearest := func(model, asked, gets string) string {
		return model + `: the model takes no thinking.effort "` + asked + `", the request asks for "` + gets + `"`
	}
	budget := `gpt-5: thinking.budget_tokens = 2000 is not sent: openai takes an effort, and gets "medium"`
	for _, c := range []struct {
		dialect, model string
		thinking       port.Thinking
		want, warned   string
	}{
		{"vllm", "m", port.Thinking{}, `{}`, ""},
		{"vllm", "m", on, `{"chat_template_kwargs":{"enable_thinking":true},"reasoning_effort":"medium"}`, ""},
		{"vllm", "m", off, `{"chat_template_kwargs":{"enable_thinking":false}}`, ""},
		{"vllm", "m", effort("max"), `{"chat_template_kwargs":{"enable_thinking":true},"reasoning_effort":"high"}`, nearest("m", "max", "high")},
		{"vllm", "m", effort("minimal"), `{"chat_template_kwargs":{"enable_thinking":true},"reasoning_effort":"low"}`, nearest("m", "minimal", "low")},
		{"llamacpp", "m", off, `{"chat_template_kwargs":{"enable_thinking":false}}`, ""},
		{"ollama", "m", on, `{"reasoning_effort":"medium"}`, ""},
		{"ollama", "m", off, `{"reasoning_effort":"none"}`, ""},
		{"ollama", "m", effort("minimal"), `{"reasoning_effort":"low"}`, nearest("m", "minimal", "low")},
		{"openrouter", "m", off, `{"reasoning":{"enabled":false}}`, ""},
		{"openrouter", "m", effort("max"), `{"reasoning":{"effort":"xhigh"}}`, nearest("m", "max", "xhigh")},
		{"openai", "gpt-4o", port.Thinking{}, `{}`, ""},
		{"openai", "gpt-4o", on, `{}`, "gpt-4o: thinking is not asked for: the model takes no effort"},
		{"openai", "gpt-4.1-mini", off, `{}`, ""},
		{"openai", "gpt-5-chat-latest", off, `{}`, ""},
		{"openai", "gpt-5", effort("minimal"), `{"reasoning_effort":"minimal"}`, ""},
		{"openai", "gpt-5", port.Thinking{On: true, BudgetTokens: 2000}, `{"reasoning_effort":"medium"}`, budget},
		{"openai", "gpt-5-mini", effort("max"), `{"reasoning_effort":"high"}`, nearest("gpt-5-mini", "max", "high")},
		{"openai", "gpt-5", off, `{"reasoning_effort":"minimal"}`, `gpt-5: thinking = false is not sent: the model always thinks, and the request asks for "minimal"`},
		{"openai", "gpt-5.1", off, `{"reasoning_effort":"none"}`, ""},
		{"openai", "gpt-5.2", effort("max"), `{"reasoning_effort":"xhigh"}`, nearest("gpt-5.2", "max", "xhigh")},
		{"openai", "gpt-5.2", effort("minimal"), `{"reasoning_effort":"low"}`, nearest("gpt-5.2", "minimal", "low")},
		{"openai", "o3", effort("minimal"), `{"reasoning_effort":"low"}`, nearest("o3", "minimal", "low")},
		{"responses", "gpt-5", effort("max"), `{"reasoning":{"effort":"high"}}`, nearest("gpt-5", "max", "high")},
		{"responses", "gpt-5", port.Thinking{On: true, BudgetTokens: 2000}, `{"reasoning":{"effort":"medium"}}`, budget},
		{"responses", "gpt-5.1", off, `{"reasoning":{"effort":"none"}}`, ""},
		{"responses", "gpt-5-pro", off, `{"reasoning":{"effort":"high"}}`, `gpt-5-pro: thinking = false is not sent: the model always thinks, and the request asks for "high"`},
		{"responses", "gpt-4o", on, `{}`, "gpt-4o: thinking is not asked for: the model takes no effort"},
	} {
		t.Run(c.dialect+" "+c.model, func(t *testing.T) {
			more := []func(*port.Conf){func(p *port.Conf) { p.Model = c.model }}
			dialect := c.dialect
			if dialect == "responses" {
				dialect, more = "openai", append(more, asItems)
			}
			raw, warned := sent(t, dialect, requestOf(ask), port.Conf{Thinking: c.thinking}, more...)
			body, got := map[string]json.RawMessage{}, map[string]json.RawMessage{}
			require.NoError(t, json.Unmarshal(raw, &body))
			for _, key := range []string{"chat_template_kwargs", "reasoning", "reasoning_effort"} {
				if body[key] != nil {
					got[key] = body[key]
				}
			}
			said, err := json.Marshal(got)
			require.NoError(t, err)
			require.JSONEq(t, c.want, string(said))
			require.Equal(t, c.warned, strings.Join(warned, "\n"))
		})
	}
}

// What a filter writes of thinking stays where the conf says nothing of it.
func TestThinkingOfAFilter(t *testing.T) {
	req := requestOf(ask)
	req.Extra = map[string]json.RawMessage{"reasoning": json.RawMessage(`{"exclude":true}`)}
	body, _ := sent(t, "openrouter", req, port.Conf{})
	require.Contains(t, string(body), `"reasoning":{"exclude":true}`)
	req.Extra = map[string]json.RawMessage{"chat_template_kwargs": json.RawMessage(`{"thinking":false}`)}
	body, _ = sent(t, "vllm", req, port.Conf{Thinking: port.Thinking{Off: true}})
	require.Contains(t, string(body), `"chat_template_kwargs":{"thinking":false}`)
}

// A filter's thinking goes over the params', and they over the conf's.
func TestThinkingOfRequest(t *testing.T) {
	for want, c := range map[string]struct{ params, extra string }{
		`"reasoning":{"max_tokens":2000}`: {"", ""},
		`"reasoning":{"max_tokens":3000}`: {`{"thinking":{"budget_tokens":3000}}`, ""},
		`"reasoning":{"effort":"low"}`:    {`{"thinking":{"effort":"low"}}`, ""},
		`"reasoning":{"effort":"high"}`:   {`{"thinking":{"effort":"low"}}`, `{"effort":"high"}`},
		`"reasoning":{"enabled":false}`:   {`{"thinking":false}`, ""},
	} {
		req, conf := full()
		if c.params != "" {
			req.Params = json.RawMessage(c.params)
		}
		if c.extra != "" {
			req.Extra = map[string]json.RawMessage{"thinking": json.RawMessage(c.extra)}
		}
		body, _ := sent(t, "openrouter", req, conf)
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
		require.Contains(t, string(openai.BodyFor(t, nil, port.Conf{Model: "m", BaseURL: base, MaxTokens: 5}, requestOf(ask))), want, base)
	}
}

// The environment says where OpenAI is, unless that is somebody whom one knows, or a
// server of one's own.
func TestDialectByTheEnvironment(t *testing.T) {
	for base, want := range map[string]string{
		"https://gateway.example/v1": "openai", "http://gateway/v1": "openai", "http://8.8.8.8:4000/v1": "openai", "http://localhost.example:8000": "openai",
		"https://openrouter.ai/api/v1": "openrouter",
		"http://127.0.0.1:11434/v1":    "ollama", "http://host.docker.internal:11434": "ollama",
		"http://127.0.0.1:8080": "llamacpp", "http://gateway:8080/v1": "llamacpp",
		"http://127.0.0.1:8000": "vllm", "http://localhost:1234/v1": "vllm", "http://LOCALHOST./v1": "vllm", "http://a.localhost:1/v1": "vllm", "http://[::1]:8000/v1": "vllm",
		"http://10.1.2.3:8000/v1": "vllm", "http://192.168.0.7/v1": "vllm", "http://[fd00::1]:8000": "vllm", "http://0.0.0.0:8000": "vllm", "http://[::ffff:10.0.0.1]:8000": "vllm",
	} {
		require.Equal(t, want, dialectIn(t, base, port.Conf{Model: "qwen3"}), base)
		require.Equal(t, "openai", dialectIn(t, base, port.Conf{Model: "qwen3", Dialect: "openai"}), base)
	}
	for model, want := range map[string]string{"gpt-5": "openai", "gpt-5.1": "openai", "ft:gpt-4o:acme": "openai", "o3-pro": "openai", "gpt-oss": "vllm", "gpt-oss-120b": "vllm", "gpt-oss:20b": "vllm", "o1x": "vllm"} {
		require.Equal(t, want, dialectIn(t, "http://127.0.0.1:4000/v1", port.Conf{Model: model}), model)
		require.Equal(t, "ollama", dialectIn(t, "http://127.0.0.1:11434/v1", port.Conf{Model: model, API: "chat"}), model)
	}
	require.Equal(t, "openai", dialectIn(t, "http://127.0.0.1:4000/v1", port.Conf{Model: "alias", API: "responses"}))
}

// dialectIn answers as what the server is spoken to that OPENAI_BASE_URL names.
func dialectIn(t *testing.T, base string, conf port.Conf) string {
	t.Helper()
	name, err := openai.DialectIn(map[string]string{"OPENAI_BASE_URL": base}, conf)
	require.NoError(t, err)
	return name
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
