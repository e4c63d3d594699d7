package luabind

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// newProject makes a project root with files (a name that ends in / is a
// folder), and a folder beside it with a file that nobody may reach.
func newProject(t *testing.T, files map[string]string) *projectFiles {
	t.Helper()
	base := t.TempDir()
	dir := filepath.Join(base, "root")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(base, "secret"), []byte("secret"), 0o644))
	for name, text := range files {
		at := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			require.NoError(t, os.MkdirAll(at, 0o755))
			continue
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
		require.NoError(t, os.WriteFile(at, []byte(text), 0o644))
	}
	p, err := openProject(dir)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close()) })
	return p
}

func (p *projectFiles) text(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(p.dir, name))
	require.NoError(t, err)
	return string(data)
}

// namesIn answers what is in a folder, so that a draft left behind shows.
func (p *projectFiles) namesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(p.dir, dir))
	require.NoError(t, err)
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestReadFile(t *testing.T) {
	p := newProject(t, map[string]string{"a.txt": "aé€z", "bytes": "\xff\xfe\x80", "empty": ""})
	for _, c := range []struct {
		name  string
		limit int64
		want  string
		more  bool
	}{
		{"a.txt", 100, "aé€z", false},
		{"./x/../a.txt", 100, "aé€z", false},
		{filepath.Join(p.dir, "a.txt"), 100, "aé€z", false},
		{"a.txt", 7, "aé€z", false},
		{"a.txt", 6, "aé€", true},
		{"a.txt", 5, "aé", true},
		{"a.txt", 4, "aé", true},
		{"a.txt", 2, "a", true},
		{"a.txt", 0, "", true},
		{"bytes", 2, "\xff\xfe", true},
		{"empty", 0, "", false},
	} {
		data, more, err := p.read(c.name, c.limit)
		require.NoError(t, err, c)
		assert.Equal(t, c.want, string(data), c)
		assert.Equal(t, c.more, more, c)
	}
}

func TestNothingOutsideTheRoot(t *testing.T) {
	p := newProject(t, map[string]string{"in/a": "a"})
	for name, to := range map[string]string{"up": "../secret", "abs": filepath.Dir(p.dir) + "/secret", "updir": "..", "dangling": "../new", "inner": "in/a"} {
		require.NoError(t, os.Symlink(to, filepath.Join(p.dir, name)))
	}
	ctx := context.Background()
	for _, name := range []string{"../secret", "in/../../secret", "up", "abs", "updir/secret", "/etc/passwd", p.dir + "/../secret", ".."} {
		outside := func(act string, err error) {
			t.Helper()
			assert.ErrorContains(t, err, `outside the project root "`+p.dir+`"`, "%s %s", act, name)
			fault, ok := stdFault(err)
			assert.True(t, ok && fault.Kind == "denied", "%s %s: %v", act, name, fault)
		}
		_, _, err := p.read(name, 10)
		outside("read", err)
		outside("write", p.write(t.Context(), name, content{text: "x"}))
		outside("append", p.append(t.Context(), name, "x"))
		outside("copy to", p.copy(ctx, "in/a", name))
		outside("copy from", p.copy(ctx, name, "stolen"))
		_, err = p.stat(name)
		outside("stat", err)
	}
	outside := func(err error) { assert.ErrorContains(t, err, "outside the project root") }
	outside(p.write(t.Context(), "dangling", content{text: "x"}))
	_, err := p.list("updir")
	outside(err)
	_, err = p.list("../")
	outside(err)
	_, err = p.glob(ctx, "../*")
	outside(err)
	outside(p.mkdir("updir/new"))
	_, err = p.remove(t.Context(), "updir/secret", true)
	outside(err)
	assert.Equal(t, "secret", p.text(t, "../secret"))
	assert.NoFileExists(t, filepath.Join(p.dir, "../new"))

	// A link that stays inside is an ordinary path, and stays a link.
	require.NoError(t, p.write(t.Context(), "inner", content{text: "b"}))
	assert.Equal(t, "b", p.text(t, "in/a"))
	target, err := os.Readlink(filepath.Join(p.dir, "inner"))
	require.NoError(t, err)
	assert.Equal(t, "in/a", target)
}

func TestAbsolutePathsThroughALinkToTheRoot(t *testing.T) {
	p := newProject(t, map[string]string{"a": "text"})
	alias := filepath.Join(t.TempDir(), "alias")
	require.NoError(t, os.Symlink(p.dir, alias))
	q, err := openProject(alias)
	require.NoError(t, err)
	defer q.Close()
	for _, base := range []string{alias, q.real} {
		data, _, err := q.read(filepath.Join(base, "a"), 10)
		require.NoError(t, err)
		assert.Equal(t, "text", string(data))
	}
}

