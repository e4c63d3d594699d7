package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/pebblestore"
	"github.com/knl-run/knl/kernel/sockstore"
	"github.com/knl-run/knl/kernel/store"
)

// A child of these tests is this very test binary, running main with a store
// that stops at a write it is told: then the parent, another process, kills it
// with SIGKILL at exactly that boundary.
//
//	KNL_TEST_STOP = "<n>:<moment>"   before, written or durable
const stopVariable = "KNL_TEST_STOP"

// childMain runs knl in place of the tests when this process is a child.
func childMain() {
	spec, ok := os.LookupEnv(stopVariable)
	if !ok {
		return
	}
	at, moment, _ := strings.Cut(spec, ":")
	n, err := strconv.Atoi(at)
	if err != nil {
		panic(err)
	}
	openStore = func(ctx context.Context, dir string, o pebblestore.Options) (store.Store, bool, error) {
		st, held, err := sockstore.Open(ctx, dir, o)
		if err != nil {
			return nil, held, err
		}
		return &stopping{Store: st, at: n, moment: moment}, held, nil
	}
	a := &app{ui: newUI(os.Stdout, os.Stderr), name: "knl"}
	os.Exit(a.run(context.Background(), os.Args[1:]))
}

// stopping is a store that announces one moment of its at-th write and stands
// still there.
type stopping struct {
	store.Store
	at     int
	writes atomic.Int64
	moment string
}

func (s *stopping) Apply(ctx context.Context, b *store.Batch, f store.Flush) (store.Commit, error) {
	here := s.writes.Add(1) == int64(s.at)
	s.stop(here, "before")
	c, err := s.Store.Apply(ctx, b, f)
	if err != nil {
		return nil, err
	}
	s.stop(here, "written")
	return &stoppingCommit{c, s, here}, nil
}

func (s *stopping) stop(here bool, moment string) {
	if here && s.moment == moment {
		fmt.Fprintln(os.Stderr, "STOPPED")
		select {}
	}
}

type stoppingCommit struct {
	store.Commit
	s    *stopping
	here bool
}

func (c *stoppingCommit) Wait(ctx context.Context) error {
	err := c.Commit.Wait(ctx)
	c.s.stop(c.here, "durable")
	return err
}

// killScript makes three beats with three calls of a tool that leaves a line
// outside for every time it runs.
const killScript = `
local knl, ports = require("knl"), require("ports")
local port = ports.script{
  { calls = { { "note", { n = 1 } } } },
  { calls = { { "note", { n = 2 } }, { "peek", {} }, { "note", { n = 3 } } } },
  { text = "done" },
  { text = "done" }, -- for a run that was killed between its last reply and its close
}
local device = knl.device{
  llm = port:open(),
  tools = {
    note = { handler = function(args, ctx)
      std.fs.append("effects.txt", ctx.idempotency_key .. "\n")
      return "noted " .. args.n
    end },
    peek = { effects = "read", handler = function() return std.fs.exists("effects.txt") end },
  },
}
return knl.session({ session = arg.session, budget = { amount = 9 } }, function(s)
  if #s:scan{ kinds = { "msg_user" } } == 0 then
    s:append{ kind = "msg_user", data = { content = "note three things" } }
  end
  while true do
    local o = knl.beat(s, device)
    if o.status ~= "ok" then return o end
    if #o.out.tools == 0 then return { ok = o.out.content[1].text == "done" } end
  end
end)
`

// child starts knl as a child and answers once it stopped at the boundary
// (true) or ended (false).
func child(t *testing.T, dir, stop string, args ...string) (*exec.Cmd, bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), stopVariable+"="+stop)
	out, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == "STOPPED" {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return cmd, true
		}
	}
	require.NoError(t, cmd.Wait())
	return cmd, false
}

// knl runs the built binary in dir.
func knl(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "knl %s\n%s", strings.Join(args, " "), out)
	return string(out)
}

