package luabind

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// bar is what an embedding program might hand to a script.
type bar struct {
	Title string
	at    int
}

// Step moves the bar.
func (b *bar) Step(n int) int { b.at += n; return b.at }

// Fail fails.
func (b *bar) Fail() error { return errors.New("no bar") }

// Break panics.
func (b *bar) Break() { panic("the bar broke") }

func TestGoValuesThatScriptsHold(t *testing.T) {
	vm, err := New(Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, vm.Close()) }()
	b := &bar{Title: "beats"}
	vm.SetGlobal("bar", vm.Value(b))
	out, err := vm.RunString(context.Background(), "hold.lua", `
bar.Title = bar.Title .. "!"
local co = coroutine.wrap(function() coroutine.yield(bar:Step(2)) end)
local stepped = co()
local ok, e = pcall(function() bar:Break() end)
local ok2, e2 = pcall(function() bar:Step("two") end)
return bar.Title, stepped, ok, tostring(e), tostring(bar:Fail()), ok2, tostring(e2)`)
	require.NoError(t, err)
	texts := make([]string, len(out))
	for i, v := range out {
		texts[i] = v.String()
	}
	assert.Equal(t, "beats!", b.Title)
	assert.Equal(t, []string{"beats!", "2", "false"}, texts[:3])
	assert.Contains(t, texts[3], "the bar broke")
	assert.Equal(t, "false", texts[5])
	assert.Contains(t, texts[6], "hold.lua:6:")
}