func TestFileFaults(t *testing.T) {
	p := newProject(t, map[string]string{"file": "x", "dir/a": "a", "empty/": ""})
	require.NoError(t, syscall.Mkfifo(filepath.Join(p.dir, "pipe"), 0o600))
	require.NoError(t, os.Symlink("circle", filepath.Join(p.dir, "circle")))
	root := `, root is "` + p.dir + `"`
	ctx := context.Background()
	read := func(name string) error { _, _, err := p.read(name, 10); return err }
	list := func(name string) error { _, err := p.list(name); return err }
	remove := func(name string) error { _, err := p.remove(t.Context(), name, false); return err }
	for _, c := range []struct {
		err        error
		kind, text string
	}{
		{read("x/y"), "not_found", `"x/y": no such file or folder` + root},
		{read("dir"), "io", `"dir": is a folder, want a file`},
		{read("pipe"), "io", `"pipe": is a pipe, want a file`},
		{read("file/x"), "conflict", `"file/x": a file stands where a folder is wanted`},
		{read(""), "not_found", `got "" as a path, want one below the root`},
		{read("a\x00b"), "not_found", `"a\x00b": got a path with a zero byte`},
		{p.write(t.Context(), "x/y", content{}), "not_found", `"x/y": no such file or folder` + root},
		{p.write(t.Context(), "dir", content{}), "io", `"dir": is a folder, want a file`},
		{p.write(t.Context(), "pipe", content{}), "io", `"pipe": is a pipe, want a file`},
		{p.write(t.Context(), "circle", content{}), "io", `"circle": the links lead in a circle`},
		{p.append(t.Context(), "dir", ""), "io", `"dir": is a folder, want a file`},
		{p.append(t.Context(), "x/y", ""), "not_found", `"x/y": no such file or folder` + root},
		{list("x"), "not_found", `"x": no such file or folder` + root},
		{list("file"), "conflict", `"file": a file stands where a folder is wanted`},
		{p.mkdir("file"), "conflict", `"file": something else stands there`},
		{p.mkdir("file/x"), "conflict", `"file/x": a file stands where a folder is wanted`},
		{remove("dir"), "conflict", `"dir": the folder is not empty`},
		{remove("."), "denied", `".": is the project root, which stays`},
		{p.copy(ctx, "x", "y"), "not_found", `"x": no such file or folder` + root},
		{p.copy(ctx, "file", "dir"), "io", `"dir": is a folder, want a file`},
		{p.copy(ctx, "file", "x/y"), "not_found", `"x/y": no such file or folder` + root},
		{p.copy(ctx, "dir", "dir/sub"), "conflict", `"dir/sub": lies inside "dir", which is copied`},
		{p.copy(ctx, "dir", "dir"), "conflict", `"dir": lies inside "dir", which is copied`},
		{p.copy(ctx, ".", "dir"), "conflict", `"dir": lies inside ".", which is copied`},
		{p.copy(ctx, "pipe", "y"), "io", `"pipe": is a pipe, want a file`},
	} {
		if assert.EqualError(t, c.err, c.text) {
			fault, ok := stdFault(c.err)
			assert.True(t, ok)
			assert.Equal(t, c.kind, fault.Kind, c.text)
		}
	}
	assert.ElementsMatch(t, []string{"file", "dir", "empty", "pipe", "circle"}, p.namesIn(t, "."))
}

func TestAbsoluteLinksInsideAreOrdinary(t *testing.T) {
	p := newProject(t, map[string]string{"in/a": "a"})
	require.NoError(t, os.Symlink(filepath.Join(p.dir, "in"), filepath.Join(p.dir, "abs")))
	data, _, err := p.read("abs/a", 10)
	require.NoError(t, err)
	assert.Equal(t, "a", string(data))
	require.NoError(t, p.write(t.Context(), "abs/a", content{text: "b"}))
	assert.Equal(t, "b", p.text(t, "in/a"))
	entries, err := p.list("abs")
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}

func TestWriteReplacesInOneStep(t *testing.T) {
	p := newProject(t, map[string]string{"run.sh": "old"})
	at := filepath.Join(p.dir, "run.sh")
	require.NoError(t, os.Chmod(at, 0o750))
	held, err := os.Open(at)
	require.NoError(t, err)
	defer held.Close()

	require.NoError(t, p.write(t.Context(), "run.sh", content{text: "new\xff"}))
	assert.Equal(t, "new\xff", p.text(t, "run.sh"))
	old := make([]byte, 8)
	n, _ := held.Read(old)
	assert.Equal(t, "old", string(old[:n]), "who has the old file open keeps it whole")
	info, err := os.Stat(at)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o750), info.Mode())
	assert.Equal(t, []string{"run.sh"}, p.namesIn(t, "."))

	full := errors.New("disk full")
	err = p.at(t.Context(), "run.sh", func(s *spot) error {
		return s.replace(nil, func(w io.Writer) error {
			io.WriteString(w, "half")
			return full
		})
	})
	assert.ErrorIs(t, err, full)
	assert.Equal(t, "new\xff", p.text(t, "run.sh"))
	assert.Equal(t, []string{"run.sh"}, p.namesIn(t, "."))
}

