package luabind

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	lua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/shapes"
)

// The deadlines without start_timeout and call_timeout. A server that a package
// runner has to fetch first takes its time.
const (
	mcpStartTimeout = 30 * time.Second
	mcpCallTimeout  = 2 * time.Minute
)

// MCP is what require("mcp") works on.
type MCP struct {
	Version string  // of knl, which servers are told
	Mask    *Masker // whose secrets servers do not get in their environment; nil: none
}

// mcpState is what a VM keeps for require("mcp"): the clients that are open. The
// baton guards it.
type mcpState struct {
	vm      *VM
	clients map[*mcpClient]bool
}

// mcpHandle is a client as scripts hold it.
type mcpHandle struct {
	client     *mcpClient
	onProgress lua.LValue
}

var mcpTimeouts = []Arg{
	{Name: "start_timeout", Kind: Seconds, Optional: true, Doc: "until the server has answered the first time (default 30)"},
	{Name: "call_timeout", Kind: Seconds, Optional: true, Doc: "for each request, and the timeout of each tool (default 120)"},
	{Name: "on_progress", Kind: Function, Optional: true, Type: "fun(p: mcp.progress)", Doc: "hears what servers tell of calls under way"},
}

// MCPModule answers the module mcp. The clients of a VM are closed with it, and
// the servers that they started end.
func MCPModule(m *MCP) *Module {
	if m.Mask == nil {
		m.Mask = &Masker{}
	}
	return &Module{
		Name:   "mcp",
		Doc:    "Servers of the Model Context Protocol: their tools for a device, their resources and prompts.",
		Open:   func(vm *VM) (any, error) { return &mcpState{vm, map[*mcpClient]bool{}}, nil },
		Close:  func(state any) error { state.(*mcpState).close(); return nil },
		Types:  []*Type{mcpClientType},
		Shapes: mcpShapes,
		Fault:  mcpFault,
		Funcs: []Func{
			{
				Name: "stdio", Returns: "mcp.client", Fn: m.stdio,
				Args: []Arg{{Name: "opts", Kind: Table, Fields: append([]Arg{
					{Name: "command", Kind: Text, Doc: "the program alone, looked up in PATH"},
					{Name: "args", Kind: Table, Optional: true, Type: "string[]", Doc: "its arguments"},
					{Name: "env", Kind: Table, Optional: true, Type: "table<string, string|false>", Doc: "variables to set, false to take one away; credentials pass only this way"},
					{Name: "cwd", Kind: Text, Optional: true, Doc: "working folder, from the project root (default: the root)"},
				}, mcpTimeouts...)}},
				Doc: "Starts a server and speaks to it over its stdin and stdout. It ends, with all it started, by client:close() and " +
					"with the script: its stdin ends, then come TERM and KILL. Raises (kind not_found, denied, timeout, closed) when it does not come up.",
			},
			{
				Name: "http", Returns: "mcp.client", Fn: m.http,
				Args: []Arg{{Name: "opts", Kind: Table, Fields: append([]Arg{
					{Name: "url", Kind: Text, Doc: "the endpoint, http or https"},
					{Name: "headers", Kind: Table, Optional: true, Type: "table<string, string>", Doc: "sent with every request, and to no other host"},
				}, mcpTimeouts...)}},
				Doc: "Connects to a server over streamable HTTP. Raises (kind auth, invalid, transport, timeout, server) when it does not answer. " +
					"A session that the server has forgotten, or whose connection broke, is begun anew by the next request; one that the server has taken is not sent again.",
			},
		},
	}
}

