package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/knl-run/knl/luabind"
	"github.com/knl-run/knl/port"
)

// toolboxWidth is how many calls run at a time; more wait.
const toolboxWidth = 16

// toolbox runs the tools of a folder: each call in a VM of its own.
type toolbox struct {
	host   *host
	limits luabind.Limits
	time   time.Duration // of a whole call; 0: no limit
	load   time.Duration // until a script has returned its tool
	quiet  bool
	places chan struct{}
	calls  sync.WaitGroup // what runs scripts

	ctx    context.Context // of the command
	end    context.CancelCauseFunc
	over   chan struct{} // closed once the client is gone
	ready  chan struct{} // closed once the scripts are read
	served []*servedTool // then
}

// servedTool is a script that is a tool.
type servedTool struct {
	name, path string
	declared   declaration
	schema     *luabind.ArgSchema
}

// declaration is what a script says of its tool.
type declaration struct {
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
	Effects     string          `json:"effects"`
	Idempotent  bool            `json:"idempotent"`
	Timeout     float64         `json:"timeout"` // seconds
}

// toolOf is Lua that makes of what a script returned the tool that it is, as a
// device checks it, and then what it declares or what a call answers.
const toolOf = `local require, type, pcall, error = require, type, pcall, error
local function tool(name, v)
  if type(v) == "function" then v = { handler = v } end
  if type(v) ~= "table" then
    error("returns a " .. type(v) .. ", want a tool: { handler = fn, … } or the handler", 0)
  end
  local ok, err = pcall(require("knl").device, { tools = { [name] = v } })
  if not ok then
    error((tostring(err):gsub("^tool:%d+: ", ""):gsub("^knl%.device: tools%.[^:]*: ", "")), 0)
  end
  return v
end
return function(name, v, args)
  v = tool(name, v)
  if args then return v.handler(args, {}) end
  return {
    description = v.description, input_schema = v.input_schema, effects = v.effects,
    idempotent = v.idempotent, timeout = v.timeout,
  }
end`

// evaluate runs the script at path and answers, as JSON, what toolOf makes of
// it: what it declares, or with args what the handler answers.
func (b *toolbox) evaluate(ctx context.Context, path string, args json.RawMessage) (out json.RawMessage, err error) {
	vm, source, err := b.script(path).open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, vm.Close()) }()
	read, err := vm.RunString(ctx, "=tool", toolOf) // before the script can change a global
	if err != nil {
		return nil, err
	}
	values, err := vm.RunString(ctx, path, source)
	if err == nil && len(values) == 0 {
		err = errors.New("returns nothing, want a tool: { handler = fn, … } or the handler")
	}
	if err != nil {
		return nil, err
	}
	name, err := luabind.FromJSON(vm.Root(), []byte(`"`+stem(path)+`"`))
	if err != nil {
		return nil, err
	}
	in := append(values[:0:0], name, values[0])
	if args != nil {
		v, err := luabind.FromJSON(vm.Root(), args)
		if err != nil {
			return nil, fmt.Errorf("arguments: %w", err)
		}
		in = append(in, v)
	}
	answer, err := vm.Run(ctx, read[0], in...)
	if err != nil {
		return nil, err
	}
	if len(answer) == 0 {
		return json.RawMessage("null"), nil
	}
	return luabind.AppendJSON(nil, answer[0], &luabind.Encoding{Name: "result", ListFields: true})
}

func stem(path string) string { return strings.TrimSuffix(filepath.Base(path), ".lua") }

