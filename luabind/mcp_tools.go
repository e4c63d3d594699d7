package luabind

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	lua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/port"
)

// mcpListLimit bounds what a server may list: pages without end are an error
// and not a wait.
const mcpListLimit = 10_000

// mcpTool is a tool of a server as a filter sees it.
type mcpTool struct {
	Name        string
	Title       string
	Description string
	Effects     string
	Idempotent  bool
	key         string // what providers accept
	schema      json.RawMessage
}

// mcpRefusal is a tool that was left out.
type mcpRefusal struct{ Name, Reason string }

// clientTools is client:tools(filter?).
func clientTools(c *Call) (int, error) {
	h := Self[*mcpHandle](c)
	filter, err := mcpFilterOf(c)
	if err != nil {
		return 0, err
	}
	var listed []*mcpListed
	if err := c.Block(func(ctx context.Context) (err error) {
		listed, err = h.client.listTools(ctx)
		return err
	}); err != nil {
		return 0, err
	}
	tools, refused := readMCPTools(listed)
	if tools, refused, err = filter(tools, refused); err != nil {
		return 0, err
	}
	return h.pushTools(c, tools, refused)
}

// pushTools answers the map of entries, the refusals and the changed names.
func (h *mcpHandle) pushTools(c *Call, tools []mcpTool, refused []mcpRefusal) (int, error) {
	entries, names := c.L.CreateTable(0, len(tools)), c.L.CreateTable(0, 0)
	for i := range tools {
		t := &tools[i]
		entry, err := h.entry(c, t)
		if err != nil {
			refused = append(refused, mcpRefusal{t.Name, err.Error()})
			continue
		}
		entries.RawSetString(t.key, entry)
		if t.key != t.Name {
			names.RawSetString(t.key, lua.LString(t.Name))
		}
	}
	list := TagArray(c.L, c.L.CreateTable(len(refused), 0))
	for _, r := range refused {
		list.Append(c.VM().structTable(c.L, mcpForms().refusal, r))
	}
	return c.Return(entries, list, names)
}

// entry makes what a device takes for t.
func (h *mcpHandle) entry(c *Call, t *mcpTool) (*lua.LTable, error) {
	schema, err := FromJSON(c.L, t.schema)
	if err != nil {
		return nil, fmt.Errorf("input_schema: %w", err)
	}
	entry := c.L.CreateTable(0, 6)
	setText(entry, "description", t.Description)
	entry.RawSetString("input_schema", schema)
	entry.RawSetString("effects", lua.LString(t.Effects))
	if t.Idempotent {
		entry.RawSetString("idempotent", lua.LTrue)
	}
	entry.RawSetString("timeout", lua.LNumber(h.client.call.Seconds()))
	entry.RawSetString("handler", c.VM().function(&Func{
		Name:    t.key,
		Args:    []Arg{{Name: "args", Kind: Table, Optional: true}, {Name: "ctx", Optional: true}},
		Returns: "any, any?",
		Fn:      func(c *Call) (int, error) { return h.callTool(c, t.Name) },
	}, bound{place: "mcp " + h.client.label + ": " + t.Name, state: c.State()}))
	return entry, nil
}

// callTool is the handler of a tool.
func (h *mcpHandle) callTool(c *Call, name string) (int, error) {
	args := json.RawMessage(`{}`)
	if c.Given(1) {
		raw, err := AppendJSON(nil, c.Table(1), &Encoding{Name: "arguments", ListFields: true})
		if err != nil {
			return 0, c.Mistake("%s", err)
		}
		if raw[0] != '{' && string(raw) != "[]" {
			return 0, c.ArgMistake(1, "a table of named arguments")
		}
		if raw[0] == '{' {
			args = raw
		}
	}
	var answer *mcpToolAnswer
	if err := c.Block(func(ctx context.Context) (err error) {
		answer, err = h.client.callTool(ctx, name, args, h.tell(c.VM(), name))
		return err
	}); err != nil {
		if said, failed := err.(toolFailure); failed {
			RaiseValue(c.L, lua.LString(said))
		}
		return 0, err
	}
	structured, err := lua.LValue(nil), error(nil)
	if answer.structured != nil {
		if structured, err = FromJSON(c.L, answer.structured); err != nil {
			answer.blocks = append(answer.blocks, textOfBlock("[structured content that cannot be read: %s]", err))
			answer.structured = nil
		}
	}
	result, err := answer.result()
	if err != nil {
		return 0, err
	}
	v, err := FromJSON(c.L, result)
	if err != nil {
		return 0, h.client.says(mcpRefused, err, "%s: its answer: %s", name, err)
	}
	if answer.structured == nil {
		return c.Return(v)
	}
	return c.Return(v, structured)
}

