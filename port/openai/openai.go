package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/internal/wire"
)

// Name is what the port is called in a registry.
const Name = "openai"

// Port is the adapter of OpenAI and of the servers that resemble it. It is safe
// for concurrent use.
type Port struct {
	host     port.Host
	dialect  string // of a conf that names none; empty: by where the server is
	warned   wire.Warner
	counted  texts
	measured sync.Map // server and model → measurement
	profiles sync.Map // server and model → port.Profile
}

var (
	_ port.Port   = (*Port)(nil)
	_ port.Placed = (*Port)(nil)
)

// New answers a port that reads keys and base URLs through host.
func New(host port.Host) *Port { return &Port{host: host} }

// As answers a port for one of [Dialects], so that a registry may name it:
// "ollama:qwen3". Another name is a mistake of the program.
func As(dialect string, host port.Host) *Port {
	if _, err := dialectNamed(dialect); err != nil {
		panic("BUG: openai.As: " + err.Error())
	}
	return &Port{host: host, dialect: dialect}
}

// Place implements [port.Placed].
func (p *Port) Place() port.Place {
	d := dialects[0]
	for _, one := range dialects {
		if one.name == p.dialect {
			d = one
		}
	}
	return port.Place{KeyVariable: d.keyEnv, BaseVariable: d.baseEnv, Base: d.base}
}

// Open answers the model that conf names. A base URL or a header that must not
// be sent is refused here; a key is looked for when a call is made.
func (p *Port) Open(conf port.Conf) (kernel.LLM, error) {
	if conf.Model == "" {
		return nil, fmt.Errorf("conf.model: got nothing, want the name of a model, \"gpt-5\" for one")
	}
	return p.open(conf)
}

func (p *Port) open(conf port.Conf) (*model, error) {
	server, err := p.server(conf)
	if err != nil {
		return nil, err
	}
	m := &model{port: p, conf: conf, server: server, responses: conf.API == "responses"}
	if server.dialect.name != Name {
		if m.responses {
			return nil, fmt.Errorf("conf.api: got \"responses\" with the dialect %s, want \"chat\": only openai is asked that way", server.dialect.name)
		}
		return m, nil
	}
	m.responses = m.responses || conf.API == "" && demandsResponses(conf.Model)
	return m, nil
}

// Health answers nil when the server answers, and knows the key where it has
// one.
func (p *Port) Health(ctx context.Context, conf port.Conf) error {
	m, err := p.open(conf)
	if err != nil {
		return err
	}
	path := "models"
	if m.server.dialect.name == "openrouter" {
		path = "key" // the list of models is public
	}
	_, err = m.fetch(ctx, request{method: "GET", path: path})
	return err
}

// warn says a text once in the life of p.
func (p *Port) warn(format string, args ...any) { p.warned.Warn(p.host, format, args...) }

// model is an opened model.
type model struct {
	port      *Port
	conf      port.Conf
	server    *server
	responses bool // asked by the Responses API
}

// target is what the bodies of m are written for.
func (m *model) target() port.Target {
	t := port.Target{Dialect: port.OpenAI, Port: m.server.dialect.name, Media: m.server.dialect.media}
	if m.isClaude() {
		t.Media = claudeMedia
	}
	if m.responses {
		t.Dialect = port.Responses
	}
	return t
}

// Call implements kernel.LLM.
func (m *model) Call(ctx context.Context, req *kernel.Request, opts kernel.CallOptions) (*kernel.Answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, port.ClassifyError(err)
	}
	asked, err := m.asked(req)
	if err != nil {
		return nil, err
	}
	if asked.on = opts.OnDelta; asked.on == nil {
		asked.on = func(kernel.Delta) {}
	}
	bounded, cancel := wire.Within(ctx, m.conf.Timeout, opts.Deadline)
	defer cancel()
	a, err := m.ask(bounded, asked)
	if err != nil {
		return wire.Declined(m.server.Ended(ctx, bounded, err))
	}
	m.measure(a, asked)
	return a, nil
}

// asked is a request on its way, and what its answer is read by.
type asked struct {
	body   json.RawMessage
	names  port.Wire // gives the tools their own names back
	limit  int64     // of the completion; 0: none was asked for
	size   port.Size // of the prompt, for an answer without usage
	server string    // the bag's port
	model  string
	on     func(kernel.Delta)

	offered func(beginning string) bool // whether a tool is called so, or begins so

	counted bool // the server counted the answer's tokens
}

// delta shows a piece of the answer.
func (a *asked) delta(kind, text string) {
	if text != "" {
		a.on(kernel.Delta{Kind: kind, Text: text})
	}
}

// ask makes the call and reads its answer, streamed or whole. A server that
// answers whole where a stream was wanted is read as it answers.
func (m *model) ask(ctx context.Context, a *asked) (*kernel.Answer, error) {
	path, read := "chat/completions", readChat
	if m.responses {
		path, read = "responses", readResponses
	}
	res, err := m.server.send(ctx, request{method: "POST", path: path, body: a.body})
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return read(a, res)
}

// fetch makes one attempt within the conf's bounds and answers the whole body.
func (m *model) fetch(ctx context.Context, r request) ([]byte, error) {
	bounded, cancel := wire.Within(ctx, m.conf.Timeout, time.Time{})
	defer cancel()
	body, err := m.server.fetch(bounded, r)
	if err != nil {
		return nil, m.server.Ended(ctx, bounded, err)
	}
	return body, nil
}
