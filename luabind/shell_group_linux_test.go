package luabind

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhoRunsInAGroup(t *testing.T) {
	for stat, want := range map[string]bool{
		"12 (sleep) S 1 7 7 0":      true,
		"12 (sleep) R 1 7 7 0":      true,
		"12 (sleep) Z 1 7 7 0":      false,
		"12 (sleep) X 1 7 7 0":      false,
		"12 (sleep) S 1 8 7 0":      false,
		"12 (a) Z 1 7) S 1 7 7 0":   true,
		"12 (a b) S 1 77 7 0":       false,
		"12 (cut":                   false,
		"":                          false,
		"7 (two\nlines) Z 1 7 7\n":  false,
		"7 (two\nlines) D 1 7 7 0 ": true,
	} {
		assert.Equal(t, want, runsIn([]byte(stat), 7), stat)
	}
}

// A member that nobody collects holds the group's number and takes signals; the
// test is the parent that does not collect.
func TestADeadMemberIsNotWaitedFor(t *testing.T) {
	cmd := exec.Command("sleep", "300")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	defer cmd.Wait()
	p := &process{cmd: cmd}
	assert.True(t, p.live())
	began := time.Now()
	p.endGroup(30 * time.Second)
	assert.Less(t, time.Since(began), 20*time.Second)
	assert.NoError(t, p.signal(0), "the dead member is still there")
	assert.False(t, p.live())
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

// The test is two processes: the one in the middle starts a command and is
// killed before it can end it.
func TestACommandEndsWithAHostThatIsKilled(t *testing.T) {
	if dir := os.Getenv("KNL_TEST_KILLED_HOST"); dir != "" {
		c := &command{argv: []string{"/bin/sh", "-c", `trap "" TERM HUP; echo $$ >pids; touch ready; while :; do read x; done <fifo`}, dir: dir, maxBytes: 100}
		_, err := c.start()
		require.NoError(t, err)
		select {}
	}
	dir := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	host := exec.Command(os.Args[0], "-test.run", "^TestACommandEndsWithAHostThatIsKilled$")
	host.Env = append(os.Environ(), "KNL_TEST_KILLED_HOST="+dir)
	require.NoError(t, host.Start())
	require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(dir, "ready")); return err == nil }, 30*time.Second, time.Millisecond)
	require.NoError(t, host.Process.Kill())
	host.Wait()
	assertGone(t, pidsIn(t, dir))
}
