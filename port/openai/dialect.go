package openai

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/internal/field"
)

// dialect is how one kind of server differs from the others. What is not here
// they have in common, or it is read in every form that any of them writes.
type dialect struct {
	name    string
	base    string         // where it is unless conf or baseEnv says; with the version
	baseEnv string         // the variable of its address
	keyEnv  string         // the variable of its key; empty: none is sent unless conf names one
	limit   string         // the parameter that bounds the completion
	topK    bool           // takes top_k
	thought thinkingForm   // how it is asked to think, or not to
	efforts string         // the words for it, the least first; openai's models differ
	forced  forcing        // how it is made to call a tool
	profile profileReading // where it says how large a context may be

	media    port.MediaLimits // what it takes of one medium
	provider string           // who serves it, where that is one of providers
}

// thinkingForm is how a server is asked to think.
type thinkingForm int

const (
	byEffort    thinkingForm = iota // reasoning_effort
	byTemplate                      // the template's enable_thinking, and reasoning_effort
	byReasoning                     // reasoning = { effort }, { max_tokens } or { enabled = false }
	byEnabled                       // reasoning = { enabled }
	byType                          // thinking = { type = "enabled" } or "disabled"
	bySwitch                        // enable_thinking, and thinking_budget
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
//	server      completion bound         top_k  thinking          efforts          forces a tool     window
//	openai      max_completion_tokens    no     reasoning_effort  by the model     any               shipped table
//	vllm        max_tokens               yes    template          low to high      any               /models max_model_len
//	llamacpp    max_tokens               yes    template          low to high      "required" only   /props n_ctx
//	ollama      max_tokens               no     reasoning_effort  none to high     never             /api/ps, /api/show
//	openrouter  max_tokens               yes    reasoning         minimal to xhigh any               /models context_length
var dialects = []dialect{
	{name: "openai", base: "https://api.openai.com/v1", baseEnv: "OPENAI_BASE_URL", keyEnv: "OPENAI_API_KEY", limit: "max_completion_tokens", media: openaiMedia},
	{name: "vllm", base: "http://127.0.0.1:8000/v1", baseEnv: "VLLM_BASE_URL", limit: "max_tokens", topK: true, thought: byTemplate, efforts: "low medium high", profile: byModels},
	{name: "llamacpp", base: "http://127.0.0.1:8080/v1", baseEnv: "LLAMACPP_BASE_URL", limit: "max_tokens", topK: true, thought: byTemplate, efforts: "low medium high", forced: byName, profile: byProps},
	{name: "ollama", base: "http://127.0.0.1:11434/v1", baseEnv: "OLLAMA_BASE_URL", limit: "max_tokens", efforts: "none low medium high", forced: notForced, profile: byShow},
	{name: "openrouter", base: "https://openrouter.ai/api/v1", baseEnv: "OPENROUTER_BASE_URL", keyEnv: "OPENROUTER_API_KEY", limit: "max_tokens", topK: true, thought: byReasoning, efforts: "minimal low medium high xhigh", profile: byModels},
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
// nothing is taken for vllm's, which asks the least of a server. The address that
// the environment has for OpenAI is a gateway to it, unless it is near: that is how
// most programs are shown a server of one's own, and only a model or an API that
// nobody but OpenAI has says that it is none. What a provider at its own address takes
// stands in its table.
func dialectAt(base *url.URL, ambient bool, conf port.Conf) dialect {
	name := "vllm"
	host := strings.TrimSuffix(strings.ToLower(base.Hostname()), ".")
	switch {
	case under(host, "openai.com"), under(host, "openai.azure.com"):
		name = "openai"
	case under(host, "openrouter.ai"):
		name = "openrouter"
	case base.Port() == "11434":
		name = "ollama"
	case base.Port() == "8080":
		name = "llamacpp"
	case ambient && (!isNear(host) || hosted(conf.Model) || conf.API == "responses"):
		name = "openai"
	}
	d, err := dialectNamed(name)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return d.of(host, conf.Model)
}

// isNear says whether a host is this machine or of a private network.
func isNear(host string) bool {
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return under(host, "localhost")
	}
	ip = ip.Unmap()
	return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified()
}

func under(host, domain string) bool {
	return host == domain || strings.HasSuffix(host, "."+domain)
}