// tell answers what brings progress to the script, or nil when it does not
// listen.
func (h *mcpHandle) tell(vm *VM, tool string) func(context.Context, mcpProgress) error {
	if h.onProgress == lua.LNil {
		return nil
	}
	return func(ctx context.Context, p mcpProgress) error {
		p.Tool = tool
		return vm.Enter(ctx, func(c *Call) error {
			_, err := c.Invoke(h.onProgress, vm.structTable(c.L, mcpForms().progress, p))
			return err
		})
	}
}

// mcpListed is a tool as a server lists it. Its schema keeps every digit. What
// is not of its kind is as if it were not there; a tool without a name is refused.
type mcpListed struct {
	Name, Title, Description string
	InputSchema              json.RawMessage
	ReadOnly, Idempotent     bool
	TaskOnly                 bool // it takes no call that waits for its answer
}

// UnmarshalJSON implements [json.Unmarshaler]; it takes any value.
func (t *mcpListed) UnmarshalJSON(raw []byte) error {
	var object, hints, execution map[string]json.RawMessage
	_ = json.Unmarshal(raw, &object)
	_ = json.Unmarshal(object["annotations"], &hints)
	_ = json.Unmarshal(object["execution"], &execution)
	for field, into := range map[string]*string{"name": &t.Name, "title": &t.Title, "description": &t.Description} {
		_ = json.Unmarshal(object[field], into)
	}
	t.InputSchema = object["inputSchema"]
	t.ReadOnly, t.Idempotent = string(hints["readOnlyHint"]) == "true", string(hints["idempotentHint"]) == "true"
	t.TaskOnly = string(execution["taskSupport"]) == `"required"`
	return nil
}

func (c *mcpClient) listTools(ctx context.Context) ([]*mcpListed, error) {
	if caps := c.joined().InitializeResult().Capabilities; caps == nil || caps.Tools == nil {
		return nil, nil
	}
	return mcpAsk(ctx, c, question{act: "tools/list", limit: c.call}, func(ctx context.Context, s *mcpSession) (all []*mcpListed, err error) {
		for cursor, more := "", true; more; more = cursor != "" {
			page, err := s.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
			if err != nil {
				return nil, err
			}
			var raw struct{ Tools []*mcpListed }
			if err := json.Unmarshal(replyTo(ctx).last(), &raw); err != nil {
				return nil, err
			}
			all, cursor = append(all, raw.Tools...), page.NextCursor
			if len(all) > mcpListLimit {
				return nil, errMCPTooMany
			}
		}
		return slices.DeleteFunc(all, func(t *mcpListed) bool { return t == nil }), nil
	})
}

func (c *mcpClient) callTool(ctx context.Context, name string, args json.RawMessage, heard func(context.Context, mcpProgress) error) (*mcpToolAnswer, error) {
	params := &mcp.CallToolParams{Name: name, Arguments: args}
	q := question{act: "tools/call " + name, limit: c.call, heard: heard}
	if heard != nil {
		token, told := c.follow()
		defer c.unfollow(token)
		params.SetProgressToken(token)
		q.progress = told
	}
	r, err := mcpAsk(ctx, c, q, func(ctx context.Context, s *mcpSession) (*mcpToolAnswer, error) {
		_, err := s.CallTool(ctx, params)
		return readToolAnswer(replyTo(ctx).last()), err
	})
	if err == nil && r.failed {
		return nil, toolFailure(r.failure())
	}
	return r, err
}

