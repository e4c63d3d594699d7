package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/knl-run/knl/luabind"
)

const mcpUsage = `Serves a folder of Lua scripts as tools of the Model Context Protocol, over stdin
and stdout. Each file is one tool, named as the file; *_spec.lua and what lies in
folders below is left out. A script returns what knl.device takes as a tool, or
only the handler:

  -- Adds two numbers.
  return {
    input_schema = {
      type = "object",
      properties = { a = { type = "number" }, b = { type = "number" } },
      required = { "a", "b" },
    },
    handler = function(args) return args.a + args.b end,
  }

Without a description the comment at the top is it. effects = "read" and
idempotent are told to clients. Arguments are checked by input_schema first. A
handler answers text, content blocks, or a value, which is sent as JSON; what it
raises is told as a failed call, by its message.

Every call runs the script anew, in a VM of its own: a script keeps nothing in
variables from call to call, but it may open sessions in the store. print goes
to stderr. A script that is no tool is said on stderr and left out. The command
ends with its stdin.

  { "mcpServers": { "mine": { "command": "knl", "args": ["mcp", "tools"] } } }`

func mcpCommand(a *app) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "mcp FOLDER",
		Short: "Serve a folder of scripts as MCP tools",
		Long:  mcpUsage,
		Args:  a.wantArgs("folder"),
		RunE: a.command(func(ctx context.Context, args []string) error {
			return a.serveMCP(ctx, f, args[0])
		}),
	}
	f.register(cmd)
	flags := cmd.Flags()
	flags.SetInterspersed(true)
	flags.Lookup("timeout").Usage = "end a call after this long, as in 90s or 2h (0: never)"
	flags.Lookup("max-instructions").Usage = "end a call after this many VM instructions (0: never)"
	flags.Lookup("memory").Usage = "end a call above this much memory, as in 512M (default 1G)"
	flags.Lookup("quiet").Usage = "do not say what is served"
	return cmd
}

func (a *app) serveMCP(ctx context.Context, f runFlags, dir string) (err error) {
	limits, err := f.limits()
	if err != nil {
		return err
	}
	if err := errors.Join(folderFault(dir), modelFault(a.flags.model)); err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	h := a.newHost()
	defer func() { err = errors.Join(err, h.stores.close(ctx)) }()
	b := &toolbox{host: h, limits: limits, time: f.timeout, places: make(chan struct{}, toolboxWidth)}
	defer b.calls.Wait()
	tools, err := b.tools(ctx, dir)
	if err != nil {
		return err
	}
	if !f.quiet {
		a.ui.note("knl: serving %s", strings.Join(namesOf(tools), ", "))
	}
	return endOfServing(ctx, b.server(tools).Run(ctx, &mcp.IOTransport{Reader: os.Stdin, Writer: unclosed{a.ui.out}}))
}

// endOfServing says how the command ends: a client that closes our stdin is
// done.
func endOfServing(ctx context.Context, err error) error {
	switch {
	case interrupted(ctx):
		return &fault{code: exitInterrupted, err: errInterrupted}
	case err == nil || errors.Is(err, io.EOF):
		return nil
	}
	return fmt.Errorf("the client sent what cannot be read: %w", err)
}

// unclosed keeps stdout open: the process closes it.
type unclosed struct{ io.Writer }

// Close does nothing.
func (unclosed) Close() error { return nil }

// folderFault answers why there is no folder at path, or nil.
func folderFault(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return misuse("", "%s: no such folder", path)
	case err != nil:
		return misuse("", "%s", err)
	case !info.IsDir():
		return misuse("knl mcp "+filepath.Dir(path), "%s: is a file, want a folder of scripts", path)
	}
	return nil
}

// tools reads the scripts of dir. One that is no tool is said and left out.
func (b *toolbox) tools(ctx context.Context, dir string) (tools []*servedTool, err error) {
	for _, path := range luaFiles(dir) {
		if strings.HasSuffix(path, "_spec.lua") {
			continue
		}
		t, err := b.read(ctx, path)
		if err != nil {
			b.host.app.ui.note("knl: mcp: %s", b.host.mask.Mask(fmt.Sprintf("%s is left out: %s", path, err)))
			continue
		}
		tools = append(tools, t)
	}
	switch {
	case interrupted(ctx):
		return nil, &fault{code: exitInterrupted, err: errInterrupted}
	case len(tools) == 0:
		return nil, misuse("knl mcp --help shows what a script returns", "%s: holds no tool, want *.lua files that return one", dir)
	}
	return tools, nil
}

func namesOf(tools []*servedTool) (names []string) {
	for _, t := range tools {
		names = append(names, t.name)
	}
	return names
}

// script answers the script of a tool, to be run once.
func (b *toolbox) script(path string) *script {
	return &script{path: path, limits: luabind.Limits{Instructions: b.limits.Instructions, Memory: b.limits.Memory}, stdout: b.host.app.ui.err, host: b.host}
}
