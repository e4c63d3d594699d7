package openai

import (
	"strings"

	"github.com/knl-run/knl/port"
)

// provider is what somebody who serves models at an address of its own takes in
// another way than the dialect that is spoken there. Most refuse a request with a
// member that they do not know.
type provider struct {
	domain  string
	holds   string // of the name of a model; empty: every other one
	name    string
	topK    bool
	thought thinkingForm
	efforts string
	media   port.MediaLimits
}

// providers is the table; the first row that fits an address and a model counts.
var providers = []provider{
	{domain: "googleapis.com", holds: "gemini-2.5-pro", name: "Google", efforts: "minimal low medium high"},
	{domain: "googleapis.com", holds: "gemini-2.5", name: "Google", efforts: "none minimal low medium high"},
	{domain: "googleapis.com", holds: "gemini-2.0", name: "Google"},
	{domain: "googleapis.com", holds: "gemma", name: "Google"},
	{domain: "googleapis.com", name: "Google", efforts: "minimal low medium high"},
	{domain: "groq.com", holds: "gpt-oss", name: "Groq", efforts: "low medium high", media: groqMedia},
	{domain: "groq.com", holds: "qwen", name: "Groq", efforts: "none default", media: groqMedia},
	{domain: "groq.com", name: "Groq", media: groqMedia},
	{domain: "cerebras.ai", holds: "gpt-oss", name: "Cerebras", efforts: "low medium high"},
	{domain: "cerebras.ai", name: "Cerebras"},
	{domain: "mistral.ai", name: "Mistral", media: port.MediaLimits{Image: inBase64(10 << 20)}},
	{domain: "x.ai", holds: "grok-3-mini", name: "xAI", efforts: "low high", media: xaiMedia},
	{domain: "x.ai", name: "xAI", media: xaiMedia},
	{domain: "perplexity.ai", holds: "deep-research", name: "Perplexity", efforts: "minimal low medium high"},
	{domain: "perplexity.ai", name: "Perplexity"},
	{domain: "cohere.ai", name: "Cohere"},
	{domain: "cohere.com", name: "Cohere"},
	{domain: "together.xyz", holds: "gpt-oss", name: "Together", topK: true, efforts: "low medium high"},
	{domain: "together.xyz", name: "Together", topK: true, thought: byEnabled},
	{domain: "together.ai", holds: "gpt-oss", name: "Together", topK: true, efforts: "low medium high"},
	{domain: "together.ai", name: "Together", topK: true, thought: byEnabled},
	{domain: "fireworks.ai", name: "Fireworks", topK: true, efforts: "none low medium high"},
	{domain: "deepinfra.com", name: "DeepInfra", topK: true, efforts: "none low medium high"},
	{domain: "deepseek.com", name: "DeepSeek", thought: byType},
	{domain: "moonshot.ai", name: "Moonshot", thought: byType},
	{domain: "moonshot.cn", name: "Moonshot", thought: byType},
	{domain: "z.ai", name: "Z.ai", thought: byType},
	{domain: "bigmodel.cn", name: "Z.ai", thought: byType},
	{domain: "volces.com", name: "Volcengine", thought: byType},
	{domain: "aliyuncs.com", name: "DashScope", topK: true, thought: bySwitch},
	{domain: "siliconflow.cn", name: "SiliconFlow", topK: true, thought: bySwitch},
	{domain: "siliconflow.com", name: "SiliconFlow", topK: true, thought: bySwitch},
}

// The sizes are those that the providers publish.
var (
	groqMedia   = port.MediaLimits{Image: 4 << 20}
	xaiMedia    = port.MediaLimits{Image: inBase64(20 << 20)}
	openaiMedia = port.MediaLimits{Image: inBase64(50 << 20), File: inBase64(50 << 20)}
	claudeMedia = port.MediaLimits{Image: 5 << 20}
)

// inBase64 answers what bytes take in base64.
func inBase64(bytes int) int { return (bytes + 2) / 3 * 4 }

// of answers d as a provider speaks it. Its name stays, which is in the blocks of logs.
func (d dialect) of(host, model string) dialect {
	for _, p := range providers {
		if under(host, p.domain) && strings.Contains(strings.ToLower(model), p.holds) {
			d.provider, d.topK, d.thought, d.efforts, d.media = p.name, p.topK, p.thought, p.efforts, p.media
			d.limit = "max_tokens"
			return d
		}
	}
	return d
}

// called answers what a server is called in words.
func (d dialect) called() string {
	if d.provider != "" {
		return d.provider
	}
	return d.name
}
