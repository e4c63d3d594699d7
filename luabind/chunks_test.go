package luabind

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestChunks runs testdata/vm_*.lua. A file holds chunks parted by lines of "---";
// each runs in a VM of its own. A chunk with the comment "--> error: text" on a
// line must fail at that line with an error that contains the text; any other
// chunk must pass.
func TestChunks(t *testing.T) {
	files, err := filepath.Glob("testdata/vm_*.lua")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		for _, c := range readChunks(t, file) {
			t.Run(fmt.Sprintf("%s:%d", filepath.Base(file), c.line), c.run)
		}
	}
}

type chunk struct {
	file   string
	line   int    // of its first line
	source string // blank lines in front keep the line numbers of the file
	fails  int    // the line that must raise, 0 for none
	text   string
}

const errorMark = "--> error: "

func readChunks(t *testing.T, file string) []chunk {
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	var chunks []chunk
	at := 1
	for part := range strings.SplitSeq(string(raw), "\n---\n") {
		c := chunk{file: filepath.Base(file), line: at, source: strings.Repeat("\n", at-1) + part}
		for i, line := range strings.Split(part, "\n") {
			if _, text, ok := strings.Cut(line, errorMark); ok {
				require.Zero(t, c.fails, "%s:%d: second expected error of a chunk", file, at+i)
				c.fails, c.text = at+i, strings.TrimSpace(text)
			}
		}
		chunks = append(chunks, c)
		at += strings.Count(part, "\n") + 2
	}
	return chunks
}

func (c chunk) run(t *testing.T) {
	var out bytes.Buffer
	vm := newVM(t, Config{Stdout: &out, Stderr: &out})
	_, err := vm.RunString(context.Background(), c.file, c.source)
	if c.fails == 0 {
		require.NoError(t, err, "%s", traceOf(err))
		return
	}
	require.Error(t, err, "line %d must raise", c.fails)
	require.Contains(t, err.Error(), fmt.Sprintf("%s:%d:", c.file, c.fails), "%s", traceOf(err))
	require.Contains(t, err.Error(), c.text)
}

func traceOf(err error) string {
	switch e := err.(type) {
	case *LuaError:
		return e.Traceback
	case *LimitError:
		return e.Traceback
	}
	return ""
}

// newVM makes a VM with std.task that is closed with the test.
func newVM(t testing.TB, c Config) *VM {
	c.Modules = append(c.Modules, TaskModule)
	vm, err := New(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, vm.Close()) })
	return vm
}

// eval runs source and answers what it returned as text.
func eval(t testing.TB, vm *VM, source string) []string {
	out, err := vm.RunString(context.Background(), "test.lua", source)
	require.NoError(t, err, "%s", traceOf(err))
	texts := make([]string, len(out))
	for i, v := range out {
		texts[i] = vm.valueText(v)
	}
	return texts
}

// evalError runs source, which must fail.
func evalError(t testing.TB, vm *VM, source string) error {
	_, err := vm.RunString(context.Background(), "test.lua", source)
	require.Error(t, err)
	return err
}
