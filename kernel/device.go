package kernel

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Device is a frozen bundle of policy: what a beat asks, with what, and what
// may run. It holds no state; one device may drive many sessions at a time.
type Device struct {
	Config
	specs   []json.RawMessage // of Tools, sorted by name
	schemas map[string]*jsonschema.Schema
}

// Config is what a Device is made of. Every field may be left out.
type Config struct {
	LLM      LLM
	Tools    map[string]Tool
	Policy   ToolPolicy
	Fold     Fold // nil: DefaultFold
	Filters  []Filter
	System   json.RawMessage // text or blocks
	Cost     Cost            // nil: 1 a beat
	Settle   Settle          // nil: a beat costs what it reserved
	Parallel int             // calls marked parallel that run at a time; 0: 4
}

// Filter answers a request in place of the one it is given, which it must not
// change.
type Filter func(ctx context.Context, req *Request) (*Request, error)

// Cost answers what a beat with this request reserves: a whole number ≥ 1.
type Cost func(ctx context.Context, req *Request) (int64, error)

// Settle answers what a beat has cost: a whole number ≥ 0.
type Settle func(ctx context.Context, req *Request, a *Answer) (int64, error)

// Call is a tool call that the model asks for.
type Call struct {
	ID    string // unique in the session
	Name  string
	Args  json.RawMessage // object, for a call that runs
	Block json.RawMessage // the tool_use block, as recorded
}

// Decision is what a ToolPolicy says of one call.
type Decision string

// The decisions; the empty one runs.
const (
	Run  Decision = "run"
	Deny Decision = "deny"
)

// ToolPolicy decides over one call. An error denies the call: it fails closed.
type ToolPolicy func(ctx context.Context, c *Call, a *Answer) (d Decision, reason string, err error)

// Effects says what a tool may do to the world; it decides what must be on
// disk before the tool runs.
type Effects string

// The effects; the empty one is read as External, the careful reading.
const (
	Read     Effects = "read"     // looks only
	Write    Effects = "write"    // changes something that knl's project owns
	External Effects = "external" // changes something elsewhere
)

// Tool is an entry of a device's tools.
type Tool struct {
	Description string
	InputSchema json.RawMessage // JSON Schema of the arguments; nil: none
	Handler     Handler
	Effects     Effects
	Idempotent  bool          // running it twice is running it once; it may be run again after an interruption
	Parallel    bool          // may run beside other calls of the same reply
	Timeout     time.Duration // 0: none
	Strict      bool          // arguments are validated by InputSchema before the handler
}

// Handler runs a tool. What it answers is recorded; an error is recorded as a
// failed result with its text, and the beat goes on.
type Handler func(ctx context.Context, args json.RawMessage, t ToolContext) (json.RawMessage, error)

// ToolContext is what a handler is told besides its arguments.
type ToolContext struct {
	Session        *Session
	Beat           string
	CallID         string
	IdempotencyKey string    // the same each time this call is run
	Deadline       time.Time // zero: none
}

// NewDevice checks c whole and freezes it.
func NewDevice(c Config) (*Device, error) {
	d := &Device{Config: c, schemas: map[string]*jsonschema.Schema{}}
	d.Tools, d.Filters, d.System = maps.Clone(c.Tools), slices.Clone(c.Filters), slices.Clone(c.System)
	if c.Parallel < 0 {
		return nil, fmt.Errorf("parallel: got %d, want a whole number ≥ 1", c.Parallel)
	}
	if d.Parallel == 0 {
		d.Parallel = 4
	}
	if d.Fold == nil {
		d.Fold = DefaultFold
	}
	if d.System != nil {
		clean, _, err := validText(d.System, maxDepth)
		if err != nil {
			return nil, fmt.Errorf("system: %w", err)
		}
		d.System = clean
	}
	for i, f := range d.Filters {
		if f == nil {
			return nil, fmt.Errorf("filters[%d]: got nil, want a function", i+1)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Tools)) {
		if err := d.addTool(name); err != nil {
			return nil, fmt.Errorf("tools.%s: %w", name, err)
		}
	}
	return d, nil
}

func (d *Device) addTool(name string) error {
	t := d.Tools[name]
	switch {
	case name == "":
		return fmt.Errorf("got an empty name")
	case !utf8.ValidString(name):
		return fmt.Errorf("got the name %q, which is not UTF-8", name)
	case t.Handler == nil:
		return fmt.Errorf("handler: got nil, want a function")
	case t.Timeout < 0:
		return fmt.Errorf("timeout: got %s, want more than 0", t.Timeout)
	case t.Effects == "":
		t.Effects = External
	case t.Effects != Read && t.Effects != Write && t.Effects != External:
		return fmt.Errorf("effects: got %q, want read, write or external", t.Effects)
	}
	if t.InputSchema == nil && t.Strict {
		return fmt.Errorf("strict: needs an input_schema to validate by")
	}
	if t.InputSchema != nil {
		schema, err := d.compile(name, t)
		if err != nil {
			return fmt.Errorf("input_schema: %w", err)
		}
		t.InputSchema = schema
	}
	d.Tools[name] = t
	d.specs = append(d.specs, toolSpec(name, t))
	return nil
}

// compile answers a tool's schema in canonical form, checked, and keeps it
// compiled when arguments are to be validated by it.
func (d *Device) compile(name string, t Tool) (json.RawMessage, error) {
	clean, _, err := admit(t.InputSchema)
	if err != nil {
		return nil, err
	}
	v := jsontext.Value(slices.Clone(clean))
	if err := v.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)); err != nil {
		return nil, err
	}
	compiled, err := compiledSchema(v, t.Strict)
	if err != nil {
		return nil, fmt.Errorf("not a JSON Schema: %w", err)
	}
	if t.Strict {
		d.schemas[name] = compiled
	}
	return json.RawMessage(v), nil
}

// With answers a device with change applied to this one's config; the
// receiver stays as it is.
func (d *Device) With(change func(*Config)) (*Device, error) {
	c := d.Config
	change(&c)
	return NewDevice(c)
}
