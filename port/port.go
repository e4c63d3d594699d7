package port

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port/internal/field"
)

// Port is an adapter of a provider. A Port keeps no conversation: what it is
// told stands in the request and the Conf, so one Port serves every session.
type Port interface {
	// Open answers the model that conf names. It makes no call.
	Open(conf Conf) (kernel.LLM, error)
	// Count answers the tokens that req would take as a prompt.
	Count(ctx context.Context, req *kernel.Request, conf Conf) (int64, error)
	// Profile answers what the model can do.
	Profile(ctx context.Context, conf Conf) (Profile, error)
	// Health answers nil when a call would reach the provider with a valid key.
	Health(ctx context.Context, conf Conf) error
}

// Host is what the port of a real provider asks of the program around it. Every field may be nil.
type Host struct {
	Env    func(name string) (string, bool) // reads a variable of the environment
	Secret func(value string)               // is told each key, so that it shows nowhere
	Warn   func(text string)                // is told, once each, what a model was not asked because it does not take it
}

// Place says where a port of a real provider looks for a key and an address when
// a conf names none. A field that is empty is one that it has no use for.
type Place struct {
	KeyVariable  string
	BaseVariable string
	Base         string // where the server is when BaseVariable does not say
}

// Placed is a Port that has a place. Both adapters are.
type Placed interface{ Place() Place }

// Profile is what a model can do. Sizes are tokens.
type Profile struct {
	ContextWindow int64 // prompt and completion together
	MaxOutput     int64 // the longest completion; 0 when it is not known
	Prefill       bool  // a request may end with an assistant message
}

// Registry names the ports that a "provider:model" may choose.
type Registry map[string]Port

// From answers the port that spec names and conf with the model of spec in it.
// The model may hold colons of its own: "openai:ft:small:acme".
func (r Registry) From(spec string, conf Conf) (Port, Conf, error) {
	provider, model, found := strings.Cut(spec, ":")
	if !found || model == "" {
		return nil, conf, fmt.Errorf("model %q: got no model name, want \"provider:model\" with a provider out of %s", spec, field.List(r.Providers()))
	}
	p, known := r[provider]
	if !known {
		return nil, conf, fmt.Errorf("model %q: unknown provider %q%s, want one of %s", spec, provider, field.Near(provider, r.Providers()), field.List(r.Providers()))
	}
	conf.Model = model
	return p, conf, nil
}

// Providers lists the names of r in order.
func (r Registry) Providers() []string {
	names := make([]string, 0, len(r))
	for name := range r {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
