package luabind

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAReaderMeetsNoGap(t *testing.T) {
	p := newProject(t, map[string]string{"f": "0"})
	over := make(chan struct{})
	go func() {
		defer close(over)
		for range 300 {
			assert.NoError(t, p.write(t.Context(), "f", content{text: "1"}))
		}
	}()
	for open := true; open; {
		select {
		case <-over:
			open = false
		default:
			_, _, err := p.read("f", 10)
			require.NoError(t, err)
		}
	}
}

func TestWriteExpects(t *testing.T) {
	p := newProject(t, map[string]string{"f": "one"})
	text := func(s string) *string { return &s }
	require.NoError(t, p.write(t.Context(), "f", content{text: "two", expect: text("one")}))
	for _, want := range []string{"one", "tw", "two!", ""} {
		err := p.write(t.Context(), "f", content{text: "x", expect: &want})
		require.EqualError(t, err, `"f": does not hold what was expected: read it again`)
		fault, _ := stdFault(err)
		assert.Equal(t, Fault{Kind: "conflict", Message: err.Error(), Retryable: true}, fault)
	}
	assert.ErrorContains(t, p.write(t.Context(), "none", content{text: "x", expect: text("")}), "does not hold")
	assert.Equal(t, "two", p.text(t, "f"))
	assert.Equal(t, []string{"f"}, p.namesIn(t, "."))
}

func TestWriteKeepsPermissions(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	p := newProject(t, nil)
	mode := func(name string) os.FileMode {
		info, err := os.Stat(filepath.Join(p.dir, name))
		require.NoError(t, err)
		return info.Mode().Perm()
	}
	require.NoError(t, p.write(t.Context(), "w", content{text: "x"}))
	require.NoError(t, p.append(t.Context(), "a", "x"))
	require.NoError(t, p.mkdir("d"))
	assert.Equal(t, []os.FileMode{0o600, 0o600, 0o700}, []os.FileMode{mode("w"), mode("a"), mode("d")})
	require.NoError(t, os.Chmod(filepath.Join(p.dir, "w"), 0o664))
	require.NoError(t, p.write(t.Context(), "w", content{text: "y"}))
	assert.Equal(t, os.FileMode(0o664), mode("w"), "what is there is kept, whatever the umask is")
	syscall.Umask(0o002)
	require.NoError(t, p.write(t.Context(), "v", content{text: "x"}))
	assert.Equal(t, os.FileMode(0o664), mode("v"))
}

func TestAReadOnlyFileStays(t *testing.T) {
	p := newProject(t, map[string]string{"f": "old"})
	require.NoError(t, os.Chmod(filepath.Join(p.dir, "f"), 0o444))
	if f, err := os.OpenFile(filepath.Join(p.dir, "f"), os.O_WRONLY, 0); err == nil {
		f.Close()
		asNobody(t, "TestAReadOnlyFileStays")
		return
	}
	for _, err := range []error{p.write(t.Context(), "f", content{text: "x"}), p.append(t.Context(), "f", "x"), p.copy(context.Background(), "f", "f")} {
		assert.EqualError(t, err, `"f": permission denied`)
	}
	assert.Equal(t, "old", p.text(t, "f"))
}

// asNobody runs a test again as a user who may not write what is read-only.
func asNobody(t *testing.T, name string) {
	t.Helper()
	binary, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "nobody")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	require.NoError(t, os.Chmod(dir, 0o777))
	at := filepath.Join(dir, "test")
	require.NoError(t, os.WriteFile(at, binary, 0o755))
	cmd := exec.Command(at, "-test.run", "^"+name+"$")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	assert.NoError(t, err, "%s", out)
}
