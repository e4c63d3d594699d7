package luabind

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	editsOfOne  = 150
	editorsEnv  = "KNL_TEST_EDITS" // the folder that a process edits in
	editorOfEnv = "KNL_TEST_EDITOR"
)

// Processes that edit one file undo nothing of each other.
func TestEditsOfProcessesTakeTurns(t *testing.T) {
	if dir := os.Getenv(editorsEnv); dir != "" {
		edit(t, dir, os.Getenv(editorOfEnv))
		return
	}
	p := newProject(t, map[string]string{"f": "a0;\nb0;\nc0;\n"})
	var wg sync.WaitGroup
	for _, who := range []string{"a", "b", "c"} {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run", "^TestEditsOfProcessesTakeTurns$")
			cmd.Env = append(os.Environ(), editorsEnv+"="+p.dir, editorOfEnv+"="+who)
			out, err := cmd.CombinedOutput()
			assert.NoError(t, err, "%s", out)
		})
	}
	wg.Wait()
	assert.Equal(t, fmt.Sprintf("a%[1]d;\nb%[1]d;\nc%[1]d;\n", editsOfOne), p.text(t, "f"))
	assert.Equal(t, editsOfOne*3, strings.Count(p.text(t, "log"), "x"))
}

// edit counts up the line of who by reading and writing what was read, and adds
// to a file that does not exist at first.
func edit(t *testing.T, dir, who string) {
	p, err := openProject(dir)
	require.NoError(t, err)
	defer p.Close()
	for n := 0; n < editsOfOne; {
		data, _, err := p.read("f", 1000)
		require.NoError(t, err)
		was := string(data)
		old, next := fmt.Sprintf("%s%d;", who, n), fmt.Sprintf("%s%d;", who, n+1)
		require.Contains(t, was, old, "an edit was undone")
		err = p.write(t.Context(), "f", content{text: strings.Replace(was, old, next, 1), expect: &was})
		if fault, _ := stdFault(err); fault.Kind == conflict {
			continue
		}
		require.NoError(t, err)
		require.NoError(t, p.append(t.Context(), "log", "x"))
		n++
	}
}

// Who has the turn and does not go on holds nobody for ever.
func TestATurnIsWaitedForNoLongerThanItMay(t *testing.T) {
	p := newProject(t, map[string]string{"d/f": "old"})
	d, err := os.Open(filepath.Join(p.dir, "d"))
	require.NoError(t, err)
	defer d.Close()
	require.NoError(t, syscall.Flock(int(d.Fd()), syscall.LOCK_EX))
	writes := func(ctx context.Context) map[string]error {
		_, removed := p.remove(ctx, "d/f", false)
		return map[string]error{
			"write": p.write(ctx, "d/f", content{text: "new"}), "append": p.append(ctx, "d/f", "x"),
			"remove": removed, "copy": p.copy(ctx, "d/f", "d/g"),
		}
	}
	ended, end := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer end()
	for name, err := range writes(ended) {
		assert.ErrorIs(t, err, context.DeadlineExceeded, name)
	}
	was := turnTime
	defer func() { turnTime = was }()
	turnTime = 20 * time.Millisecond
	for name, err := range writes(t.Context()) {
		fault, _ := stdFault(err)
		assert.Equal(t, "timeout", fault.Kind, name)
		assert.ErrorContains(t, err, "in its folder for 20ms", name)
	}
	assert.Equal(t, []string{"f"}, p.namesIn(t, "d"))
	data, _, err := p.read("d/f", 10)
	require.NoError(t, err)
	assert.Equal(t, "old", string(data), "a reader waits for nobody")
	require.NoError(t, d.Close())
	require.NoError(t, p.write(t.Context(), "d/f", content{text: "new"}))
}

// Also where the system has no locks the VMs of one process take turns.
func TestTurnsWithoutLocks(t *testing.T) {
	p := newProject(t, map[string]string{"f": ""})
	s := &spot{folder: p.root, shared: true, name: "f", at: "f"}
	end, err := p.turnHere(t.Context(), s)
	require.NoError(t, err)
	soon, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	_, err = p.turnHere(soon, s)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	end()
	end, err = p.turnHere(t.Context(), s)
	require.NoError(t, err)
	end()
}
