package lua

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// luaFiles answers the Lua files of a tree, specs left out.
func luaFiles(t *testing.T, tree fs.FS) (names []string) {
	t.Helper()
	require.NoError(t, fs.WalkDir(tree, ".", func(name string, _ fs.DirEntry, err error) error {
		if path.Ext(name) == ".lua" && !strings.HasSuffix(name, "_spec.lua") {
			names = append(names, name)
		}
		return err
	}))
	return names
}

// A module that is not embedded is there for whoever works in this folder, and
// for nobody else.
func TestEveryModuleIsEmbedded(t *testing.T) {
	assert.Equal(t, luaFiles(t, os.DirFS(".")), luaFiles(t, FS))
}

// A module opens with what it is; knl help shows it.
func TestEveryModuleHasAHeader(t *testing.T) {
	for _, name := range luaFiles(t, FS) {
		text, err := fs.ReadFile(FS, name)
		require.NoError(t, err)
		assert.True(t, strings.HasPrefix(string(text), "--- "), "%s: opens with something else, want a --- comment", name)
	}
}
