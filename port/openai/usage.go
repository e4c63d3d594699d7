package openai

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port/internal/field"
	"github.com/knl-run/knl/port/internal/wire"
)

// usage is what a server counted, in the words of both APIs. Cached tokens are
// counted in the prompt, thinking in the completion.
type usage struct {
	Prompt     wire.Counter `json:"prompt_tokens"`
	Completion wire.Counter `json:"completion_tokens"`
	Total      wire.Counter `json:"total_tokens"`
	PromptOf   usageDetails `json:"prompt_tokens_details"`
	Completed  usageDetails `json:"completion_tokens_details"`
	Hit        wire.Counter `json:"prompt_cache_hit_tokens"` // of a few compatibles, beside no details
	Read       wire.Counter `json:"cache_read_input_tokens"` // of gateways to Claude, as the next
	Written    wire.Counter `json:"cache_creation_input_tokens"`

	Input    wire.Counter `json:"input_tokens"`
	Output   wire.Counter `json:"output_tokens"`
	InputOf  usageDetails `json:"input_tokens_details"`
	OutputOf usageDetails `json:"output_tokens_details"`

	more bool // it counts something that nobody here knows
}

// ownCounters are the counters of usage that stand by themselves.
var ownCounters = strings.Fields(`prompt_tokens completion_tokens total_tokens input_tokens output_tokens reasoning_tokens
	prompt_cache_hit_tokens prompt_cache_miss_tokens cache_read_input_tokens cache_creation_input_tokens`)

type usageDetails struct {
	Cached    wire.Counter `json:"cached_tokens"`
	Written   wire.Counter `json:"cache_write_tokens"`
	Reasoning wire.Counter `json:"reasoning_tokens"`
}

// usageIn reads usage; nil where a server counted nothing, which some write as zeros.
func usageIn(raw json.RawMessage) *usage {
	var keys map[string]json.RawMessage
	var u usage
	if !field.Lenient(raw, &keys) || !field.Lenient(raw, &u) || u.prompt()+u.output() == 0 {
		return nil
	}
	for key, value := range keys {
		u.more = u.more || number(value) > 0 && strings.Contains(key, "token") && !slices.Contains(ownCounters, key)
	}
	return &u
}

func (u *usage) prompt() wire.Counter { return u.Prompt + u.Input }

func (u *usage) output() wire.Counter { return u.Completion + u.Output }

// counters answers disjoint counters, whatever the server wrote. What its total has
// beside the two is what it counted beside them, and thinking where nothing else that
// it counted may be that.
func (u *usage) counters() kernel.Usage {
	prompt, output := u.prompt(), u.output()
	read, written := max(u.PromptOf.Cached, u.InputOf.Cached, u.Hit, u.Read), max(u.PromptOf.Written, u.InputOf.Written, u.Written)
	thinking := max(u.Completed.Reasoning, u.OutputOf.Reasoning)
	switch beside := u.Total - prompt - output; {
	case beside <= 0:
	case beside == read+written:
		prompt += beside
	case beside == thinking:
		output += beside
	case thinking == 0 && !u.more: // of Gemini, whose thinking is in the total alone
		thinking, output = beside, output+beside
	}
	read = min(read, prompt)
	written = min(written, prompt-read)
	return kernel.Usage{
		Input: int64(prompt - read - written), Output: int64(output), Thinking: int64(min(thinking, output)),
		CacheRead: int64(read), CacheWrite: int64(written),
	}
}

// usageOf answers the counters of an answer. What the server counted as nothing
// although it took something is estimated from bytes: what cost something must not
// look free.
func (a *asked) usageOf(u *usage, content []byte) kernel.Usage {
	var counted kernel.Usage
	if u != nil {
		counted = u.counters()
	}
	a.counted = u != nil
	if counted.Input+counted.CacheRead+counted.CacheWrite == 0 {
		counted.Input, a.counted = a.size.Tokens(), false
	}
	if counted.Output == 0 && (u == nil || len(content) > len("[]")) {
		counted.Output, a.counted = int64(len(content)+3)/4, false
	}
	return counted
}