func sessionIDs(t *testing.T, dir string) []string {
	t.Helper()
	st, err := pebblestore.Open(filepath.Join(dir, ".knl"), pebblestore.Options{})
	require.NoError(t, err)
	defer st.Close()
	rows, err := kernel.New(st, kernel.Options{}).Sessions(context.Background(), "", 0)
	require.NoError(t, err)
	var ids []string
	for _, r := range rows {
		ids = append(ids, r.Session)
	}
	return ids
}

// TestKilledAtEveryWrite kills a real run at every moment of every write, takes
// it up again and holds: the store is sound, the loop comes to its end, and no
// call has run more than once.
func TestKilledAtEveryWrite(t *testing.T) {
	writes := 0
	for killedAt(t, fmt.Sprintf("%d:before", writes+1)) {
		writes++
	}
	require.Greater(t, writes, 8, "the script has more writes than this")
	for _, moment := range []string{"written", "durable"} { // not every write is waited for
		for n := 1; n <= writes; n++ {
			killedAt(t, fmt.Sprintf("%d:%s", n, moment))
		}
	}
}

// killedAt answers false when the run ended before it came to the boundary.
func killedAt(t *testing.T, stop string) bool {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kill.lua"), []byte(killScript), 0o644))
	cmd, stopped := child(t, dir, stop, "run", "kill.lua")
	if stopped {
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
	}
	knlIfStore(t, dir, stop)
	ids := sessionIDs(t, dir)
	switch {
	case !stopped:
		require.Len(t, ids, 1)
	case len(ids) == 0:
		knl(t, dir, "run", "kill.lua")
	case !closed(t, dir, ids[0]):
		knl(t, dir, "resume", ids[0], "kill.lua")
	}
	knl(t, dir, "check", "store")
	raw, err := os.ReadFile(filepath.Join(dir, "effects.txt"))
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	effects := strings.Fields(string(raw))
	slices.Sort(effects)
	assert.Equal(t, slices.Compact(slices.Clone(effects)), effects, "%s: a call ran twice", stop)
	return stopped
}

// knlIfStore checks the store of a killed run, when the run came to make one.
func knlIfStore(t *testing.T, dir, stop string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, ".knl")); err == nil {
		assert.Contains(t, knl(t, dir, "check", "store"), "ok", "killed at %s", stop)
	}
}

func closed(t *testing.T, dir, id string) bool {
	t.Helper()
	st, err := pebblestore.Open(filepath.Join(dir, ".knl"), pebblestore.Options{})
	require.NoError(t, err)
	defer st.Close()
	s, err := kernel.New(st, kernel.Options{}).Attach(context.Background(), id)
	require.NoError(t, err)
	ended, _, err := s.Closed(context.Background())
	require.NoError(t, err)
	return ended
}

// pausedScript drives a session through the holder of the store and is paused
// inside a tool.
const pausedScript = `
local knl, ports = require("knl"), require("ports")
local port = ports.script{ { calls = { { "slow", {} } } }, { text = "done" } }
local device = knl.device{ llm = port:open(), tools = { slow = { handler = function()
  std.fs.write("inside", "")
  while not std.fs.exists("go") do std.task.sleep(10) end
  return "slow is over"
end } } }
local s = arg.session and knl.resume{ session = arg.session } or knl.open{}
std.fs.write("session", s:id())
s:append{ kind = "msg_user", data = { content = "be slow" } }
local o = knl.beat(s, device)
std.fs.write("outcome", o.status .. " " .. tostring(o.kind) .. " " .. tostring(o.detail and o.detail.kind))
local ok, e = pcall(function() s:append{ kind = "note" } end)
std.fs.write("append", tostring(ok) .. " " .. tostring(knl.error(e).kind))
local ok, e = pcall(function() s:close() end)
std.fs.write("close", tostring(ok) .. " " .. tostring(knl.error(e).kind))
`

