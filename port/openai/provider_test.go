package openai_test

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/openai"
)

// A provider at its own address is asked as it takes it, and gets no member that it
// refuses a request for. A dialect that conf names goes before the address.
func TestThinkingOfProviders(t *testing.T) {
	on, off, high := port.Thinking{On: true}, port.Thinking{Off: true}, port.Thinking{On: true, Effort: "high"}
	for _, c := range []struct {
		base, model string
		thinking    port.Thinking
		want        string
	}{
		{"https://generativelanguage.googleapis.com/v1beta/openai", "gemini-3-pro", high, `{"reasoning_effort":"high"}`},
		{"https://generativelanguage.googleapis.com/v1beta/openai", "gemini-2.5-flash", off, `{"reasoning_effort":"none"}`},
		{"https://generativelanguage.googleapis.com/v1beta/openai", "gemini-2.5-pro", off, `{"reasoning_effort":"minimal"}`},
		{"https://generativelanguage.googleapis.com/v1beta/openai", "gemini-2.0-flash", on, `{}`},
		{"https://aiplatform.googleapis.com/v1/x", "google/gemini-2.5-flash", on, `{"reasoning_effort":"medium"}`},
		{"https://api.groq.com/openai/v1", "openai/gpt-oss-120b", high, `{"reasoning_effort":"high"}`},
		{"https://api.groq.com/openai/v1", "qwen/qwen3-32b", on, `{"reasoning_effort":"default"}`},
		{"https://api.groq.com/openai/v1", "qwen/qwen3-32b", off, `{"reasoning_effort":"none"}`},
		{"https://api.groq.com/openai/v1", "llama-3.3-70b", on, `{}`},
		{"https://api.mistral.ai/v1", "magistral-medium", on, `{}`},
		{"https://api.x.ai/v1", "grok-4", on, `{}`},
		{"https://api.x.ai/v1", "grok-3-mini", on, `{"reasoning_effort":"low"}`},
		{"https://api.deepseek.com", "deepseek-chat", on, `{"thinking":{"type":"enabled"}}`},
		{"https://api.deepseek.com", "deepseek-chat", off, `{"thinking":{"type":"disabled"}}`},
		{"https://api.together.xyz/v1", "Qwen/Qwen3.5", off, `{"reasoning":{"enabled":false}}`},
		{"https://api.together.xyz/v1", "openai/gpt-oss-20b", high, `{"reasoning_effort":"high"}`},
		{"https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "qwen3-max", port.Thinking{On: true, BudgetTokens: 2000}, `{"enable_thinking":true,"thinking_budget":2000}`},
		{"https://gateway.example/v1", "m", off, `{"chat_template_kwargs":{"enable_thinking":false}}`},
		{"https://mygroq.com.example/v1", "m", off, `{"chat_template_kwargs":{"enable_thinking":false}}`},
	} {
		for _, conf := range []port.Conf{{BaseURL: c.base}, {}} {
			conf.Model, conf.Thinking, conf.TopK = c.model, c.thinking, 7
			env := map[string]string{}
			if conf.BaseURL == "" { // it names a provider as well as conf does
				if env["OPENAI_BASE_URL"] = c.base; strings.Contains(c.base, "example") {
					continue
				}
			}
			body, got := map[string]json.RawMessage{}, map[string]json.RawMessage{}
			require.NoError(t, json.Unmarshal(openai.BodyFor(t, env, conf, requestOf(ask)), &body))
			for _, key := range []string{"chat_template_kwargs", "enable_thinking", "reasoning", "reasoning_effort", "thinking", "thinking_budget"} {
				if body[key] != nil {
					got[key] = body[key]
				}
			}
			said, err := json.Marshal(got)
			require.NoError(t, err)
			require.JSONEq(t, c.want, string(said), "%s %s", c.base, c.model)
			_, top := body["top_k"]
			require.Equal(t, regexp.MustCompile("together|aliyuncs|example").MatchString(c.base), top, c.base)
		}
	}
	body := openai.BodyFor(t, nil, port.Conf{Model: "m", Dialect: "vllm", BaseURL: "https://api.groq.com/openai/v1", Thinking: on, TopK: 7}, requestOf(ask))
	require.Contains(t, string(body), `"chat_template_kwargs":{"enable_thinking":true}`)
	require.Contains(t, string(body), `"top_k":7`)
}

// A picture that a provider would refuse on every later turn is left out there.
func TestPicturesThatAreTooLong(t *testing.T) {
	picture := func(bytes int) string {
		return `{"content":[{"source":{"data":"` + strings.Repeat("AAAA", bytes/4) + `","media_type":"image/png","type":"base64"},"type":"image"}],"role":"user"}`
	}
	for _, c := range []struct {
		base, model string
		limit       int
	}{
		{"https://api.groq.com/openai/v1", "m", 4 << 20},
		{"https://openrouter.ai/api/v1", "anthropic/claude-x", 5 << 20},
	} {
		conf := port.Conf{Model: c.model, BaseURL: c.base}
		require.NotContains(t, string(openai.BodyFor(t, nil, conf, requestOf(picture(c.limit)))), "cannot be sent", c.base)
		require.Contains(t, string(openai.BodyFor(t, nil, conf, requestOf(picture(c.limit+4)))), "cannot be sent: got "+strconv.Itoa(c.limit+4)+" bytes of base64", c.base)
	}
	require.NotContains(t, string(openai.BodyFor(t, nil, port.Conf{Model: "m", BaseURL: "http://127.0.0.1:8000"}, requestOf(picture(6<<20)))), "cannot be sent")
}