var mcpClientType = &Type{
	Name:     "client",
	Doc:      "A connection to a server. What goes wrong raises, with a kind: timeout, closed, transport, auth, invalid, server; timeout and transport are retryable.",
	Tostring: func(v any) string { return "mcp.client " + v.(*mcpHandle).client.label },
	Methods: []Func{
		{
			Name: "tools", Args: []Arg{{Name: "filter", Optional: true, Type: "string[]|fun(tool: mcp.tool): boolean", Doc: "the names to take, or a function that chooses (default: all)"}},
			Returns: "table<string, knl.tool_entry>, mcp.refusal[], table<string, string>", Fn: clientTools,
			Doc: "The server's tools as knl.device takes them; what was refused, and why; and, for each name that had to change for the providers, the server's. " +
				"A handler answers text, or blocks, and a second value when the server sent structured content; it raises the text of a tool that failed.",
		},
		{
			Name: "resources", Returns: "mcp.resource[], mcp.template[]", Fn: clientResources,
			Doc: "What client:read takes, and the patterns of more of it.",
		},
		{
			Name: "read", Args: []Arg{{Name: "uri", Kind: Text}}, Returns: "mcp.contents[]", Fn: clientRead,
			Doc: "Reads a resource, which may have several parts.",
		},
		{
			Name: "prompts", Returns: "mcp.prompt[]", Fn: clientPrompts,
			Doc: "The prompts that the server offers.",
		},
		{
			Name: "prompt", Args: []Arg{{Name: "name", Kind: Text}, {Name: "args", Kind: Table, Optional: true, Type: "table<string, string>"}},
			Returns: "{ description?: string, messages: { role: string, content: table[] }[] }", Fn: clientPrompt,
			Doc: "A prompt with its arguments filled in, as messages of content blocks.",
		},
		{Name: "close", Fn: clientClose, Doc: "Ends the connection and the server behind it; requests under way raise. The second time does nothing."},
	},
}

// mcpFault shows a failure to the script; that a command does not start is a
// failure of std.
func mcpFault(err error) (Fault, bool) {
	var e *mcpError
	if !errors.As(err, &e) {
		return stdFault(err)
	}
	return Fault{Kind: e.kind, Message: e.text, Text: e.text, Retryable: e.kind == mcpLate || e.kind == mcpTransport}, true
}

func (st *mcpState) close() {
	var all sync.WaitGroup
	for c := range st.clients {
		all.Go(c.close)
	}
	all.Wait()
	for c := range st.clients {
		st.warn(c.label, c.left())
	}
	clear(st.clients)
}

// warn tells whoever looks after the run of what could not be ended.
func (st *mcpState) warn(label, left string) {
	if left != "" {
		st.vm.config.Warn(fmt.Sprintf("mcp server %q: %s", label, left))
	}
}

func (m *MCP) stdio(c *Call) (int, error) {
	opts := c.Options(1)
	cmd, err := m.command(c, opts)
	if err != nil {
		return 0, err
	}
	d := &mcpDial{label: filepath.Base(cmd.argv[0]), open: func(client *mcpClient, _ *mcpWire) (mcp.Transport, error) {
		server, err := cmd.serve()
		if err != nil {
			return nil, err
		}
		client.server = server
		return &mcp.IOTransport{Reader: server.frames, Writer: server.stdin, MaxLineLength: -1}, nil
	}}
	return m.dial(c, opts, d)
}

