package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

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
to stderr. A script that is no tool, or has not returned one in time, is said on
stderr and left out. The command ends with its stdin, whatever still runs.

  { "mcpServers": { "mine": { "command": "knl", "args": ["mcp", "tools"] } } }`

// How long what runs may go on when the client has closed our stdin: scripts
// that are being read, then calls that do not heed their end.
const (
	mcpLoadGrace = 2 * time.Second
	mcpCallGrace = 3 * time.Second
)

func mcpCommand(a *app) *cobra.Command {
	var f runFlags
	var load time.Duration
	cmd := &cobra.Command{
		Use:   "mcp FOLDER",
		Short: "Serve a folder of scripts as MCP tools",
		Long:  mcpUsage,
		Args:  a.wantArgs("folder"),
		RunE: a.command(func(ctx context.Context, args []string) error {
			if load <= 0 {
				return misuse("", "--load-timeout wants a time above 0, as in 10s")
			}
			return a.serveMCP(ctx, f, load, args[0])
		}),
	}
	f.register(cmd)
	flags := cmd.Flags()
	flags.SetInterspersed(true)
	flags.DurationVar(&load, "load-timeout", 10*time.Second, "leave out a script that has not returned its tool after this long")
	flags.Lookup("timeout").Usage = "end a call after this long, as in 90s or 2h (0: never)"
	flags.Lookup("max-instructions").Usage = "end a call after this many VM instructions (0: never)"
	flags.Lookup("memory").Usage = "end a call above this much memory, as in 512M (default 1G)"
	flags.Lookup("quiet").Usage = "do not say what is served"
	return cmd
}

func (a *app) serveMCP(ctx context.Context, f runFlags, load time.Duration, dir string) (err error) {
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
	defer func() { err = errors.Join(err, h.stores.close()) }()
	b := &toolbox{
		host: h, limits: limits, time: f.timeout, load: load, quiet: f.quiet,
		places: make(chan struct{}, toolboxWidth), ready: make(chan struct{}), over: make(chan struct{}),
	}
	b.ctx, b.end = context.WithCancelCause(ctx)
	defer b.end(nil)
	b.calls.Go(func() { b.readAll(dir) })
	return b.serve(os.Stdin, a.ui.out)
}

// serve answers the client until it or the command ends.
func (b *toolbox) serve(in io.ReadCloser, out io.Writer) error {
	answers := &oneAtATime{w: out}
	lines := newMCPLines(in, answers, b.over)
	served := make(chan error, 1)
	go func() {
		served <- b.server().Run(b.ctx, &mcp.IOTransport{Reader: lines, Writer: answers, MaxLineLength: -1})
	}()
	select {
	case <-lines.ended:
		soon(b.ready, mcpLoadGrace)
	case <-b.ctx.Done():
	}
	close(b.over)
	var err error
	idle := make(chan struct{})
	go func() {
		err = <-served
		b.calls.Wait()
		close(idle)
	}()
	if !soon(idle, mcpCallGrace) {
		luabind.EndProcesses()
		b.host.app.ui.note("knl: mcp: what a tool runs has not ended within %s of the end: it is left", mcpCallGrace)
		return b.verdict(nil)
	}
	return b.verdict(err)
}

// soon waits for done, at most limit, and says whether it came.
func soon(done <-chan struct{}, limit time.Duration) bool {
	select {
	case <-done:
		return true
	case <-time.After(limit):
		return false
	}
}

// verdict says how the command ends: a client that closes our stdin is done.
func (b *toolbox) verdict(err error) error {
	var f *fault
	switch {
	case interrupted(b.ctx):
		return &fault{code: exitInterrupted, err: errInterrupted}
	case errors.As(context.Cause(b.ctx), &f):
		return f
	case err == nil || errors.Is(err, io.EOF):
		return nil
	}
	return fmt.Errorf("the client sent what cannot be read: %w", err)
}

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

// loadWidth is how many scripts are read at a time.
const loadWidth = 4

// readAll reads the scripts of dir, as long as there is a client. One that is no
// tool is said and left out.
func (b *toolbox) readAll(dir string) {
	defer close(b.ready)
	ctx, stop := context.WithCancelCause(b.ctx)
	defer stop(nil)
	go func() {
		<-b.over
		stop(errors.New("the client is gone"))
	}()
	var paths []string
	for _, path := range luaFiles(dir) {
		if !strings.HasSuffix(path, "_spec.lua") {
			paths = append(paths, path)
		}
	}
	tools, errs := make([]*servedTool, len(paths)), make([]error, len(paths))
	var all sync.WaitGroup
	places := make(chan struct{}, loadWidth)
	for i, path := range paths {
		places <- struct{}{}
		all.Go(func() {
			tools[i], errs[i] = b.read(ctx, path)
			<-places
		})
	}
	all.Wait()
	for i, t := range tools {
		if errs[i] == nil {
			b.served = append(b.served, t)
		} else if b.ctx.Err() == nil {
			b.host.app.ui.note("knl: mcp: %s", b.host.mask.Mask(fmt.Sprintf("%s is left out: %s", paths[i], errs[i])))
		}
	}
	switch {
	case len(b.served) == 0:
		b.end(misuse("knl mcp --help shows what a script returns", "%s: holds no tool, want *.lua files that return one", dir))
	case !b.quiet:
		b.host.app.ui.note("knl: serving %s", strings.Join(namesOf(b.served), ", "))
	}
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
