package anthropic

import (
	"strings"
)

// family is what models of one line take, by the beginning of their names.
type family struct {
	prefix   string
	window   int64 // tokens, prompt and completion together; 0: the server is asked
	output   int64 // the longest completion; 0: the server is asked
	thinking thinkingForm
	efforts  string // from the least, words apart; empty: none is taken
	prefill  bool   // a request may end with an assistant message
	sampling bool   // temperature, top_p, top_k, with a version of the wire that has them
	ours     bool   // the provider's own
}

// thinkingForm says how a model is asked to think.
type thinkingForm int

const (
	anyForm      thinkingForm = iota // as the conf says
	budgetForm                       // a budget, and no other way
	adaptiveForm                     // the model decides
)

const everyEffort = "low medium high xhigh max"

// families lists what is known of models; the first prefix that fits counts.
// What is not known of a newer one its own server says.
var families = []family{
	{prefix: "claude-haiku-4-5", window: 200_000, output: 64_000, thinking: budgetForm, prefill: true, sampling: true, ours: true},
	{prefix: "claude-sonnet-4-5", window: 200_000, output: 64_000, thinking: budgetForm, prefill: true, sampling: true, ours: true},
	{prefix: "claude-opus-4-5", window: 200_000, output: 64_000, thinking: budgetForm, efforts: "low medium high", prefill: true, sampling: true, ours: true},
	{prefix: "claude-sonnet-4-6", window: 1_000_000, output: 64_000, efforts: "low medium high max", sampling: true, ours: true},
	{prefix: "claude-opus-4-6", window: 1_000_000, output: 128_000, efforts: "low medium high max", sampling: true, ours: true},
	{prefix: "claude-opus-4-7", window: 1_000_000, output: 128_000, thinking: adaptiveForm, efforts: everyEffort, ours: true},
	{prefix: "claude-", thinking: adaptiveForm, efforts: everyEffort, ours: true},
	{prefix: "", efforts: everyEffort, sampling: true},
}

func familyOf(model string) family {
	for _, f := range families {
		if strings.HasPrefix(model, f.prefix) {
			return f
		}
	}
	panic("BUG: the last family takes every name")
}

// roomy is the completion that is asked for when nobody says how long it may
// be: long enough for a file, and every model of the provider gives it.
const roomy = 32_000

// completion answers max_tokens when neither conf nor request says it; 0 leaves
// it to [port.Lower].
func (f family) completion() int64 {
	if !f.ours {
		return 0
	}
	return roomy
}

// effort answers the nearest effort that the model takes, the next one below
// before the next above, or nothing when it takes none.
func (f family) effort(word string) string {
	taken := strings.Fields(f.efforts)
	if len(taken) == 0 {
		return ""
	}
	order := strings.Fields("minimal " + everyEffort)
	at := len(order) - 1
	for i, w := range order {
		if w == word {
			at = i
		}
	}
	for ; at >= 0; at-- {
		for _, have := range taken {
			if have == order[at] {
				return have
			}
		}
	}
	return taken[0]
}

// budgets is how many tokens a model thinks that takes no effort for an answer.
var budgets = map[string]int64{"minimal": 1024, "low": 2048, "": 8192, "medium": 8192, "high": 16384, "xhigh": 24576, "max": 31999}
