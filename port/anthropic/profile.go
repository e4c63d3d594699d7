package anthropic

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/internal/wire"
)

// Profile answers the sizes of a model: what conf says, else what is known of
// its line, and for the rest what the provider's list of models says.
func (p *Port) Profile(ctx context.Context, conf port.Conf) (port.Profile, error) {
	m, err := p.open(conf)
	if err != nil {
		return port.Profile{}, err
	}
	out := port.Profile{ContextWindow: conf.ContextWindow, MaxOutput: conf.MaxTokens, Prefill: m.family.prefill}
	fill(&out, m.family.window, m.family.output)
	if out.ContextWindow > 0 && out.MaxOutput > 0 {
		return out, nil
	}
	window, output, err := m.listed(ctx)
	fill(&out, window, output)
	switch {
	case out.ContextWindow > 0: // its longest completion may stay unknown
		return out, nil
	case err != nil:
		return port.Profile{}, err
	}
	return port.Profile{}, &kernel.CallError{Kind: kernel.Unknown, Message: fmt.Sprintf("%s does not say how long the context window of %s is, want conf.context_window", m.server.base, conf.Model)}
}

func fill(p *port.Profile, window, output int64) {
	if p.ContextWindow == 0 {
		p.ContextWindow = window
	}
	if p.MaxOutput == 0 {
		p.MaxOutput = output
	}
}

// sizes is what a list of models says of one.
type sizes struct{ window, output int64 }

// listed asks the provider for the sizes of the model, once for each.
func (m *model) listed(ctx context.Context) (window, output int64, err error) {
	key := m.server.base + " " + m.conf.Model
	if s, known := m.port.models.get(key); known {
		return s.window, s.output, nil
	}
	ctx, cancel := m.within(ctx, time.Time{})
	defer cancel()
	body, err := m.server.fetch(ctx, call{method: "GET", path: modelPath(m.conf.Model)})
	if err != nil {
		return 0, 0, err
	}
	var info struct {
		Window int64 `json:"max_input_tokens"`
		Output int64 `json:"max_tokens"`
	}
	if err := json.Unmarshal(body, &info); err != nil {
		return 0, 0, wire.Unreadable("the server answered what is no model", string(body))
	}
	m.port.models.put(key, sizes{info.Window, info.Output})
	return info.Window, info.Output, nil
}

func modelPath(model string) string { return "v1/models/" + url.PathEscape(model) }
