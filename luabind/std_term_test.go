package luabind

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// typist is a VM whose terminal is a pipe for each question.
type typist struct {
	*VM
	shown bytes.Buffer
	hands chan *os.File // where to type the answer
}

func newTypist(t *testing.T) *typist {
	t.Helper()
	h := &typist{hands: make(chan *os.File, 4)}
	mask := &Masker{}
	mask.Add("hunter-22")
	vm, err := New(Config{Project: t.TempDir(), Stderr: mask.Writer(&h.shown), Modules: Std(StdOptions{
		Mask: mask,
		Terminal: func() (io.ReadCloser, error) {
			r, w, err := os.Pipe()
			h.hands <- w
			return r, err
		},
	})})
	require.NoError(t, err)
	h.VM = vm
	return h
}

func (h *typist) types(text string) {
	w := <-h.hands
	io.WriteString(w, text)
	w.Close()
}

func (h *typist) run(ctx context.Context, source string) error {
	_, err := h.RunString(ctx, "chunk", source)
	return err
}

func TestAskAnswersALine(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for typed, want := range map[string]string{
		"yes\n": `"yes"`, "yes\r\nmore\n": `"yes"`, "\n": `""`, "no end": `"no end"`, "\xff\n": `"\255"`, "": `nil, "closed"`,
	} {
		h := newTypist(t)
		go h.types(typed)
		require.NoError(t, h.run(context.Background(), `
			local want, why = `+want+`
			local line, said = std.term.ask("name? \27[2J\nhunter-22 ")
			assert(line == want and said == why, tostring(line))`), typed)
		assert.Equal(t, `name? \x1b[2J`+"\n*** ", h.shown.String())
		require.NoError(t, h.Close())
	}
}

func TestAskTakesALineOfBoundedLength(t *testing.T) {
	h := newTypist(t)
	go h.types(strings.Repeat("x", lineLimit+9) + "\n")
	require.NoError(t, h.run(context.Background(), `assert(#std.term.ask("?") == 65536)`))
	require.NoError(t, h.Close())
}

func TestAskEnds(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	h := newTypist(t)
	require.NoError(t, h.run(context.Background(), `
		local line, why = std.term.ask("?", { timeout = 0.02 })
		assert(line == nil and why == "timeout")`))
	(<-h.hands).Close()

	ctx, cancel := context.WithCancel(context.Background())
	go func() { w := <-h.hands; cancel(); w.Close() }()
	assert.ErrorIs(t, h.run(ctx, `std.term.ask("?", { timeout = 600 })`), context.Canceled)
	require.NoError(t, h.Close())
}

func TestTasksTakeTurnsToAsk(t *testing.T) {
	h := newTypist(t)
	go func() { h.types("first\n"); h.types("second\n") }()
	require.NoError(t, h.run(context.Background(), `
		std.task.scope(function(scope)
			local a = scope:spawn(function() return std.term.ask("a? ") end)
			local b = scope:spawn(function() return std.term.ask("b? ") end)
			local seen = { [a:join()] = true, [b:join()] = true }
			assert(seen.first and seen.second)
		end)`))
	require.NoError(t, h.Close())
}

func TestAskWithoutATerminal(t *testing.T) {
	vm, err := New(Config{Project: t.TempDir(), Modules: Std(StdOptions{
		Terminal: func() (io.ReadCloser, error) { return nil, errors.New("no such device") },
	})})
	require.NoError(t, err)
	_, err = vm.RunString(context.Background(), "chunk", `std.term.ask("?")`)
	assert.ErrorContains(t, err, "there is no terminal to ask at: no such device")
	require.NoError(t, vm.Close())
}
