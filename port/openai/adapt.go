package openai

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/internal/field"
)

// asked lowers req and makes of the body what the server takes.
func (m *model) asked(req *kernel.Request) (*asked, error) {
	lowered, err := port.Lower(m.target(), req, m.conf)
	if err != nil {
		return nil, err
	}
	body := field.Map{}
	if err := json.Unmarshal(lowered.Body, &body); err != nil {
		panic("BUG: a lowered body is no object: " + err.Error())
	}
	m.giveBack(body, req)
	m.mark(body)
	m.shorten(body)
	conf, err := m.conf.For(req)
	if err == nil {
		err = m.adapt(body, conf.Thinking)
	}
	if err != nil {
		return nil, &kernel.CallError{Kind: kernel.InvalidRequest, Message: err.Error()}
	}
	a := &asked{names: lowered, size: port.SizeOf(req), server: m.server.dialect.name, model: m.conf.Model, offered: offers(body)}
	for _, key := range []string{m.server.dialect.limit, "max_output_tokens"} {
		if n, err := strconv.ParseInt(string(body[key]), 10, 64); err == nil {
			a.limit = n
		}
	}
	a.body = body.JSON()
	return a, nil
}

func (m *model) adapt(body field.Map, thinking port.Thinking) error {
	m.dropSampling(body)
	m.askThinking(body, thinking)
	if !m.conf.NoStream {
		body["stream"] = json.RawMessage("true")
	}
	if m.responses {
		if reasons(m.conf.Model) || body["reasoning"] != nil {
			body["include"] = json.RawMessage(`["reasoning.encrypted_content"]`)
		}
		return nil
	}
	if !m.conf.NoStream {
		body["stream_options"] = json.RawMessage(`{"include_usage":true}`)
	}
	d := m.server.dialect
	if limit := body["max_completion_tokens"]; limit != nil && d.limit != "max_completion_tokens" {
		delete(body, "max_completion_tokens")
		body[d.limit] = limit
	}
	return m.forceTool(body)
}

// dropSampling leaves out what the model does not take, and says so once.
func (m *model) dropSampling(body field.Map) {
	drop := func(key, why string) {
		if value, set := body[key]; set {
			delete(body, key)
			m.port.warn("%s: %s = %s is not sent: %s", m.conf.Model, key, value, why)
		}
	}
	if !m.server.dialect.topK {
		drop("top_k", m.server.dialect.called()+" takes no top_k")
	}
	if m.server.dialect.called() == Name && reasons(m.conf.Model) {
		for _, key := range []string{"temperature", "top_p", "stop"} {
			drop(key, "a model that reasons takes none")
		}
	}
}

// askThinking spells what Lower wrote of thinking as the server does. What a
// filter wrote itself stays where the conf says nothing.
func (m *model) askThinking(body field.Map, t port.Thinking) {
	if !t.On && !t.Off {
		return
	}
	delete(body, "reasoning_effort")
	if !m.responses && m.switchThinking(body, t) {
		return
	}
	effort := m.effort(t)
	switch form := m.server.dialect.thought; {
	case m.responses:
		delete(body, "reasoning")
		if effort != "" {
			body["reasoning"] = field.Map{"effort": field.Quoted(effort)}.JSON()
		}
	case form == byReasoning && t.Off:
		body["reasoning"] = json.RawMessage(`{"enabled":false}`)
	case form == byReasoning && t.BudgetTokens > 0 && t.Effort == "":
		body["reasoning"] = field.Map{"max_tokens": field.Whole(t.BudgetTokens)}.JSON()
		return
	case form == byReasoning:
		body["reasoning"] = field.Map{"effort": field.Quoted(effort)}.JSON()
	default:
		if _, set := body["chat_template_kwargs"]; form == byTemplate && !set {
			body["chat_template_kwargs"] = json.RawMessage(`{"enable_thinking":` + strconv.FormatBool(t.On) + `}`)
		}
		if effort != "" {
			body["reasoning_effort"] = field.Quoted(effort)
		}
	}
	if t.On && t.BudgetTokens > 0 && t.Effort == "" && effort != "" {
		m.port.warn("%s: thinking.budget_tokens = %d is not sent: %s takes an effort, and gets \"%s\"", m.conf.Model, t.BudgetTokens, m.server.dialect.called(), effort)
	}
}

