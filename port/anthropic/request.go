package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/internal/field"
)

// request is a call as it is sent, and what its answer is read with.
type request struct {
	port.Wire
	body  json.RawMessage
	limit int64 // max_tokens
}

// request lowers req and fits it to the model, with the cache marks on it.
func (m *model) request(req *kernel.Request) (*request, error) {
	wire, top, err := m.fitted(req)
	if err != nil {
		return nil, err
	}
	out := &request{Wire: wire}
	_ = json.Unmarshal(top["max_tokens"], &out.limit)
	if !m.conf.NoStream {
		top["stream"] = json.RawMessage("true")
	}
	if !m.conf.NoCache {
		mark(top)
	}
	out.body = top.JSON()
	return out, nil
}

// fitted answers the body of req without what only a call has.
func (m *model) fitted(req *kernel.Request) (port.Wire, field.Map, error) {
	target := port.Target{Dialect: port.Anthropic, Port: Name, Prefill: m.family.prefill, Compatible: !m.family.ours}
	if m.family.ours {
		target.Media = port.MediaLimits{Image: 5 << 20, File: 32 << 20} // as the provider measures them
	}
	wire, err := port.Lower(target, req, m.prepared(req))
	if err != nil {
		return port.Wire{}, nil, err
	}
	for _, t := range wire.Refused {
		m.port.warn("%s: the tool %q is not offered to %s: %s", Name, t.Name, m.conf.Model, t.Reason)
	}
	top := field.Map{}
	if err := json.Unmarshal(wire.Body, &top); err != nil {
		panic("BUG: port.Lower wrote a body that is no object: " + err.Error())
	}
	m.fitSampling(top)
	m.fitThinking(top, req)
	m.fitEffort(top)
	return wire, top, nil
}

// prepared answers conf with what the model wants said: how long a completion
// may be and, where it thinks by a budget alone, the budget.
func (m *model) prepared(req *kernel.Request) port.Conf {
	conf := m.conf
	if conf.MaxTokens == 0 {
		conf.MaxTokens = m.family.completion()
	}
	if m.family.thinking == budgetForm && conf.Thinking.BudgetTokens == 0 {
		limit, effort := said(req, conf)
		if budget := min(budgets[effort], limit/2); budget >= 1024 {
			conf.Thinking.BudgetTokens = budget
		}
	}
	return conf
}

// said answers the max_tokens and the effort of a call. Where they cannot be
// read, port.Lower says so.
func said(req *kernel.Request, conf port.Conf) (limit int64, effort string) {
	limit, effort = conf.MaxTokens, conf.Thinking.Effort
	for _, raw := range []json.RawMessage{req.Params, field.Map(req.Extra).JSON()} {
		var p struct {
			MaxTokens int64           `json:"max_tokens"`
			Thinking  json.RawMessage `json:"thinking"`
		}
		_ = json.Unmarshal(raw, &p)
		if p.MaxTokens > 0 {
			limit = p.MaxTokens
		}
		var t struct {
			Effort string `json:"effort"`
		}
		if json.Unmarshal(p.Thinking, &t) == nil && t.Effort != "" {
			effort = t.Effort
		}
	}
	return limit, effort
}

// fitSampling leaves out the knobs that the model or the wire does not take: the
// provider's own models, whatever a proxy calls them, take none in the client's version
// of the wire, nor while they think.
func (m *model) fitSampling(top field.Map) {
	free := m.server.version() < newWire && !strings.Contains(string(top["thinking"]), `"enabled"`)
	another := !strings.Contains(strings.ToLower(m.conf.Model), "claude")
	for _, knob := range []string{"temperature", "top_k", "top_p"} {
		if top[knob] == nil || m.family.sampling && (free || another) {
			continue
		}
		delete(top, knob)
		m.port.warn("%s: %s takes no %s, it was left out of the request", Name, m.conf.Model, knob)
	}
}

// fitThinking asks for thinking in the form that the model takes, and says where
// [port.Lower] had to leave it out. The provider's own models do not think unless
// they are asked; another's may.
func (m *model) fitThinking(top field.Map, req *kernel.Request) {
	conf, _ := m.conf.For(req) // Lower has read it
	budget := strings.Contains(string(top["thinking"]), `"enabled"`)
	switch {
	case top["thinking"] == nil && conf.Thinking.On:
		m.port.warn("%s: %s is not asked to think where a tool is forced, nor in a tool loop that began without: thinking was left out of the request", Name, m.conf.Model)
	case conf.Thinking.Off && !m.family.ours:
		top["thinking"] = json.RawMessage(`{"type":"disabled"}`)
	case top["thinking"] == nil:
	case m.family.thinking == adaptiveForm && budget:
		top["thinking"] = json.RawMessage(`{"type":"adaptive"}`)
		m.port.warn("%s: %s decides itself how long it thinks, thinking.budget_tokens was left out of the request: thinking.effort asks for more or less", Name, m.conf.Model)
	case m.family.thinking == budgetForm && !budget:
		delete(top, "thinking")
		m.port.warn("%s: %s has no room to think within max_tokens %s, thinking was left out of the request: it takes 1024 tokens and as many again for the answer", Name, m.conf.Model, top["max_tokens"])
	}
}

// fitEffort asks for an effort that the model takes.
func (m *model) fitEffort(top field.Map) {
	output := field.Map{}
	if top["output_config"] == nil || json.Unmarshal(top["output_config"], &output) != nil || output["effort"] == nil {
		return
	}
	var asked string
	_ = json.Unmarshal(output["effort"], &asked)
	taken := m.family.effort(asked)
	if taken == "" {
		delete(output, "effort") // it became the budget
	} else {
		output["effort"] = field.Quoted(taken)
	}
	if taken != asked && taken != "" {
		m.port.warn("%s: %s takes no thinking.effort %q, the request asks for %q", Name, m.conf.Model, asked, taken)
	}
	if top["output_config"] = output.JSON(); len(output) == 0 {
		delete(top, "output_config")
	}
}
