package luabind

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestWhoRuns(t *testing.T) {
	for stat, want := range map[string]bool{
		"12 (sleep) S 1 7 7 0":      true,
		"12 (sleep) R 1 7 7 0":      true,
		"12 (sleep) Z 1 7 7 0":      false,
		"12 (sleep) X 1 7 7 0":      false,
		"12 (a) Z 1 7) S 1 7 7 0":   true,
		"12 (a b) Z 1 77 7 0":       false,
		"12 (cut":                   false,
		"":                          false,
		"7 (two\nlines) Z 1 7 7\n":  false,
		"7 (two\nlines) D 1 7 7 0 ": true,
	} {
		assert.Equal(t, want, runs([]byte(stat)), stat)
	}
}

// A member that nobody collects holds the session's number and takes signals; the
// test is the parent that does not collect.
func TestADeadMemberIsNotWaitedFor(t *testing.T) {
	cmd := exec.Command("sleep", "300")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	require.NoError(t, cmd.Start())
	defer cmd.Wait()
	p := &process{cmd: cmd, kill: syscall.Kill, exited: make(chan struct{})}
	close(p.exited) // as if it had been another that was the leader
	assert.Equal(t, []int{cmd.Process.Pid}, p.running())
	began := time.Now()
	assert.Empty(t, p.endSession(t.Context(), 0, 30*time.Second))
	assert.Less(t, time.Since(began), 20*time.Second)
	assert.True(t, p.signal(0), "the dead member is still there")
	assert.Empty(t, p.running())
}

// scattered is a command whose processes have groups of their own: timeout(1) and
// the jobs of an interactive shell do that. None heeds TERM, HUP or the end of its
// input.
const scattered = `
	stubborn='trap "" TERM HUP; echo $$ >>pids; while :; do sleep 0.05; done'
	timeout 600 sh -c "$stubborn" &
	(set -m; sh -c "$stubborn" & sh -c "$stubborn; :" | sh -c "$stubborn" &)
	while [ $(wc -l <pids) -lt 4 ]; do sleep 0.01; done 2>/dev/null
	touch ready
`

func TestWhatLeftTheGroupEndsWithTheCommand(t *testing.T) {
	defer goleak.VerifyNone(t, theStarter)
	c := shell(t, scattered)
	assert.Equal(t, 0, mustRun(t, c).code)
	require.Len(t, pidsIn(t, c.dir), 4)
	assertGone(t, pidsIn(t, c.dir))

	c = shell(t, scattered+"wait")
	assert.True(t, stopWhenReady(t, c).timedOut)
	assertGone(t, pidsIn(t, c.dir))
}

// What asks a human at the terminal gets an error: a session of its own has none.
func TestCommandsHaveNoTerminal(t *testing.T) {
	c := shell(t, `
		[ "$(cut -d" " -f6 /proc/$$/stat)" = $$ ] && echo "a session of its own"
		(read x </dev/tty) 2>/dev/null || echo "nothing to read"
		(echo x >/dev/tty) 2>/dev/null || echo "nothing to write to"`)
	c.timeout = 10 * time.Second
	assert.Equal(t, commandResult{stdout: "a session of its own\nnothing to read\nnothing to write to\n"}, mustRun(t, c))
}

// The test is two processes: the one in the middle starts commands and a server
// and is killed before it can end them.
func TestAllEndsWithAHostThatIsKilled(t *testing.T) {
	if dir := os.Getenv("KNL_TEST_KILLED_HOST"); dir != "" {
		hostToBeKilled(t, dir)
	}
	dir := t.TempDir()
	dirs := []string{filepath.Join(dir, "one"), filepath.Join(dir, "two"), filepath.Join(dir, "server"), filepath.Join(dir, "over")}
	for _, dir := range dirs {
		require.NoError(t, os.Mkdir(dir, 0o700))
	}
	host := exec.Command(os.Args[0], "-test.run", "^TestAllEndsWithAHostThatIsKilled$")
	host.Env = append(os.Environ(), "KNL_TEST_KILLED_HOST="+dir)
	require.NoError(t, host.Start())
	for _, dir := range dirs {
		require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(dir, "ready")); return err == nil }, 30*time.Second, time.Millisecond)
	}
	watcher := pidsIn(t, dir)
	require.NoError(t, host.Process.Kill())
	host.Wait()
	for _, dir := range dirs[:3] {
		require.Len(t, pidsIn(t, dir), 4)
		assertGone(t, pidsIn(t, dir))
	}
	assertGone(t, watcher)
}