// switchThinking asks a server that is told whether to think, and not how much; it
// answers false for another one.
func (m *model) switchThinking(body field.Map, t port.Thinking) bool {
	on := json.RawMessage(strconv.FormatBool(t.On))
	switch m.server.dialect.thought {
	case byType:
		kind := map[bool]string{true: "enabled", false: "disabled"}[t.On]
		body["thinking"] = field.Map{"type": field.Quoted(kind)}.JSON()
	case byEnabled:
		body["reasoning"] = field.Map{"enabled": on}.JSON()
	case bySwitch:
		if body["enable_thinking"] = on; t.BudgetTokens > 0 {
			body["thinking_budget"], t.BudgetTokens = field.Whole(t.BudgetTokens), 0
		}
	default:
		return false
	}
	if t.Effort != "" || t.BudgetTokens > 0 {
		m.port.warn("%s: how much to think is not sent: %s is told only whether to", m.conf.Model, m.server.dialect.called())
	}
	return true
}

// effort answers the nearest word for the thinking that the model takes, the next
// below before the next above, and warns where that is another than was asked;
// empty: it is told none.
func (m *model) effort(t port.Thinking) string {
	taken := strings.Fields(m.efforts())
	asked := t.Effort
	switch {
	case t.Off && (len(taken) == 0 || m.server.dialect.thought != byEffort):
		return "" // it does not think, or is told so in another way
	case len(taken) == 0:
		m.port.warn("%s: thinking is not asked for: the model takes no effort", m.conf.Model)
		return ""
	case t.Off:
		asked = "none"
	case asked == "":
		asked = "medium"
	}
	found := nearest(asked, taken)
	switch {
	case found == asked:
	case t.Off:
		m.port.warn("%s: thinking = false is not sent: the model always thinks, and the request asks for %q", m.conf.Model, found)
	case t.Effort != "":
		m.port.warn("%s: the model takes no thinking.effort %q, the request asks for %q", m.conf.Model, asked, found)
	}
	return found
}

// nearest answers asked where it is taken, else the next below it that thinks at
// all, else the least that does.
func nearest(asked string, taken []string) string {
	if slices.Contains(taken, asked) {
		return asked
	}
	least := slices.DeleteFunc(slices.Clone(taken), func(word string) bool { return word == "none" })[0]
	for at := slices.Index(port.Efforts, asked); at >= 0; at-- {
		if word := port.Efforts[at]; slices.Contains(taken, word) {
			return word
		}
	}
	return least
}

// efforts answers the words that the model takes, the least first.
func (m *model) efforts() string {
	if d := m.server.dialect; d.name != Name || d.provider != "" {
		return d.efforts
	}
	name := origin(m.conf.Model)
	for _, e := range effortsOf {
		if e.fits(name) {
			return e.taken
		}
	}
	panic("BUG: the last row takes every name")
}

// family are the models whose names begin so, and hold that.
type family struct{ begins, holds string }

func (f family) fits(name string) bool {
	return strings.HasPrefix(name, f.begins) && strings.Contains(name, f.holds)
}

// origin answers what a fine-tuned model was made of, "gpt-4o" of "ft:gpt-4o:acme",
// and the name of another as it is.
func origin(name string) string {
	if tuned, is := strings.CutPrefix(name, "ft:"); is {
		name, _, _ = strings.Cut(tuned, ":")
	}
	return name
}

