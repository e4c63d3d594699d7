package openai

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/knl-run/knl/port/internal/field"
)

// dialect is how one kind of server differs from the others. What is not here
// they have in common, or it is read in every form that any of them writes.
type dialect struct {
	name    string
	base    string         // where it is unless conf says; with the version
	keyEnv  string         // the variable of its key; empty: none is sent unless conf names one
	limit   string         // the parameter that bounds the completion
	topK    bool           // takes top_k
	thought thinkingForm   // how it is asked to think
	forced  forcing        // how it is made to call a tool
	profile profileReading // where it says how large a context may be
}

// thinkingForm is how a server is asked to think.
type thinkingForm int

const (
	byEffort    thinkingForm = iota // reasoning_effort
	byTemplate                      // reasoning_effort where one is named, and the template's enable_thinking
	byReasoning                     // reasoning = { effort } or { max_tokens }
)

// forcing is how a server is made to call a tool.
type forcing int

const (
	anyChoice forcing = iota // by every tool_choice
	byName                   // by "required" alone: the one tool is the only one offered
	notForced                // not at all
)

// profileReading is where a server says how large a context may be.
type profileReading int

const (
	byTable profileReading = iota // the table of shipped sizes
	byModels
	byProps
	byShow
)

// dialects is the table.
//
//	server      completion bound         top_k  thinking          forces a tool     window
//	openai      max_completion_tokens    no     reasoning_effort  any               shipped table
//	vllm        max_tokens               yes    template          any               /models max_model_len
//	llamacpp    max_tokens               yes    template          "required" only   /props n_ctx
//	ollama      max_tokens               no     reasoning_effort  never             /api/ps, /api/show
//	openrouter  max_tokens               yes    reasoning         any               /models context_length
var dialects = []dialect{
	{name: "openai", base: "https://api.openai.com/v1", keyEnv: "OPENAI_API_KEY", limit: "max_completion_tokens"},
	{name: "vllm", base: "http://127.0.0.1:8000/v1", limit: "max_tokens", topK: true, thought: byTemplate, profile: byModels},
	{name: "llamacpp", base: "http://127.0.0.1:8080/v1", limit: "max_tokens", topK: true, thought: byTemplate, forced: byName, profile: byProps},
	{name: "ollama", base: "http://127.0.0.1:11434/v1", limit: "max_tokens", forced: notForced, profile: byShow},
	{name: "openrouter", base: "https://openrouter.ai/api/v1", keyEnv: "OPENROUTER_API_KEY", limit: "max_tokens", topK: true, thought: byReasoning, profile: byModels},
}

// Dialects lists the values that conf.dialect may have.
var Dialects = func() []string {
	names := make([]string, len(dialects))
	for i, d := range dialects {
		names[i] = d.name
	}
	return names
}()

func dialectNamed(name string) (dialect, error) {
	for _, d := range dialects {
		if d.name == name {
			return d, nil
		}
	}
	return dialect{}, fmt.Errorf("conf.dialect: got %q%s, want one of %s", name, field.Near(name, Dialects), field.List(Dialects))
}

// dialectAt answers what a server speaks by where it is. A place that says
// nothing is taken for vllm's, which asks the least of a server.
func dialectAt(base *url.URL) dialect {
	name := "vllm"
	switch host := strings.ToLower(base.Hostname()); {
	case under(host, "openai.com"), under(host, "openai.azure.com"):
		name = "openai"
	case under(host, "openrouter.ai"):
		name = "openrouter"
	case base.Port() == "11434":
		name = "ollama"
	case base.Port() == "8080":
		name = "llamacpp"
	}
	d, err := dialectNamed(name)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return d
}

func under(host, domain string) bool {
	return host == domain || strings.HasSuffix(host, "."+domain)
}