// read loads a script as a tool.
func (b *toolbox) read(ctx context.Context, path string) (*servedTool, error) {
	t := &servedTool{name: stem(path), path: path}
	if legal := port.ToolNames([]string{t.name})[0]; legal != t.name {
		return nil, fmt.Errorf("%q is no name for a tool, want letters, digits, _ and - (%s.lua)", t.name, legal)
	}
	within, stop := context.WithTimeoutCause(ctx, b.load, fmt.Errorf("it has not returned its tool within %s (--load-timeout)", b.load))
	defer stop()
	raw, err := b.evaluate(within, path, nil)
	if err != nil && within.Err() != nil {
		return nil, context.Cause(within)
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &t.declared); err != nil {
		return nil, err
	}
	if t.declared.Description == "" {
		t.declared.Description = heading(path)
	}
	if size := len(t.declared.Description) + len(t.declared.InputSchema); size > mcpToolLimit {
		return nil, fmt.Errorf("its description and input_schema have %d bytes, want at most %d", size, mcpToolLimit)
	}
	t.schema, err = luabind.NewArgSchema(t.declared.InputSchema)
	return t, err
}

// heading answers the first paragraph of the comment that a file begins with.
func heading(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	var words []string
	for _, line := range strings.Split(string(text), "\n") {
		said, isComment := strings.CutPrefix(strings.TrimSpace(line), "--")
		said = strings.TrimSpace(strings.TrimLeft(said, "-"))
		if !isComment || said == "" || strings.HasPrefix(said, "[[") {
			break
		}
		words = append(words, said)
	}
	return strings.Join(words, " ")
}

// within answers a context that ends with the time of a call: the command's, or
// the tool's own when that is shorter.
func (b *toolbox) within(ctx context.Context, own time.Duration) (context.Context, context.CancelFunc) {
	limit := b.time
	if own > 0 && (limit == 0 || own < limit) {
		limit = own
	}
	if limit == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
}

// server answers the server of the tools. It answers initialize at once, and what
// is asked of tools when the scripts are read.
func (b *toolbox) server() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "knl", Version: version()}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	added := sync.OnceFunc(func() { b.addTo(s) })
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if strings.HasPrefix(method, "tools/") {
				select { // the end of the client comes no sooner
				case <-b.ready:
				case <-b.over:
				}
				added()
			}
			return next(ctx, method, req)
		}
	})
	return s
}

func (b *toolbox) addTo(s *mcp.Server) {
	select {
	case <-b.ready:
	default: // the client did not wait for it
		return
	}
	for _, t := range b.served {
		s.AddTool(&mcp.Tool{
			Name: t.name, Description: b.host.mask.Mask(t.declared.Description), InputSchema: b.listed(t.schema),
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: t.declared.Effects == "read", IdempotentHint: t.declared.Idempotent},
		}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			b.calls.Add(1)
			defer b.calls.Done()
			return b.call(ctx, t, req.Params.Arguments), nil
		})
	}
}

// listed answers a schema as clients see it. Where a secret is a word or a number
// that the schema is made of, it is hidden as in a log, which leaves those.
func (b *toolbox) listed(schema *luabind.ArgSchema) json.RawMessage {
	shown := b.host.maskedJSON(schema.JSON)
	if _, err := luabind.NewArgSchema(shown); err != nil {
		shown, _ = b.host.mask.MaskJSON(schema.JSON)
	}
	return shown
}

// call runs one call to its end, which that of the command brings about too.
func (b *toolbox) call(ctx context.Context, t *servedTool, args json.RawMessage) *mcp.CallToolResult {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(b.ctx, func() { end(context.Cause(b.ctx)) })()
	select {
	case b.places <- struct{}{}:
		defer func() { <-b.places }()
	case <-ctx.Done():
		return b.failed(ctx, ctx.Err())
	}
	if len(args) == 0 || string(args) == "null" {
		args = json.RawMessage(`{}`)
	}
	if err := t.schema.Check(args); err != nil {
		return b.failed(ctx, err)
	}
	ctx, stop := b.within(ctx, luabind.Span(t.declared.Timeout, time.Second))
	defer stop()
	out, err := b.evaluate(ctx, t.path, args)
	if err == nil && len(out) > mcpAnswerLimit {
		err = errAnswer(len(out))
	}
	if err != nil {
		return b.failed(ctx, err)
	}
	answer := answered(b.host.maskedJSON(out))
	if size := sizeOf(answer, len(out)); size > mcpAnswerLimit {
		return b.failed(ctx, errAnswer(size))
	}
	return answer
}
