package luabind

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// stdHost is a VM with the std modules over a project of its own.
type stdHost struct {
	*VM
	dir string
	log *bytes.Buffer
}

func newStdHost(t *testing.T) *stdHost {
	t.Helper()
	h := &stdHost{dir: t.TempDir(), log: &bytes.Buffer{}}
	vm, err := New(Config{
		Project: h.dir,
		Stderr:  h.log,
		Env: func(name string) (string, bool) {
			v, ok := map[string]string{"PLAIN": "value", "EMPTY": "", "MY_KEY": "hunter-22"}[name]
			return v, ok
		},
		Modules: Std(StdOptions{}),
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, vm.Close()) })
	h.VM = vm
	return h
}

func (h *stdHost) run(source string) error {
	_, err := h.RunString(context.Background(), "chunk", source)
	return err
}

// TestStdScripts runs the chunks of testdata/std as [TestChunks] does, each over
// an empty project.
func TestStdScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/std/*.lua")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		for _, c := range readChunks(t, file) {
			t.Run(fmt.Sprintf("%s:%d", c.file, c.line), func(t *testing.T) {
				_, err := newStdHost(t).RunString(context.Background(), c.file, c.source)
				if c.fails == 0 {
					require.NoError(t, err, "%s", traceOf(err))
					return
				}
				require.ErrorContains(t, err, fmt.Sprintf("%s:%d: ", c.file, c.fails))
				require.ErrorContains(t, err, c.text)
			})
		}
	}
}

func TestLogLines(t *testing.T) {
	h := newStdHost(t)
	require.NoError(t, h.run(`
		std.log.info("plain")
		std.log.warn("two\nlines \27[31m é \255", { b = 1, a = { std.json.decode("null") } })
		std.log.error("", {})
		std.log.debug("unseen")
		std.log.info("key " .. std.env.secret("MY_KEY"), { key = "is hunter-22!" })
		std.log.info("value hunter-22")`))
	lines := strings.Split(h.log.String(), "\n")
	stamp := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z `)
	for i, line := range lines[:len(lines)-1] {
		assert.Regexp(t, stamp, line)
		lines[i] = stamp.ReplaceAllString(line, "")
	}
	assert.Equal(t, []string{
		`info  plain`,
		`warn  two\nlines \x1b[31m é ` + "\uFFFD" + ` {"a":[null],"b":1}`,
		`error  {}`,
		`info  key *** {"key":"is ***!"}`,
		`info  value ***`,
		``,
	}, lines)
}

func TestLogGoesWhereTheHostSays(t *testing.T) {
	t.Setenv("LSHAPE_CHECK", "1")
	var log bytes.Buffer
	mask := &Masker{}
	mask.Add("known before")
	vm, err := New(Config{Project: t.TempDir(), Modules: Std(StdOptions{Log: &log, Mask: mask})})
	require.NoError(t, err)
	_, err = vm.RunString(context.Background(), "chunk", `std.log.debug("seen in dev: known before")`)
	require.NoError(t, err)
	require.NoError(t, vm.Close())
	assert.Contains(t, log.String(), " debug seen in dev: ***\n")
}

// TestWaitsOverlap proves without a clock that a blocked call lets other tasks
// run: each command ends only when the other has begun.
func TestWaitsOverlap(t *testing.T) {
	h := newStdHost(t)
	require.NoError(t, h.run(`
		local function meet(mine, other)
			return std.sh.run("touch " .. mine .. "; while [ ! -e " .. other .. " ]; do sleep 0.01; done", { timeout = 60 })
		end
		std.task.scope(function(scope)
			local a = scope:spawn(function() return meet("a", "b") end)
			local b = scope:spawn(function() return meet("b", "a") end)
			assert(a:join().code == 0 and b:join().code == 0)
		end)`))
}

func TestCancelReachesBlockingCalls(t *testing.T) {
	for name, call := range map[string]string{
		"sleep": `std.time.sleep(600)`,
		"shell": `std.sh.run("echo $$ >pids; sleep 600")`,
	} {
		h := newStdHost(t)
		err := h.run(`
			std.task.scope(function(scope)
				local task = scope:spawn(function() ` + call + ` end)
				while ` + fmt.Sprint(name == "shell") + ` and not std.fs.exists("pids") do std.time.sleep(0.005) end
				std.task.yield()
				task:cancel()
				local ok, err = pcall(task.join, task)
				assert(not ok and tostring(err):find("task cancelled", 1, true), tostring(err))
			end)`)
		assert.NoError(t, err, name)
		if name == "shell" {
			assertGone(t, pidsIn(t, h.dir))
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	h := newStdHost(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	h.SetGlobal("stop", h.Root().NewFunction(func(*lua.LState) int { cancel(); return 0 }))
	_, err := h.RunString(ctx, "chunk", `stop(); std.time.sleep(600)`)
	assert.ErrorIs(t, err, context.Canceled)
}

func TestModuleThatDoesNotOpen(t *testing.T) {
	_, err := New(Config{Project: filepath.Join(t.TempDir(), "none"), Modules: Std(StdOptions{})})
	assert.ErrorContains(t, err, `opening module "std.fs"`)
}
