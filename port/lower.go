package port

import (
	"encoding/json"
	"fmt"
	"sort"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port/internal/field"
)

// Dialect names a wire form.
type Dialect string

// The dialects that Lower writes and Check reads.
const (
	Anthropic Dialect = "anthropic" // Messages
	OpenAI    Dialect = "openai"    // Chat Completions
	Responses Dialect = "responses" // OpenAI Responses
)

// Dialects lists every Dialect.
var Dialects = []Dialect{Anthropic, OpenAI, Responses}

// unknown says that t names no wire form.
func (t Target) unknown() error {
	return fmt.Errorf("dialect: got %q, want one of %s, %s, %s", t.Dialect, Anthropic, OpenAI, Responses)
}

// port answers whose blocks go back as they came.
func (t Target) port() string {
	if t.Port == "" {
		return string(t.Dialect)
	}
	return t.Port
}

// Target is what a body is written for.
type Target struct {
	Dialect Dialect
	Port    string // whose blocks go back as they came; empty: the name of the dialect
	Prefill bool   // the model takes a final assistant message; see Profile

	// Compatible is a model of another provider behind the same wire: it does not
	// sign what it thinks, and has rules of its own for tools.
	Compatible bool

	Media MediaLimits // what is longer is left out, with words that say so
}

// Wire is a request as a provider takes it.
type Wire struct {
	Body  json.RawMessage   // canonical: keys sorted, no space; the same request gives the same bytes
	Names map[string]string // the tool names that had to change: wire name → own name

	Refused []RefusedTool // what was left out, for the request would be refused with it
}

// Name answers the own name of the tool that the model called by its wire name.
func (w Wire) Name(wire string) string {
	if own, changed := w.Names[wire]; changed {
		return own
	}
	return wire
}

// Lower writes req for t. What a provider alone demands is done here and
// nowhere else; the package comment lists it. The error is a *kernel.CallError
// of kind invalid_request that names the message, the tool or the parameter.
func Lower(t Target, req *kernel.Request, conf Conf) (Wire, error) {
	l, err := newLowering(t, req, conf)
	if err != nil {
		return Wire{}, refuse(err)
	}
	var body field.Map
	switch t.Dialect {
	case Anthropic:
		body, err = l.anthropic()
	case OpenAI:
		body, err = l.openai()
	case Responses:
		body, err = l.responses()
	default:
		err = t.unknown()
	}
	if err == nil {
		err = l.addExtra(body)
	}
	if err != nil {
		return Wire{}, refuse(err)
	}
	return Wire{Body: body.JSON(), Names: l.names.changed(), Refused: l.refused}, nil
}

// refuse says that the request cannot be sent, and that sending it again would
// change nothing.
func refuse(err error) error {
	return &kernel.CallError{Kind: kernel.InvalidRequest, Message: err.Error()}
}

// lowering is a request on its way: read, shaped, paired, not yet written.
type lowering struct {
	target Target
	conf   Conf
	extra  map[string]json.RawMessage // what is no parameter
	system []string
	turns  []turn
	tools  []tool
	choice choice
	names  *legal

	refused []RefusedTool
}

func newLowering(t Target, req *kernel.Request, conf Conf) (*lowering, error) {
	l := &lowering{target: t, names: newLegal(nameLimit, "tool")}
	if err := l.readParams(req, conf); err != nil {
		return nil, err
	}
	if err := l.readTools(req.Tools); err != nil {
		return nil, err
	}
	if err := l.readChoice(req.ToolChoice); err != nil {
		return nil, err
	}
	if err := l.readMessages(req); err != nil {
		return nil, err
	}
	l.turns = shape(l.turns, t.Prefill && !l.conf.Thinking.On)
	return l, pair(l.turns, newLegal(idLimits[t.Dialect], "call"))
}

// readParams lays what the request says over conf: first its parameters, then
// what filters set.
func (l *lowering) readParams(req *kernel.Request, conf Conf) error {
	conf, err := conf.with("params", req.Params)
	if err != nil {
		return err
	}
	set := field.Map{}
	l.extra = map[string]json.RawMessage{}
	for key, v := range req.Extra {
		if isSampling(key) {
			set[key] = v
		} else {
			l.extra[key] = v
		}
	}
	if l.conf, err = conf.with("request", set.JSON()); err != nil {
		return err
	}
	if l.conf.Model == "" {
		return fmt.Errorf("conf.model: got nothing, want the name of a model")
	}
	return nil
}

// addExtra hands on what a filter added and no rule here knows.
func (l *lowering) addExtra(body field.Map) error {
	keys := make([]string, 0, len(l.extra))
	for key := range l.extra {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		if _, written := body[key]; written || reserved[key] {
			return fmt.Errorf("request.%s: a filter set what the port writes itself, want it in params or on the device", key)
		}
		body[key] = l.extra[key]
	}
	return nil
}

// reserved lists what a body must not get from a filter: what a request says
// in another way, and what the reader of the answer depends on.
var reserved = map[string]bool{
	"system": true, "tools": true, "tool_choice": true, "stream": true, "stream_options": true, "n": true,
	"instructions": true, "include": true, "store": true, "background": true, "previous_response_id": true, "conversation": true,
}

// forces says whether the request makes the model call a tool.
func (c choice) forces() bool { return c.mode == "required" || c.mode == "tool" }

// choice is the neutral tool choice.
type choice struct {
	mode string // "", "auto", "none", "required" or "tool"
	name string // own name, with mode "tool"
}

// choices lists the texts that a tool choice may be.
var choices = []string{"auto", "none", "required"}

func (l *lowering) readChoice(raw json.RawMessage) error {
	const want = `"auto", "none", "required" or { name }`
	switch {
	case raw == nil || field.KindOf(raw) == 'n':
		return nil
	case field.KindOf(raw) == '"':
		o := field.Open("request", field.Map{"tool_choice": raw}.JSON(), []string{"tool_choice"})
		o.OneOf("tool_choice", &l.choice.mode, choices)
		if o.Err() != nil {
			return o.Err()
		}
	case field.KindOf(raw) == '{':
		o := field.Open("request.tool_choice", raw, []string{"name"})
		o.Text("name", &l.choice.name)
		if l.choice.mode = "tool"; o.Err() != nil {
			return o.Err()
		}
	default:
		return fmt.Errorf("request.tool_choice: got %s, want %s", field.Got(raw), want)
	}
	return l.checkChoice()
}

// checkChoice refuses to force a tool that is not offered; to leave a choice
// open among no tools says nothing and is dropped.
func (l *lowering) checkChoice() error {
	own := make([]string, len(l.tools))
	for i, t := range l.tools {
		own[i] = t.name
		if t.name == l.choice.name {
			return nil
		}
	}
	for _, t := range l.refused {
		if t.Name == l.choice.name {
			return fmt.Errorf("request.tool_choice: the tool %q cannot be offered: %s", t.Name, t.Reason)
		}
	}
	switch {
	case l.choice.mode == "tool":
		return fmt.Errorf("request.tool_choice: unknown tool %q%s", l.choice.name, field.Hint(l.choice.name, own))
	case l.choice.mode == "required" && len(own) == 0:
		return fmt.Errorf("request.tool_choice: got \"required\" and no tools, want a tool to choose")
	case len(own) == 0:
		l.choice = choice{}
	}
	return nil
}
