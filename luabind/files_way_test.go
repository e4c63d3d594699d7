package luabind

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The store's folder is out of reach by every name, before and after it is there.
func TestNothingReachesTheStore(t *testing.T) {
	p := newProject(t, map[string]string{"in/a": "a", "sub/b": "needle", "sub/deep/": ""})
	ctx := context.Background()
	for _, c := range []struct{ store, by string }{{".knl", "."}, {"sub/deep/store", "sub/deep"}} {
		q, err := openProject(p.dir, filepath.Join(p.dir, c.store))
		require.NoError(t, err)
		defer q.Close()
		shut := func(err error) {
			t.Helper()
			assert.ErrorContains(t, err, "is in the folder of the store, which is the host's")
			fault, _ := stdFault(err)
			assert.Equal(t, "denied", fault.Kind)
		}
		for _, there := range []bool{false, true} {
			links := map[string]string{"link": filepath.Join(p.dir, c.store), "hop": "link", "rel": "in/../" + c.store}
			if there {
				require.NoError(t, os.MkdirAll(filepath.Join(p.dir, c.store, "x"), 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(p.dir, c.store, "x/f"), []byte("needle"), 0o644))
			}
			names := []string{c.store, "in/../" + c.store, filepath.Join(p.dir, c.store), "link", "hop", "rel"}
			for link, to := range links {
				os.Remove(filepath.Join(p.dir, link))
				require.NoError(t, os.Symlink(to, filepath.Join(p.dir, link)))
			}
			for _, name := range names {
				_, _, err := q.read(name+"/x/f", 10)
				shut(err)
				shut(q.write(t.Context(), name+"/x/f", content{text: "x"}))
				shut(q.append(t.Context(), name+"/new", "x"))
				shut(q.mkdir(name + "/y"))
				shut(q.copy(ctx, "in/a", name+"/x/f"))
				shut(q.copy(ctx, name, "stolen"))
				_, err = q.list(name)
				shut(err)
				_, err = q.stat(name)
				shut(err)
				_, err = q.glob(ctx, name+"/*")
				shut(err)
				_, err = q.remove(t.Context(), name+"/x", true)
				shut(err)
				s := &lineSearch{projectFiles: q, max: 10}
				require.NoError(t, s.compile("needle", false))
				shut(s.run(ctx, name))
			}
			_, err := q.remove(t.Context(), c.store, true)
			shut(err)
			found, err := q.glob(ctx, "**")
			require.NoError(t, err)
			assert.NotContains(t, strings.Join(found, " ")+" ", c.store+" ")
			assert.NotContains(t, found, c.store+"/x/f")
			if there && c.by != "." {
				entries, err := q.list(c.by)
				require.NoError(t, err)
				assert.Empty(t, entries)
				_, err = q.remove(t.Context(), "sub", true)
				assert.EqualError(t, err, `"sub": the folder of the store is in it, which is the host's`)
				assert.EqualError(t, q.copy(ctx, "sub", "stolen"), `"sub": the folder of the store is in it, which is the host's`)
			}
			assert.NoFileExists(t, filepath.Join(p.dir, c.store, "new"))
		}
		assert.Equal(t, "needle", p.text(t, c.store+"/x/f"))
		require.NoError(t, os.RemoveAll(filepath.Join(p.dir, c.store)))
	}
}

// The store may be known by a name that leads to it, or stand elsewhere.
func TestTheStoreIsKnownBehindALink(t *testing.T) {
	p := newProject(t, map[string]string{"data/store/f": "x"})
	require.NoError(t, os.Symlink("data/store", filepath.Join(p.dir, ".knl")))
	q, err := openProject(p.dir, filepath.Join(p.dir, ".knl"))
	require.NoError(t, err)
	defer q.Close()
	for _, name := range []string{".knl/f", "data/store/f"} {
		_, _, err := q.read(name, 10)
		assert.ErrorContains(t, err, "is in the folder of the store")
	}
	_, err = q.remove(t.Context(), ".knl", false)
	assert.ErrorContains(t, err, "is in the folder of the store")
	far, err := openProject(p.dir, t.TempDir())
	require.NoError(t, err)
	defer far.Close()
	_, _, err = far.read("data/store/f", 10)
	assert.NoError(t, err)
}

func TestAFolderFollowsNoLink(t *testing.T) {
	p := newProject(t, map[string]string{"work/src/a": "in", "other/a": "out"})
	require.NoError(t, os.Symlink("../other", filepath.Join(p.dir, "work/up")))
	require.NoError(t, os.Symlink("../src/a", filepath.Join(p.dir, "work/src/file")))
	require.NoError(t, os.Symlink("work", filepath.Join(p.dir, "way")))
	ctx := context.Background()
	for _, base := range []string{"work", "way"} {
		q, err := p.below(base, true)
		require.NoError(t, err)
		data, _, err := q.read("src/a", 10)
		require.NoError(t, err)
		assert.Equal(t, "in", string(data))
		link := func(err error) {
			t.Helper()
			assert.ErrorContains(t, err, "is a link, and links may lead out of the folder")
		}
		for _, name := range []string{"up/a", "src/file"} {
			_, _, err := q.read(name, 10)
			link(err)
			link(q.write(t.Context(), name, content{text: "x"}))
			link(q.append(t.Context(), name, "x"))
			_, err = q.stat(name)
			link(err)
		}
		link(q.mkdir("up/new"))
		_, err = q.list("up")
		link(err)
		_, err = q.glob(ctx, "up/*")
		link(err)
		_, err = q.remove(t.Context(), "up/a", false)
		link(err)
		link(q.copy(ctx, "up", "mine"))
		for _, name := range []string{"../other/a", p.dir + "/other/a", "/etc/passwd"} {
			_, _, err = q.read(name, 10)
			assert.EqualError(t, err, `"`+name+`": outside the folder "`+base+`"`)
		}
		data, _, err = q.read(p.dir+"/"+base+"/src/a", 10)
		require.NoError(t, err)
		assert.Equal(t, "in", string(data))
		found, err := q.glob(ctx, "**")
		require.NoError(t, err)
		assert.Equal(t, []string{"src", "src/a", "src/file", "up"}, found)
		_, err = q.remove(t.Context(), ".", true)
		assert.EqualError(t, err, `".": is the folder itself, which stays`)
	}
	assert.Equal(t, "out", p.text(t, "other/a"))
}

// A folder that is swapped for a link while it is entered leads nowhere, not even
// to another one below the root.
func TestALinkThatIsPutThereMeanwhileIsNotFollowed(t *testing.T) {
	p := newProject(t, map[string]string{"work/d/f": "in", "work/other/f": "out"})
	q, err := p.below("work", true)
	require.NoError(t, err)
	at := func(name string) string { return filepath.Join(p.dir, name) }
	require.NoError(t, os.Symlink("other", at("work/l")))
	over := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-over:
				return
			default:
				os.Rename(at("work/d"), at("work/x"))
				os.Rename(at("work/l"), at("work/d"))
				os.Rename(at("work/d"), at("work/l"))
				os.Rename(at("work/x"), at("work/d"))
			}
		}
	}()
	for range 5000 {
		data, _, err := q.read("d/f", 10)
		if err == nil {
			assert.Equal(t, "in", string(data))
		}
		q.append(t.Context(), "d/new", "x")
	}
	close(over)
	<-done
	assert.Equal(t, []string{"f"}, p.namesIn(t, "work/other"))
}
