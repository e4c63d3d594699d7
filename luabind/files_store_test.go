package luabind

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel/pebblestore"
)

// A store is known by what is in it, whoever's it is, open or closed, and also
// when it was copied without one of the files that say so.
func TestEveryStoreIsOutOfReach(t *testing.T) {
	p := newProject(t, map[string]string{"in/a": "a"})
	for _, c := range []struct {
		name  string
		after func(st *pebblestore.Store, dir string)
	}{
		{"open", func(*pebblestore.Store, string) {}},
		{"closed", func(st *pebblestore.Store, _ string) { require.NoError(t, st.Close()) }},
		{"without a holder", func(_ *pebblestore.Store, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "holder"))) }},
		{"without a lock", func(_ *pebblestore.Store, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "LOCK"))) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(p.dir, "sub/deep/st")
			require.NoError(t, os.MkdirAll(filepath.Dir(dir), 0o755))
			defer os.RemoveAll(filepath.Join(p.dir, "sub"))
			st, err := pebblestore.Open(dir, pebblestore.Options{})
			require.NoError(t, err)
			if c.name != "closed" {
				defer st.Close()
			}
			c.after(st, dir)
			checkShut(t, p, "sub/deep/st")
		})
	}
}

// checkShut holds that nothing in the folder at name, which is in sub, is reached.
func checkShut(t *testing.T, p *projectFiles, name string) {
	t.Helper()
	ctx := t.Context()
	shut := func(err error) {
		t.Helper()
		assert.ErrorContains(t, err, "is in the folder of the store, which is the host's")
	}
	require.NoError(t, os.Symlink(filepath.Join(p.dir, name), filepath.Join(p.dir, "link")))
	defer os.Remove(filepath.Join(p.dir, "link"))
	for _, at := range []string{name, "link"} {
		_, _, err := p.read(at+"/MANIFEST-000001", 10)
		shut(err)
		shut(p.write(ctx, at+"/MANIFEST-000001", content{text: "x"}))
		shut(p.append(ctx, at+"/new", "x"))
		shut(p.mkdir(at + "/new"))
		shut(p.copy(ctx, "in", at))
		shut(p.copy(ctx, at, "stolen"))
		_, err = p.list(at)
		shut(err)
		_, err = p.stat(at)
		shut(err)
		_, err = p.glob(ctx, at+"/*")
		shut(err)
		_, err = p.remove(ctx, at+"/LOCK", true)
		shut(err)
		q, err := p.below(at, false)
		require.NoError(t, err)
		_, err = q.glob(ctx, "*")
		shut(err)
	}
	_, err := p.remove(ctx, name, true)
	shut(err)
	found, err := p.glob(ctx, "**")
	require.NoError(t, err)
	assert.NotContains(t, strings.Join(found, " ")+" ", name)
	entries, err := p.list(filepath.Dir(name))
	require.NoError(t, err)
	assert.Empty(t, entries)
	_, err = p.remove(ctx, "sub", true)
	assert.EqualError(t, err, `"sub": the folder of the store is in it, which is the host's`)
	assert.EqualError(t, p.copy(ctx, "sub", "stolen"), `"sub": the folder of the store is in it, which is the host's`)
	assert.NoFileExists(t, filepath.Join(p.dir, "stolen"))
	st, err := pebblestore.Open(filepath.Join(p.dir, name), pebblestore.Options{ReadOnly: true})
	if err != nil {
		assert.ErrorContains(t, err, "held", "it is whole")
		return
	}
	assert.NoError(t, st.Close())
}

// What only resembles a store is the project's.
func TestWhatIsNoStoreStays(t *testing.T) {
	p := newProject(t, map[string]string{"a/holder": "x", "a/LOCK": "", "b/MANIFEST-000001": "x", "b/LOCK": "", "c/marker.format-version.000011.024": ""})
	for _, name := range []string{"a/holder", "b/LOCK", "c/marker.format-version.000011.024"} {
		_, _, err := p.read(name, 10)
		require.NoError(t, err, name)
	}
	for _, name := range []string{"a", "b", "c"} {
		removed, err := p.remove(context.Background(), name, true)
		require.NoError(t, err)
		assert.True(t, removed)
	}
}

// A store that is being made is one, from the first word of it.
func TestAStoreInTheMakingIsOutOfReach(t *testing.T) {
	p := newProject(t, map[string]string{"st/holder": "1", "st/unfinished": ""})
	_, _, err := p.read("st/unfinished", 10)
	assert.ErrorContains(t, err, "is in the folder of the store")
}