// effortsOf lists what OpenAI's models take for an effort; the first row that fits
// a name counts. A name that says nothing is taken for a new model's.
var effortsOf = []struct {
	family
	taken string
}{
	{family{"gpt-3", ""}, ""},
	{family{"gpt-4", ""}, ""},
	{family{"chatgpt-", ""}, ""},
	{family{"gpt-5", "-chat"}, ""},
	{family{"o1-mini", ""}, ""},
	{family{"o1-preview", ""}, ""},
	{family{"o", "-deep-research"}, "medium"},
	{family{"o1", ""}, "low medium high"},
	{family{"o3", ""}, "low medium high"},
	{family{"o4", ""}, "low medium high"},
	{family{"codex-", ""}, "low medium high"},
	{family{"computer-use", ""}, "low medium high"},
	{family{"gpt-5-pro", ""}, "high"},
	{family{"gpt-5.", "-pro"}, "medium high xhigh"},
	{family{"gpt-5.", "-codex-max"}, "low medium high xhigh"},
	{family{"gpt-5-codex", ""}, "low medium high"},
	{family{"gpt-5.1-codex", ""}, "low medium high"},
	{family{"gpt-5.", "-codex"}, "low medium high xhigh"},
	{family{"gpt-5.1", ""}, "none low medium high"},
	{family{"gpt-5.", ""}, "none low medium high xhigh"},
	{family{"gpt-5", ""}, "minimal low medium high"},
	{family{"", ""}, "none low medium high xhigh"},
}

// offers answers whether a tool of body is called so, or begins so.
func offers(body field.Map) func(beginning string) bool {
	var tools []struct {
		Name     string   `json:"name"` // of the Responses API
		Function function `json:"function"`
	}
	_ = json.Unmarshal(body["tools"], &tools)
	return func(beginning string) bool {
		for _, t := range tools {
			if strings.HasPrefix(t.Name+t.Function.Name, beginning) {
				return true
			}
		}
		return false
	}
}

// forceTool does what a server that does not read every tool_choice would not.
func (m *model) forceTool(body field.Map) error {
	choice := body["tool_choice"]
	if choice == nil {
		return nil
	}
	switch m.server.dialect.forced {
	case byName:
		if field.KindOf(choice) == '{' {
			body["tools"], body["tool_choice"] = theOne(body["tools"], choice), field.Quoted("required")
		}
	case notForced:
		delete(body, "tool_choice")
		switch string(choice) {
		case `"auto"`:
		case `"none"`:
			delete(body, "tools")
		default:
			return fmt.Errorf("request.tool_choice: got %s, want \"auto\" or \"none\": %s makes no model call a tool", choice, m.server.dialect.name)
		}
	}
	return nil
}

// theOne answers the list of the one tool that a choice names.
func theOne(tools, choice json.RawMessage) json.RawMessage {
	type named struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	var want named
	_ = json.Unmarshal(choice, &want)
	list, _ := field.Elements(tools)
	for _, raw := range list {
		var have named
		if _ = json.Unmarshal(raw, &have); have == want {
			return field.Array([]json.RawMessage{raw})
		}
	}
	return tools
}

// reasoningModel matches the models of OpenAI that reason before they answer.
var reasoningModel = regexp.MustCompile(`^(ft:)?(o\d|gpt-([5-9]|\d\d)|codex|computer-use)`)

// plainModel matches those of them that do not.
var plainModel = regexp.MustCompile(`-chat(-latest)?$`)

func reasons(name string) bool {
	return reasoningModel.MatchString(name) && !plainModel.MatchString(name)
}

// responsesOnly matches the models that only the Responses API has.
var responsesOnly = regexp.MustCompile(`^(o\d+-pro|gpt-[5-9][.\d]*-pro|codex-|gpt-[5-9][.\d]*-codex|computer-use-|o\d+(-mini)?-deep-research)`)

func demandsResponses(name string) bool { return responsesOnly.MatchString(name) }
