package luabind

import (
	"os/exec"
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