func (m *MCP) http(c *Call) (int, error) {
	opts := c.Options(1)
	endpoint, err := m.endpoint(c, opts.String("url", ""))
	if err != nil {
		return 0, err
	}
	headers, err := mcpHeaders(c, opts.Table("headers"))
	if err != nil {
		return 0, err
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	d := &mcpDial{label: endpoint.Host, open: webTransport(base, endpoint, headers), idle: base.CloseIdleConnections}
	d.hide.Add(endpoint.RawQuery)
	return m.dial(c, opts, d)
}

func (m *MCP) dial(c *Call, opts Options, d *mcpDial) (int, error) {
	d.version = m.Version
	d.start, d.call = opts.Seconds("start_timeout", mcpStartTimeout), opts.Seconds("call_timeout", mcpCallTimeout)
	if d.start <= 0 || d.call <= 0 {
		return 0, c.Mistake("options \"start_timeout\" and \"call_timeout\": got 0, want seconds above 0")
	}
	var client *mcpClient
	err := c.Block(func(ctx context.Context) (err error) {
		client, err = d.connect(ctx)
		return err
	})
	st := c.State().(*mcpState)
	if err == nil || !strings.Contains(err.Error(), d.left) {
		st.warn(d.label, d.left)
	}
	if err != nil {
		return 0, err
	}
	st.clients[client] = true
	return c.Return(c.VM().Wrap(mcpClientType, &mcpHandle{client, opts.Value("on_progress")}))
}

// command reads the options of stdio.
func (m *MCP) command(c *Call, opts Options) (*command, error) {
	cmd := &command{argv: []string{opts.String("command", "")}}
	if strings.TrimSpace(cmd.argv[0]) == "" {
		return nil, c.Mistake("option %q: got %q, want a program", "command", cmd.argv[0])
	}
	if args := opts.Table("args"); args != nil {
		if key := keyBeside(args, args.MaxN()); key != lua.LNil {
			return nil, c.Mistake("option %q: got the key %s, want a list of strings", "args", show(key))
		}
		for i := 1; i <= args.MaxN(); i++ {
			word, ok := args.RawGetInt(i).(lua.LString)
			if !ok {
				return nil, c.Mistake("args[%d]: got %s, want a string", i, show(args.RawGetInt(i)))
			}
			cmd.argv = append(cmd.argv, string(word))
		}
	}
	for _, word := range cmd.argv {
		if strings.ContainsRune(word, 0) {
			return nil, c.Mistake("option %q: got a zero byte, want text", "command")
		}
	}
	set, err := variables(c, opts.Table("env"))
	if err != nil {
		return nil, err
	}
	cmd.env = childEnv(os.Environ(), m.Mask, set)
	root, err := filepath.Abs(c.VM().Config().Project)
	if err != nil {
		return nil, err
	}
	if cmd.dir = opts.String("cwd", "."); !filepath.IsAbs(cmd.dir) {
		cmd.dir = filepath.Join(root, cmd.dir)
	}
	return cmd, nil
}

// mcpShape are the Forms of what mcp answers.
type mcpShape struct{ tool, refusal, progress, resource, template, contents, prompt *shapes.Form }

var mcpForms = sync.OnceValue(func() *mcpShape {
	said := []string{"Name name", "Title title,omitempty", "Description description,omitempty"}
	of := append([]string{"MIMEType mime_type,omitempty"}, said...)
	m := &mcpShape{
		tool: shapes.NewForm("tool", "A tool of a server, as a filter sees it.", mcpTool{}, append([]string{
			"Effects effects read when the server says that it only looks", "Idempotent idempotent the server says so"}, said...)...),
		refusal: shapes.NewForm("refusal", "A tool that was left out.", mcpRefusal{}, "Name name", "Reason reason"),
		progress: shapes.NewForm("progress", "How far a call is.", mcpProgress{}, "Tool tool the server's name of it",
			"Progress progress it only grows", "Total total,omitempty when it is known", "Message message,omitempty"),
		resource: shapes.NewForm("resource", "What client:read takes.", mcpResource{}, append([]string{"URI uri", "Size size,omitempty bytes"}, of...)...),
		template: shapes.NewForm("template", "A pattern of resources.", mcpTemplate{}, append([]string{"URI uri_template RFC 6570"}, of...)...),
		contents: shapes.NewForm("contents", "A part of a resource: text or bytes.", mcpContents{}, "URI uri", "MIMEType mime_type,omitempty",
			"Text text,omitempty", "Bytes bytes,omitempty"),
		prompt: shapes.NewForm("prompt", "A prompt that a server offers.", mcpPrompt{}, append([]string{"Arguments arguments"}, said...)...),
	}
	m.tool.As("effects", shapes.OneOf("read", "external"))
	return m
})

// mcpShapes answers what mcp publishes.
func mcpShapes() (out []Shape) {
	m := mcpForms()
	for _, f := range []*shapes.Form{m.tool, m.refusal, m.progress, m.resource, m.template, m.contents, m.prompt} {
		out = append(out, Shape{Name: f.Name, Doc: f.Doc, Schema: f.Schema()})
	}
	return out
}