func TestAppendMkdirRemove(t *testing.T) {
	p := newProject(t, nil)
	require.NoError(t, p.append(t.Context(), "log", "a"))
	require.NoError(t, p.append(t.Context(), "log", "b"))
	assert.Equal(t, "ab", p.text(t, "log"))

	require.NoError(t, p.mkdir("x/y/z"))
	require.NoError(t, p.mkdir("x/y/z"))
	require.NoError(t, p.mkdir("."))
	assert.DirExists(t, filepath.Join(p.dir, "x/y/z"))

	for name, want := range map[string]bool{"log": true, "x/y/z": true, "none": false, "none/deep": false} {
		removed, err := p.remove(t.Context(), name, false)
		require.NoError(t, err, name)
		assert.Equal(t, want, removed, name)
	}
	removed, err := p.remove(t.Context(), "x", true)
	require.NoError(t, err)
	assert.True(t, removed)
	assert.Empty(t, p.namesIn(t, "."))
}

func TestListAndStat(t *testing.T) {
	p := newProject(t, map[string]string{"d/b": "12", "d/a/": "", "d/.c": "123"})
	require.NoError(t, os.Symlink("b", filepath.Join(p.dir, "d/link")))
	entries, err := p.list("d")
	require.NoError(t, err)
	got := []string{}
	for _, e := range entries {
		got = append(got, e.name+" "+kindOfFile(e.info.Mode()))
	}
	assert.Equal(t, []string{".c file", "a folder", "b file", "link link"}, got)

	info, err := p.stat("d/link")
	require.NoError(t, err)
	assert.Equal(t, int64(2), info.Size(), "stat follows links")
	info, err = p.stat("d/none")
	assert.NoError(t, err)
	assert.Nil(t, info)
}

func TestCopyTree(t *testing.T) {
	p := newProject(t, map[string]string{"src/a": "a", "src/sub/b": "b", "src/none/": "", "dst/a": "old", "dst/keep": "k", "dst2": ""})
	require.NoError(t, os.Symlink("sub/b", filepath.Join(p.dir, "src/link")))
	require.NoError(t, os.Chmod(filepath.Join(p.dir, "src/a"), 0o755))
	for range 2 { // once more over itself
		require.NoError(t, p.copy(context.Background(), "src", "dst/"))
	}
	assert.Equal(t, []string{"a", "keep", "link", "none", "sub"}, p.namesIn(t, "dst"))
	assert.Equal(t, "a", p.text(t, "dst/a"))
	assert.Equal(t, "b", p.text(t, "dst/sub/b"))
	info, err := os.Stat(filepath.Join(p.dir, "dst/a"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o755), info.Mode())
	to, err := os.Readlink(filepath.Join(p.dir, "dst/link"))
	require.NoError(t, err)
	assert.Equal(t, "sub/b", to)

	require.NoError(t, p.copy(context.Background(), "src/a", "copy"))
	assert.Equal(t, "a", p.text(t, "copy"))
	assert.ErrorContains(t, p.copy(context.Background(), "src", "dst2"), `"dst2": something else stands there`)

	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	assert.ErrorIs(t, p.copy(cancelled, "src", "later"), context.Canceled)
}

func TestGlob(t *testing.T) {
	p := newProject(t, map[string]string{
		"main.go": "", "main_test.go": "", "README.md": "", ".hidden": "",
		"pkg/a.go": "", "pkg/deep/b.go": "", "pkg/deep/er/c.go": "", "pkg/deep/er/c.txt": "", "other/pkg/d.go": "",
	})
	require.NoError(t, os.Symlink("..", filepath.Join(p.dir, "pkg/up")))
	for pattern, want := range map[string][]string{
		"*.go":              {"main.go", "main_test.go"},
		"main.go":           {"main.go"},
		"*_test.go":         {"main_test.go"},
		"pkg/*.go":          {"pkg/a.go"},
		"pkg/**/*.go":       {"pkg/a.go", "pkg/deep/b.go", "pkg/deep/er/c.go"},
		"**/*.go":           {"main.go", "main_test.go", "other/pkg/d.go", "pkg/a.go", "pkg/deep/b.go", "pkg/deep/er/c.go"},
		"**/er/*":           {"pkg/deep/er/c.go", "pkg/deep/er/c.txt"},
		"pkg/deep/**":       {"pkg/deep/b.go", "pkg/deep/er", "pkg/deep/er/c.go", "pkg/deep/er/c.txt"},
		"**/deep/**/c.*":    {"pkg/deep/er/c.go", "pkg/deep/er/c.txt"},
		"*/[ab].go":         {"pkg/a.go"},
		"pk?/?.go":          {"pkg/a.go"},
		"none/*":            {},
		"main.go/*":         {},
		"*/none":            {},
		p.dir + "/pkg/*.go": {"pkg/a.go"},
	} {
		got, err := p.glob(context.Background(), pattern)
		require.NoError(t, err, pattern)
		assert.Equal(t, want, got, pattern)
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := p.glob(cancelled, "**")
	assert.ErrorIs(t, err, context.Canceled)
}
