package luabind

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// Of every function that the project has, the variables are found again: errors in it
// name them.
func TestVariablesAreFoundAgain(t *testing.T) {
	functions := 0
	var named func(file string, p *lua.FunctionProto)
	named = func(file string, p *lua.FunctionProto) {
		functions++
		require.NotNil(t, p.DbgLocals, "%s:%d", file, p.LineDefined)
		for _, inner := range p.FunctionPrototypes {
			if inner.NumParameters > 0 {
				named(file, inner)
			}
		}
	}
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".lua") || strings.Contains(path, "testdata") {
			return err
		}
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		p, err := compileNew(path, string(source))
		require.NoError(t, err)
		named(path, p)
		return nil
	}))
	require.Greater(t, functions, 500)
}