func hostToBeKilled(t *testing.T, dir string) {
	for name, text := range map[string]string{"one": scattered + "wait", "two": scattered, "server": scattered + "wait", "over": "touch ready"} {
		c := &command{argv: []string{"/bin/sh", "-c", text}, dir: filepath.Join(dir, name), env: os.Environ(), maxBytes: 100}
		if name == "server" {
			_, err := c.serve()
			require.NoError(t, err)
			continue
		}
		p, err := c.start()
		require.NoError(t, err)
		if name == "over" {
			p.finish(t.Context(), time.Second)
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "pids"), strconv.AppendInt(nil, int64(live.watcher.cmd.Process.Pid), 10), 0o600))
	select {}
}

// A watcher that has ended is found out by the next command, and the new one is
// told of all that live.
func TestAWatcherThatIsKilledIsReplaced(t *testing.T) {
	first := shell(t, "touch ready; sleep 300")
	p, err := first.start()
	require.NoError(t, err)
	old := live.watcher
	require.NoError(t, old.cmd.Process.Kill())
	old.cmd.Process.Wait()
	assert.Equal(t, 0, mustRun(t, shell(t, "true")).code)
	require.NotSame(t, old, live.watcher)

	live.watcher.pipe.Close() // what the end of this process does
	require.True(t, ended(p.exited, 30*time.Second), "it still runs")
	assert.Equal(t, 137, exitCode(p.cmd.ProcessState))
	live.watcher.cmd.Wait()
	p.finish(t.Context(), time.Second)
}

// What setsid(1) starts is in the session of its command when that ends, until it
// has been given a turn.
func TestWhatMakesItselfASessionOutlivesTheCommand(t *testing.T) {
	defer goleak.VerifyNone(t, theStarter)
	for range 20 {
		c := shell(t, "setsid sleep 300 >log 2>&1 & echo $! >pids")
		assert.Equal(t, commandResult{}, mustRun(t, c))
		for _, pid := range pidsIn(t, c.dir) {
			require.True(t, running(pid), "it has not outlived its command")
			require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		}
	}
}

// A command that leaves nothing behind is not waited for, and one whose output a
// process outside of the session holds is waited for once.
func TestHowLongACommandIsWaitedFor(t *testing.T) {
	began := time.Now()
	for range 10 {
		mustRun(t, shell(t, "true"))
	}
	assert.Less(t, time.Since(began), 10*leaveGrace)

	least := time.Hour // of a few, for the machine may have stopped meanwhile
	for range 5 {
		if least = min(least, waitedForTheOutput(t)); least < 2*drainGrace-100*time.Millisecond {
			return
		}
	}
	assert.Less(t, least, 2*drainGrace-100*time.Millisecond, "the output is awaited once")
}

