package openai

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"

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
	if err := m.adapt(body, req); err != nil {
		return nil, &kernel.CallError{Kind: kernel.InvalidRequest, Message: err.Error()}
	}
	a := &asked{names: lowered, size: port.Estimate(req), server: m.server.dialect.name, model: m.conf.Model}
	for _, key := range []string{m.server.dialect.limit, "max_output_tokens"} {
		if n, err := strconv.ParseInt(string(body[key]), 10, 64); err == nil {
			a.limit = n
		}
	}
	a.body = body.JSON()
	return a, nil
}

func (m *model) adapt(body field.Map, req *kernel.Request) error {
	m.dropSampling(body)
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
	if body["reasoning_effort"] != nil {
		m.askThinking(body, thinkingOf(req, m.conf))
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
		drop("top_k", m.server.dialect.name+" takes no top_k")
	}
	if m.server.dialect.name == Name && reasons(m.conf.Model) {
		drop("temperature", "a model that reasons takes none")
		drop("top_p", "a model that reasons takes none")
	}
}

// askThinking spells the effort as the server does.
func (m *model) askThinking(body field.Map, t port.Thinking) {
	effort := body["reasoning_effort"]
	switch m.server.dialect.thought {
	case byTemplate:
		if _, set := body["chat_template_kwargs"]; !set {
			body["chat_template_kwargs"] = json.RawMessage(`{"enable_thinking":true}`)
		}
	case byReasoning:
		delete(body, "reasoning_effort")
		if body["reasoning"] = (field.Map{"effort": effort}).JSON(); t.BudgetTokens > 0 && t.Effort == "" {
			body["reasoning"] = field.Map{"max_tokens": field.Whole(t.BudgetTokens)}.JSON()
		}
		return
	}
	if t.BudgetTokens > 0 && t.Effort == "" {
		m.port.warn("%s: thinking.budget_tokens = %d is not sent: %s takes an effort, and gets %s", m.conf.Model, t.BudgetTokens, m.server.dialect.name, effort)
	}
}

// thinkingOf answers the thinking of a request that was lowered: what a filter
// set goes over its params, and they over the conf.
func thinkingOf(req *kernel.Request, conf port.Conf) port.Thinking {
	params := field.Map{}
	if req.Params != nil {
		_ = json.Unmarshal(req.Params, &params)
	}
	for _, raw := range []json.RawMessage{params["thinking"], req.Extra["thinking"]} {
		if raw == nil {
			continue
		}
		var err error
		if conf, err = conf.Over(field.Map{"thinking": raw}.JSON()); err != nil {
			panic("BUG: a request that was lowered: " + err.Error())
		}
	}
	return conf.Thinking
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