const takeoverScript = `
local knl, ports = require("knl"), require("ports")
local device = knl.device{ llm = ports.script(function() return { text = "taken over" } end):open() }
local s = knl.resume{ session = arg.session }
local cut = s:interrupted()
local o = knl.beat(s, device)
std.fs.write("taken", cut.stage .. " " .. #cut.open_calls .. " " .. o.status .. " " .. s:len())
`

// TestTwoDrivers pauses a driver inside a tool with SIGSTOP, takes its session
// over from another process, lets it go on, and holds: it writes nothing more.
func TestTwoDrivers(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"hold.lua":   `require("knl").open{}:close() while not std.fs.exists("end") do std.task.sleep(10) end`,
		"paused.lua": pausedScript, "takeover.lua": takeoverScript,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	start := func(args ...string) *exec.Cmd {
		cmd := exec.Command(binary, args...)
		cmd.Dir = dir
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		return cmd
	}
	holder := start("run", "hold.lua")
	waitFile(t, filepath.Join(dir, ".knl", "sock"))
	first := start("run", "paused.lua")
	waitFile(t, filepath.Join(dir, "inside"))
	require.NoError(t, first.Process.Signal(syscall.SIGSTOP))

	id := readText(t, filepath.Join(dir, "session"))
	knl(t, dir, "resume", id, "takeover.lua")
	taken := readText(t, filepath.Join(dir, "taken"))
	assert.Regexp(t, `^tools 1 ok \d+$`, taken)
	length := taken[strings.LastIndexByte(taken, ' ')+1:]

	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o644))
	require.NoError(t, first.Process.Signal(syscall.SIGCONT))
	require.NoError(t, first.Wait())
	assert.Equal(t, "error state fenced", readText(t, filepath.Join(dir, "outcome")))
	assert.Equal(t, "false fenced", readText(t, filepath.Join(dir, "append")))
	assert.Equal(t, "false fenced", readText(t, filepath.Join(dir, "close")))

	log := knl(t, dir, "log", id, "--json")
	assert.Equal(t, length, strconv.Itoa(strings.Count(log, "\n")), "the old driver wrote something:\n%s", log)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "end"), nil, 0o644))
	require.NoError(t, holder.Wait())
	assert.Contains(t, knl(t, dir, "check", "store"), "ok")
}

// throughScript writes through the holder of the store, before and after the
// holder's own run has ended.
const throughScript = `
local s = require("knl").open{}
s:append{ kind = "note" }
std.fs.write("through", "")
while not std.fs.exists("over") do std.task.sleep(10) end
for _ = 1, 20 do s:append{ kind = "note" } end
s:close()
`

// TestARunOutlivesTheHolderOfItsStore ends the run of the process that holds the
// store while another works through it: the holder leaves, and the other goes on to
// its end.
func TestARunOutlivesTheHolderOfItsStore(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"hold.lua":    `require("knl").open{}:close() while not std.fs.exists("end") do std.task.sleep(10) end std.fs.write("ended", "")`,
		"through.lua": throughScript,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	run := func(script string) *exec.Cmd {
		cmd := exec.Command(binary, "run", script)
		cmd.Dir = dir
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		return cmd
	}
	holder := run("hold.lua")
	waitFile(t, filepath.Join(dir, ".knl", "sock"))
	through := run("through.lua")
	waitFile(t, filepath.Join(dir, "through"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "end"), nil, 0o644))
	waitFile(t, filepath.Join(dir, "ended"))
	require.NoError(t, holder.Wait())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "over"), nil, 0o644))
	require.NoError(t, through.Wait())
	assert.Contains(t, knl(t, dir, "check", "store"), "ok")
	assert.Len(t, sessionIDs(t, dir), 2)
}

func waitFile(t *testing.T, path string) {
	t.Helper()
	require.Eventually(t, func() bool { _, err := os.Stat(path); return err == nil }, 30*time.Second, 5*time.Millisecond, "%s never came", path)
}

func readText(t *testing.T, path string) string {
	t.Helper()
	waitFile(t, path)
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	return strings.TrimSpace(string(raw))
}
