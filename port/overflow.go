package port

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// overflows are the words for a prompt that is too long, server by server. Each row is
// a phrase without a gap, and has a space in it: a request may have a context wrong in
// other ways, and names of tools and links stand in messages as well. The texts are
// compiled when the first call fails: a start does not pay for them.
var overflows = sync.OnceValue(func() *regexp.Regexp {
	const context = `((the|this|your|available|allowed|maximum|max|model|model's) ){0,5}context (length|window|size|limit)`
	return anyOf(
		`maximum context length( is|:| of) [\d,]+`, // OpenAI, vllm, Azure, DeepSeek, openrouter
		`\b(prompt|inputs?|request|tokens|token count|messages|conversation)( length)?( \([^()]{1,40}\))? (exceeds?|exceeded|is (longer|larger|greater) than) `+context, // OpenAI's Responses, llama.cpp, ollama, SGLang, Cloudflare
		`input length and .max_tokens. exceed context limit`,                                                             // Anthropic, Bedrock
		`(prompt|input)( \([^()]{1,40}\))? is too long`,                                                                  // Anthropic, Bedrock, Fireworks, vllm
		`input length( \([\d,]+ tokens\))? exceeds the maximum allowed length`,                                           // SGLang
		`context (length|window|size|limit) (is |was |has been )?exceeded`,                                               // llama.cpp, and whoever says it in its fewest words
		`input tokens exceed the configured limit of [\d,]+`,                                                             // OpenAI
		`reduce the length of (the|your) (input )?(messages|prompt)`,                                                     // Azure, Groq, Cerebras
		`input token count( is)?( \(?[\d,]+\)?)?,? (exceeds the maximum|but (the )?model (only supports|supports only))`, // Gemini, Vertex
		`maximum prompt length is [\d,]+`,                                                                                // xAI
		`too large for model with [\d,]+ maximum context length`,                                                         // Mistral
		`prompt length( \([\d,]+\)| [\d,]+) exceeds (the )?max`,                                                          // TensorRT-LLM, vllm
		`prompt \(length [\d,]+\) is longer than the maximum model length`,                                               // vllm
		`prompt_tokens \([\d,]+\) must be less than max_seq_len`,                                                         // LMDeploy
		`the model's context length is only [\d,]+`,                                                                      // vllm
		`max_tokens must be at least 1, got -`,                                                                           // vllm: what is left for the completion
		`tokens \+ .?max_new_tokens.? must be <= [\d,]+`,                                                                 // Together, TGI
		`.?inputs.? must have less than [\d,]+ tokens`,                                                                   // TGI
		`prompt too long; exceeded max context length`,                                                                   // ollama
		`loaded with context length of only [\d,]+`,                                                                      // LM Studio, as the next two
		`initial prompt is greater than the context length`,
		`reached context length of [\d,]+ tokens`,
		`context window exceeds limit`,                     // MiniMax
		`exceeded model token limit`,                       // Kimi
		`prompt exceeds max length`,                        // Z.ai
		`range of input length should be`,                  // DashScope
		`prompt token count of [\d,]+ exceeds`,             // Copilot
		`tokens in the prompt cannot exceed`,               // Cohere, as the next
		`too many tokens: size limit exceeded`,             //
		`number of input tokens exceeds maximum length`,    // Bedrock, as the next
		`too many input tokens\. max input tokens: [\d,]+`, //
		`ContextWindowExceededError: `,                     // LiteLLM, whatever the words behind it
	)
})

// overflowCodes are the words of programs for the same.
var overflowCodes = sync.OnceValue(func() *regexp.Regexp {
	return codes(`context_length_exceeded`, `context_window_exceeded`, `exceed_context_size_error`, `model_max_prompt_tokens_exceeded`) // OpenAI, llama.cpp, Copilot
})

// overflows says whether a prompt is too long, by what the provider said.
func (f Failure) overflows() bool {
	if f.Status == http.StatusTooManyRequests {
		return tooLarge().MatchString(f.Message)
	}
	return f.coded(overflowCodes()) || overflows().MatchString(f.Message)
}

// completions are the words for a completion that was asked for beside a window, in
// the order in which a server says both.
var completions = sync.OnceValue(func() *regexp.Regexp {
	return anyOf(
		`is too large: (?P<asked>\d+)\. This model's maximum context length is (?P<window>\d+)`,                             // vllm
		`maximum context length is (?P<window>\d+) tokens.* requested (?P<asked>\d+) output tokens`,                         // vllm
		`requested (?P<asked>\d+) output tokens\. However, the model's context length is only (?P<window>\d+)`,              // vllm
		`maximum context length (is|of) (?P<window>\d+) tokens.* (?P<asked>\d+) (tokens )?(in|for) the (completion|output)`, // OpenAI, openrouter, SGLang
		`exceed context limit: \d+ \+ (?P<asked>\d+) > (?P<window>\d+)`,                                                     // Anthropic
		`must be <= (?P<window>\d+)\. Given: \d+ .?inputs.? tokens and (?P<asked>\d+) .?max_new_tokens`,                     // Together, TGI
	)
})

// helps says whether a shorter prompt would help a request that is too long: not
// where the completion that it asks for fills the window by itself.
func helps(message string) bool {
	words := completions()
	found := words.FindStringSubmatch(message)
	if found == nil {
		return true
	}
	number := map[string]int64{}
	for i, name := range words.SubexpNames() {
		if n, err := strconv.ParseInt(found[i], 10, 64); err == nil {
			number[name] = n
		}
	}
	return number["asked"] < number["window"]
}

// tooLarge is a request that no minute's allowance will ever cover.
var tooLarge = sync.OnceValue(func() *regexp.Regexp { return anyOf(`request too large .*limit \d+, requested \d+`) })

func anyOf(words ...string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)` + strings.Join(words, "|"))
}

// codes matches words of programs: a text that is one of them, and one in which a code
// or a type is, as gateways quote what they were told. A name in a sentence is none.
func codes(words ...string) *regexp.Regexp {
	one := `(` + strings.Join(words, "|") + `)`
	return regexp.MustCompile(`(?i)^` + one + `$|\b(code|type|reason)["']?\s*[:=]\s*["']?` + one + `\b`)
}

// coded says whether f is called by one of those words.
func (f Failure) coded(words *regexp.Regexp) bool {
	return words.MatchString(f.Code) || words.MatchString(f.Type) || words.MatchString(f.Message)
}
