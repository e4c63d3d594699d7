package anthropic

import (
	"context"
	"fmt"
	"time"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/internal/wire"
)

// Name is what the port is called in a registry and in the blocks it writes.
const Name = "anthropic"

// Port is the adapter of the Messages API. It is safe for concurrent use.
type Port struct {
	host   port.Host
	warned wire.Warner
	counts recent[int64]
	models recent[sizes]
}

var (
	_ port.Port   = (*Port)(nil)
	_ port.Placed = (*Port)(nil)
)

// New answers a port that reads keys and base URLs through host.
func New(host port.Host) *Port { return &Port{host: host} }

// Place implements [port.Placed].
func (p *Port) Place() port.Place {
	return port.Place{KeyVariable: keyVariable, BaseVariable: baseVariable, Base: home}
}

// Open answers the model that conf names. A base URL or a header that must not
// be sent is refused here; a key is looked for when a call is made.
func (p *Port) Open(conf port.Conf) (kernel.LLM, error) {
	if conf.Model == "" {
		return nil, fmt.Errorf("conf.model: got nothing, want the name of a model, \"claude-opus-4-7\" for one")
	}
	return p.open(conf)
}

func (p *Port) open(conf port.Conf) (*model, error) {
	switch {
	case conf.Dialect != "":
		return nil, fmt.Errorf("conf.dialect: got %q, want none: %s has one wire", conf.Dialect, Name)
	case conf.API != "":
		return nil, fmt.Errorf("conf.api: got %q, want none: %s has one wire", conf.API, Name)
	}
	s, err := p.server(conf)
	if err != nil {
		return nil, err
	}
	return &model{port: p, conf: conf, family: familyOf(conf.Model), server: s}, nil
}

// Health answers nil when the provider knows the model, or without one the key.
func (p *Port) Health(ctx context.Context, conf port.Conf) error {
	m, err := p.open(conf)
	if err != nil {
		return err
	}
	path := "v1/models"
	if conf.Model != "" {
		path = modelPath(conf.Model)
	}
	ctx, cancel := m.within(ctx, time.Time{})
	defer cancel()
	_, err = m.server.fetch(ctx, call{method: "GET", path: path})
	return err
}

// warn says a text once in the life of p.
func (p *Port) warn(format string, args ...any) { p.warned.Warn(p.host, format, args...) }

// model is an opened model.
type model struct {
	port   *Port
	conf   port.Conf
	family family
	server *server
}

// Call implements kernel.LLM.
func (m *model) Call(ctx context.Context, req *kernel.Request, opts kernel.CallOptions) (*kernel.Answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, port.ClassifyError(err)
	}
	out, err := m.request(req)
	if err != nil {
		return nil, err
	}
	bounded, cancel := m.within(ctx, opts.Deadline)
	defer cancel()
	on := opts.OnDelta
	if on == nil {
		on = func(kernel.Delta) {}
	}
	a, err := m.ask(bounded, out, on)
	if err != nil {
		return wire.Declined(m.server.Ended(ctx, bounded, err))
	}
	return a, nil
}

// ask makes the call and reads its answer, streamed or whole. A server that
// answers whole where a stream was wanted is read as it answers.
func (m *model) ask(ctx context.Context, out *request, on func(kernel.Delta)) (*kernel.Answer, error) {
	res, err := m.server.send(ctx, call{method: "POST", path: "v1/messages", body: out.body})
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	r := &reader{ctx: ctx, request: out, model: m.conf.Model, on: on}
	if wire.IsStream(res) {
		return r.stream(res)
	}
	return r.whole(res)
}

// within bounds a call by conf.timeout and by the deadline of its beat.
func (m *model) within(ctx context.Context, deadline time.Time) (context.Context, context.CancelFunc) {
	return wire.Within(ctx, m.conf.Timeout, deadline)
}
