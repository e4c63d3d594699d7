package luabind

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
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
	p := &process{cmd: cmd}
	assert.True(t, p.live())
	began := time.Now()
	p.endSession(30 * time.Second)
	assert.Less(t, time.Since(began), 20*time.Second)
	assert.True(t, p.signal(0), "the dead member is still there")
	assert.False(t, p.live())
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
