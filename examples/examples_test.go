// Package examples holds loops that run; each is run here as knl run runs it.
package examples

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	glua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/kernel/store"
	"github.com/knl-run/knl/lua"
	"github.com/knl-run/knl/luabind"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/script"
)

// project is a folder with the examples in it and a store beside.
type project struct {
	dir   string
	store store.Store
}

func newProject(t *testing.T) *project {
	p := &project{t.TempDir(), store.NewMem()}
	tree := os.DirFS(".")
	require.NoError(t, fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		to := filepath.Join(p.dir, "examples", name)
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.MkdirAll(to, 0o755)
		}
		text, err := fs.ReadFile(tree, name)
		require.NoError(t, err)
		return os.WriteFile(to, text, 0o644)
	}))
	return p
}

// run runs an example and answers the table that it returns and what it printed.
func (p *project) run(t *testing.T, name, session string, args ...string) (*glua.LTable, string) {
	t.Helper()
	var stdout bytes.Buffer
	modules := luabind.KnlModules(&luabind.Kernel{Open: func(string) (store.Store, error) { return p.store, nil }})
	modules = append(modules, luabind.Std(luabind.StdOptions{})...)
	modules = append(modules, luabind.PortsModule(&luabind.Ports{Registry: port.Registry{script.Name: script.New(nil)}}))
	path := filepath.Join(p.dir, "examples", name)
	vm, err := luabind.New(luabind.Config{
		Stdout: &stdout, Embedded: lua.FS, Project: p.dir, ScriptDir: filepath.Dir(path), Modules: modules,
	})
	require.NoError(t, err)
	defer func() { assert.NoError(t, vm.Close()) }()
	vm.SetArgs(path, args)
	if session != "" {
		_, err = vm.RunString(context.Background(), "resume", fmt.Sprintf("arg.session = %q", session))
		require.NoError(t, err)
	}
	source, err := os.ReadFile(path)
	require.NoError(t, err)
	out, err := vm.RunString(context.Background(), path, string(source))
	require.NoError(t, err)
	require.NotEmpty(t, out)
	return out[0].(*glua.LTable), stdout.String()
}

func text(t *glua.LTable, key string) string { return t.RawGetString(key).String() }

func TestHello(t *testing.T) {
	out, printed := newProject(t).run(t, "hello.lua", "")
	assert.Equal(t, "ok", text(out, "status"))
	assert.Equal(t, "Hello. This beat is on your disk.\n", printed)
}

func TestFixTheBuild(t *testing.T) {
	p := newProject(t)
	out, printed := p.run(t, "fix_the_build.lua", "")
	assert.Equal(t, "true", text(out, "ok"))
	assert.Equal(t, "6", text(out, "beats"))
	assert.Contains(t, printed, "green after 6 beats: bin/fix_the_build/")
	mended, err := os.ReadFile(filepath.Join(p.dir, text(out, "folder"), "words.go"))
	require.NoError(t, err)
	assert.Contains(t, string(mended), "longest = word\n")
	assert.Contains(t, string(mended), "strings.Fields(strings.ToLower(text))")
	tests, err := os.ReadFile(filepath.Join(p.dir, text(out, "folder"), "words_test.go"))
	require.NoError(t, err)
	shipped, err := os.ReadFile("testdata/broken/words_test.go")
	require.NoError(t, err)
	assert.Equal(t, string(shipped), string(tests))
}

// A run that its budget stops is resumed with a new one and gets there.
func TestFixTheBuildStopsAndResumes(t *testing.T) {
	p := newProject(t)
	out, printed := p.run(t, "fix_the_build.lua", "", "4")
	assert.Equal(t, "stopped", text(out, "status"))
	assert.Equal(t, "budget", text(out, "reason"))
	var id string
	_, err := fmt.Sscanf(printed, "not green yet: session %s", &id)
	require.NoError(t, err)
	out, _ = p.run(t, "fix_the_build.lua", id, "4")
	assert.Equal(t, "true", text(out, "ok"))
	assert.Equal(t, "6", text(out, "beats"))
	assert.Equal(t, id, text(out, "session"))
}