// readMCPTools reads what a server lists. A tool that would spoil the requests
// it is offered in is refused; the others keep their names whatever is refused.
func readMCPTools(listed []*mcpListed) (tools []mcpTool, refused []mcpRefusal) {
	names, seen := []string{}, map[string]bool{}
	for _, t := range listed {
		names = append(names, t.Name)
	}
	keys := port.ToolNames(names)
	for i, t := range listed {
		tool, err := readMCPTool(t)
		if err == nil && seen[t.Name] {
			err = fmt.Errorf("the server lists the name twice")
		}
		seen[t.Name] = true
		if err != nil {
			refused = append(refused, mcpRefusal{t.Name, err.Error()})
			continue
		}
		tool.key = keys[i]
		tools = append(tools, tool)
	}
	return tools, refused
}

func readMCPTool(t *mcpListed) (mcpTool, error) {
	out := mcpTool{Name: t.Name, Title: t.Title, Description: t.Description, Effects: "external"}
	if out.Description == "" {
		out.Description = out.Title
	}
	if t.ReadOnly {
		out.Effects = "read"
	}
	out.Idempotent = t.Idempotent || t.ReadOnly
	if t.Name == "" {
		return out, fmt.Errorf("it has no name")
	}
	if t.TaskOnly {
		return out, fmt.Errorf("the server runs it as a task only, which is not asked for")
	}
	schema, err := NewArgSchema(t.InputSchema)
	if err != nil {
		return out, err
	}
	out.schema = schema.JSON
	return out, nil
}

// mcpFilter takes from the tools what a script does not want.
type mcpFilter func([]mcpTool, []mcpRefusal) ([]mcpTool, []mcpRefusal, error)

// mcpFilterOf reads argument 1: nothing, the names of the server's tools, or a
// function.
func mcpFilterOf(c *Call) (mcpFilter, error) {
	if !c.Given(1) {
		return func(t []mcpTool, r []mcpRefusal) ([]mcpTool, []mcpRefusal, error) { return t, r, nil }, nil
	}
	if fn := c.Arg(1); callable(c.L, fn) {
		return func(t []mcpTool, r []mcpRefusal) ([]mcpTool, []mcpRefusal, error) {
			chosen, err := chosenBy(c, fn, t)
			return chosen, r, err
		}, nil
	}
	list, ok := c.Arg(1).(*lua.LTable)
	if !ok || keyBeside(list, list.MaxN()) != lua.LNil {
		return nil, c.ArgMistake(1, "a list of names, or a function")
	}
	wanted := []string{}
	for i := 1; i <= list.MaxN(); i++ {
		name, ok := list.RawGetInt(i).(lua.LString)
		if !ok {
			return nil, c.Mistake("filter[%d]: got %s, want the name of a tool", i, show(list.RawGetInt(i)))
		}
		wanted = append(wanted, string(name))
	}
	return func(t []mcpTool, r []mcpRefusal) ([]mcpTool, []mcpRefusal, error) {
		chosen, left := mcpNamed(wanted, t, r)
		return chosen, left, nil
	}, nil
}

func chosenBy(c *Call, fn lua.LValue, tools []mcpTool) (chosen []mcpTool, err error) {
	for _, t := range tools {
		out, err := c.Invoke(fn, c.VM().structTable(c.L, mcpForms().tool, t))
		if err != nil {
			return nil, err
		}
		if lua.LVAsBool(first(out)) {
			chosen = append(chosen, t)
		}
	}
	return chosen, nil
}

// mcpNamed answers the tools of these names, as the server or a provider spells
// them. One that is not there is refused too: a server that has changed must
// not go unnoticed.
func mcpNamed(wanted []string, tools []mcpTool, refused []mcpRefusal) (chosen []mcpTool, left []mcpRefusal) {
	known := []string{}
	for _, t := range tools {
		known = append(known, t.Name)
	}
next:
	for _, name := range wanted {
		for _, t := range tools {
			if t.Name == name || t.key == name {
				chosen = append(chosen, t)
				continue next
			}
		}
		for _, r := range refused {
			if r.Name == name {
				left = append(left, r)
				continue next
			}
		}
		left = append(left, mcpRefusal{name, strings.TrimSpace("the server has no such tool: " + Suggest(name, known))})
	}
	return chosen, left
}