// waitedForTheOutput answers how long a command is waited for after its end whose
// output is held by a process that left its session.
func waitedForTheOutput(t *testing.T) time.Duration {
	c := shell(t, `setsid sh -c 'echo $$ >pids; touch ready; exec sleep 300' & while [ ! -e ready ]; do sleep 0.01; done; echo $(($(date +%s%N) / 1000000))`)
	r := mustRun(t, c)
	over, err := strconv.ParseInt(strings.TrimSpace(r.stdout), 10, 64)
	require.NoError(t, err)
	waited := time.Since(time.UnixMilli(over))
	for _, pid := range pidsIn(t, c.dir) {
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	return waited
}

// refusing is the kill of who may not end what a command has become.
func refusing(int, syscall.Signal) error { return syscall.EPERM }

// endInTruth ends what a test has let nobody end.
func endInTruth(t *testing.T, pid int) {
	t.Helper()
	require.NoError(t, syscall.Kill(-pid, syscall.SIGKILL))
}

func TestACommandThatCannotBeEnded(t *testing.T) {
	c := shell(t, "echo said; echo $$ >pids; exec sleep 300")
	c.timeout, c.kill = 300*time.Millisecond, refusing
	began := time.Now()
	_, err := c.run(t.Context())
	assert.Less(t, time.Since(began), 10*time.Second)
	pid := pidsIn(t, c.dir)[0]
	defer endInTruth(t, pid)
	assert.EqualError(t, err, fmt.Sprintf(`"/bin/sh" did not end within 300ms: process %d (sleep) cannot be ended, for it is another user's, as what sudo starts is: `+
		`it runs on until that user ends it, as sudo kill -KILL %[1]d does; give such a command its own limit: sudo timeout 60 …; its stdout ends with: "said"`, pid))
	fault, _ := stdFault(err)
	assert.Equal(t, "timeout", fault.Kind)
	live.Lock()
	defer live.Unlock()
	assert.Empty(t, live.leaders)
}

// The answer of a command that has ended is not lost over what it left behind, and
// what does not heed KILL is another case than what may not be sent it.
func TestWhatACommandLeavesThatCannotBeEnded(t *testing.T) {
	for want, kill := range map[string]func(int, syscall.Signal) error{
		"cannot be ended, for it is another user's":  refusing,
		"does not heed KILL: it waits in the kernel": func(int, syscall.Signal) error { return nil },
	} {
		c := shell(t, "sleep 300 >/dev/null 2>&1 & echo $! >pids; echo done; exit 4")
		c.kill = kill
		r := mustRun(t, c)
		pid := pidsIn(t, c.dir)[0]
		assert.Contains(t, r.left, fmt.Sprintf("process %d (sleep) %s", pid, want))
		r.left = ""
		assert.Equal(t, commandResult{code: 4, stdout: "done\n"}, r)
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	}
}

func TestACancelledCommandThatCannotBeEndedEndsTheWait(t *testing.T) {
	c := shell(t, "echo $$ >pids; exec sleep 300")
	c.kill = refusing
	ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	r, err := c.run(ctx)
	endInTruth(t, pidsIn(t, c.dir)[0])
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Contains(t, r.left, "cannot be ended")
}

// A server that cannot be ended does not hold up who waits for it: the error of
// its start says so, and closing a client does.
func TestAServerThatCannotBeEnded(t *testing.T) {
	dir := t.TempDir()
	d := &mcpDial{label: "asroot", start: 300 * time.Millisecond, call: time.Second, open: func(client *mcpClient, _ *mcpWire) (mcp.Transport, error) {
		server, err := (&command{argv: []string{"/bin/sh", "-c", "echo $$ >pids; exec sleep 300"}, dir: dir, env: os.Environ(), kill: refusing}).serve()
		if err != nil {
			return nil, err
		}
		client.server = server
		return &mcp.IOTransport{Reader: server.frames, Writer: server.stdin, MaxLineLength: -1}, nil
	}}
	began := time.Now()
	_, err := d.connect(t.Context())
	pid := pidsIn(t, dir)[0]
	defer endInTruth(t, pid)
	assert.Less(t, time.Since(began), 10*time.Second)
	assert.ErrorContains(t, err, fmt.Sprintf(`mcp server "asroot": no answer to initialize within 300ms; process %d (sleep) cannot be ended`, pid))
	assert.Contains(t, d.left, fmt.Sprintf("process %d (sleep) cannot be ended", pid))
}

// A client whose server stays is told of when the run ends.
func TestTheEndOfARunSaysWhichServerStays(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	h := newMCPHost(t, true)
	d := &mcpDial{label: "stubborn", start: 30 * time.Second, call: time.Second, open: func(client *mcpClient, _ *mcpWire) (mcp.Transport, error) {
		env := append(os.Environ(), mcpRole+"=stubborn", "KNL_TEST_MCP_PIDS="+h.pids)
		server, err := (&command{argv: []string{exe}, dir: h.dir, env: env, kill: refusing}).serve()
		if err != nil {
			return nil, err
		}
		client.server = server
		return &mcp.IOTransport{Reader: server.frames, Writer: server.stdin, MaxLineLength: -1}, nil
	}}
	c, err := d.connect(t.Context())
	require.NoError(t, err)
	var told []string
	h.config.Warn = func(text string) { told = append(told, text) }
	st := &mcpState{h.VM, map[*mcpClient]bool{c: true}}
	st.close()
	endInTruth(t, c.server.cmd.Process.Pid)
	require.Len(t, told, 1)
	assert.Contains(t, told[0], fmt.Sprintf(`mcp server "stubborn": process %d (`, c.server.cmd.Process.Pid))
	assert.Contains(t, told[0], "cannot be ended")
	for _, pid := range h.processes() {
		assertGone(t, []int{pid})
	}
	h.end()
}

// The test is what the first process of a container is: given the orphans of all.
func TestOrphansAreCollected(t *testing.T) {
	require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	defer unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	c := shell(t, "sleep 300 >/dev/null 2>&1 & echo $! >pids; sleep 300 >/dev/null 2>&1 & echo $! >>pids")
	mustRun(t, c)
	ours := &process{}
	ours.prepare(shell(t, ""), "/bin/sh")
	ours.cmd.Args = []string{"/bin/sh", "-c", "exit 3"}
	require.NoError(t, ours.begin())
	require.Eventually(t, func() bool { return slices.Contains(deadChildren(), ours.cmd.Process.Pid) }, 30*time.Second, time.Millisecond)
	orphans := pidsIn(t, c.dir)
	require.Len(t, orphans, 2)
	require.Eventually(t, func() bool {
		CollectAdopted()
		return !slices.ContainsFunc(orphans, func(pid int) bool { return syscall.Kill(pid, 0) == nil })
	}, 30*time.Second, 5*time.Millisecond)
	CollectAdopted()
	ours.await()
	assert.Equal(t, 3, exitCode(ours.cmd.ProcessState), "who waits for a child gets how it ended")
	assert.Equal(t, 0, mustRun(t, shell(t, "true")).code)
	ours.over()
}
