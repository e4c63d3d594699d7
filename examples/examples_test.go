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
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	glua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/kernel"
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

func TestCodingLoop(t *testing.T) {
	p := newProject(t)
	out, printed := p.run(t, "coding_loop.lua", "")
	assert.Equal(t, "true", text(out, "ok"))
	assert.Contains(t, printed, "green after 4 beats: bin/coding_loop/")
}

func TestResearch(t *testing.T) {
	out, printed := newProject(t).run(t, "research.lua", "")
	assert.Equal(t, "true", text(out, "ok"))
	assert.Equal(t, "3", text(out, "found"))
	assert.Equal(t, "16", text(out, "left"), "three children of one beat each, and the last beat")
	assert.Contains(t, printed, "What breaks? On What breaks? I found enough.\n")
}

func TestLongRun(t *testing.T) {
	p := newProject(t)
	out, _ := p.run(t, "long_run.lua", "", "40")
	assert.Equal(t, "true", text(out, "ok"))
	assert.Equal(t, "40", text(out, "beats"))
	assert.Equal(t, "3", text(out, "summaries"))
	assert.Equal(t, "4", text(out, "points"))
}

func TestBackoff(t *testing.T) {
	out, printed := newProject(t).run(t, "backoff.lua", "")
	assert.Equal(t, "3", text(out, "attempts"))
	assert.Equal(t, "0.25", text(out, "waited"), "its own 0.05 s, then the 0.2 s that the provider asked for")
	assert.Equal(t, "Here I am.\n", printed)
}

func TestNudge(t *testing.T) {
	out, _ := newProject(t).run(t, "nudge.lua", "")
	assert.Equal(t, "true", text(out, "ok"))
	assert.Equal(t, "4", text(out, "beats"), "three of one kind, and the one after the nudge")
}

// A batch that its tokens stop goes on, when it is resumed, with what is left.
func TestBatchStopsAndResumes(t *testing.T) {
	p := newProject(t)
	out, _ := p.run(t, "batch.lua", "", "examples/testdata/broken", "2100")
	assert.Equal(t, "false", text(out, "ok"))
	assert.Equal(t, "2", text(out, "reviewed"))
	assert.Equal(t, "1", text(out, "left"), "a file may take 2,000, and that much is not there a third time")
	out, printed := p.run(t, "batch.lua", text(out, "session"), "examples/testdata/broken", "9000")
	assert.Equal(t, "true", text(out, "ok"))
	assert.Equal(t, "1", text(out, "reviewed"))
	assert.NotContains(t, printed, "go.mod")
}

func TestApproval(t *testing.T) {
	for word, deployed := range map[string]string{"yes": "true", "no": "false"} {
		t.Run(word, func(t *testing.T) {
			p := newProject(t)
			answered := make(chan *glua.LTable)
			go func() {
				id := p.wanting(t)
				out, printed := p.run(t, "approval.lua", "", id, word, "mia")
				assert.Equal(t, word+`: deploy {"target":"production"}`+"\n", printed)
				answered <- out
			}()
			out, _ := p.run(t, "approval.lua", "")
			assert.Equal(t, "1", text(<-answered, "answered"))
			assert.Equal(t, deployed, text(out, "deployed"))
		})
	}
}

// wanting waits until a session asks for permission and answers its id.
func (p *project) wanting(t *testing.T) string {
	ctx, k := context.Background(), kernel.New(p.store, kernel.Options{})
	for {
		rows, err := k.Sessions(ctx, "", 0)
		assert.NoError(t, err)
		for _, row := range rows {
			s, err := k.Attach(ctx, row.Session)
			assert.NoError(t, err)
			events, err := s.Events(ctx, 1)
			assert.NoError(t, err)
			for _, ev := range events {
				if ev.Kind == "permission_wanted" {
					return s.ID()
				}
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}
