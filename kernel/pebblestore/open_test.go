package pebblestore

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel/store"
	"github.com/knl-run/knl/kernel/store/storetest"
)

// holdEnv makes the test binary open the folder it names, say so, and hold it
// until its standard input ends.
const holdEnv = "PEBBLESTORE_HOLD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdEnv); dir != "" {
		st, err := Open(dir, Options{})
		fmt.Println(err)
		_, _ = os.Stdin.Read(make([]byte, 1))
		if err == nil {
			_ = st.Close()
		}
		return
	}
	os.Exit(m.Run())
}

func TestPebbleIsAStoreOnTheDisk(t *testing.T) {
	noLeaks(t)
	n := 0
	dir := t.TempDir()
	storetest.Run(t, func(t *testing.T) store.Store {
		n++
		st, err := Open(filepath.Join(dir, "not", "there", fmt.Sprint(n)), Options{})
		require.NoError(t, err)
		return st
	})
}

func TestTheHolderIsNamed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), holdEnv+"="+dir)
	in, err := holder.StdinPipe()
	require.NoError(t, err)
	out, err := holder.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, holder.Start())
	line := make([]byte, 64)
	n, err := out.Read(line)
	require.NoError(t, err)
	require.Equal(t, "<nil>\n", string(line[:n]))
	for _, readOnly := range []bool{false, true} {
		_, err = Open(dir, Options{ReadOnly: readOnly})
		require.EqualError(t, err, fmt.Sprintf("store %q: held by process %d; wait for it to end, or use another folder", dir, holder.Process.Pid))
		require.ErrorIs(t, err, store.ErrBusy)
	}
	require.NoError(t, holder.Process.Kill())
	_ = holder.Wait()
	_ = in.Close()
	st, err := Open(dir, Options{})
	require.NoError(t, err, "a killed process holds nothing")
	_, err = Open(dir, Options{})
	require.ErrorContains(t, err, fmt.Sprintf("held by this process (%d)", os.Getpid()))
	require.NoError(t, st.Close())
	text, err := os.ReadFile(filepath.Join(dir, holderFile))
	require.NoError(t, err)
	require.Empty(t, text)
}

func TestTheFolderIsItsOwnersAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	st, err := Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, st.Close())
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

func TestFoldersThatAreNoStoreAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	_, err := Open("", Options{})
	require.EqualError(t, err, "store folder has no name; want a path")
	for _, name := range []string{"e.lua", "a.go", "c.txt", "b"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	for _, o := range []Options{{}, {ReadOnly: true}} {
		_, err = Open(dir, o)
		require.EqualError(t, err, fmt.Sprintf("store %q: the folder holds other files (a.go, b, c.txt, …); want a store, or a folder that is empty or does not exist", dir))
	}
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, names, 4)
	_, err = Open(filepath.Join(dir, "a.go"), Options{})
	require.ErrorContains(t, err, "not a directory")
	_, err = Open(filepath.Join(dir, "none"), Options{ReadOnly: true})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoDirExists(t, filepath.Join(dir, "none"))
}

func TestAForeignDatabaseIsRefused(t *testing.T) {
	mem := vfs.NewMem()
	db, err := pebble.Open("db", &pebble.Options{FS: mem, Logger: quiet{}})
	require.NoError(t, err)
	require.NoError(t, db.Close())
	_, err = Open("db", Options{FS: mem})
	require.EqualError(t, err, "store \"db\": the database has no format key: it is another program's, or its start is lost: stored bytes are damaged; `knl check store` lists what is wrong")
	require.ErrorIs(t, err, store.ErrCorrupt)
}

func TestANewerFormatIsRefused(t *testing.T) {
	mem := vfs.NewMem()
	st := reopen(t, mem)
	require.NoError(t, st.db.Set(formatKey, []byte{0, 9}, pebble.Sync))
	require.NoError(t, st.Close())
	_, err := Open("db", Options{FS: mem})
	require.EqualError(t, err, `store "db": written in format 9, this knl reads up to 1; use a newer knl`)

	names, err := mem.List("db")
	require.NoError(t, err)
	for _, name := range names {
		if isMarker(name) {
			require.NoError(t, mem.Rename("db/"+name, "db/"+name[:strings.LastIndexByte(name, '.')]+".099"))
		}
	}
	_, err = Open("db", Options{FS: mem})
	require.Regexp(t, `^store "db": written in format pebble \S+, this knl reads up to pebble \S+; use a newer knl$`, err.Error())
}

func TestReadOnlyChangesNothing(t *testing.T) {
	noLeaks(t)
	dir := filepath.Join(t.TempDir(), "db")
	st, err := Open(dir, Options{memTable: tinyTables})
	require.NoError(t, err)
	h := newHistory(storetest.NewModel())
	require.NoError(t, work(h, st))
	require.NoError(t, st.Close())
	require.NoError(t, os.Remove(filepath.Join(dir, holderFile)))
	before := contents(t, dir)
	st, err = Open(dir, Options{ReadOnly: true})
	require.NoError(t, err)
	h.now().Holds(t, st)
	report, err := st.Check(bg)
	require.NoError(t, err)
	require.Empty(t, report.Damage)
	_, err = st.Apply(bg, &store.Batch{}, store.Now)
	require.EqualError(t, err, fmt.Sprintf("store %q: opened to read only; open it for writing", dir))
	require.NoError(t, st.Close())
	require.Equal(t, before, contents(t, dir))
}

func contents(t *testing.T, dir string) map[string]string {
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		files[e.Name()] = string(text)
	}
	return files
}

func TestARecordOf64MB(t *testing.T) {
	mem := vfs.NewMem()
	st, err := Open("db", Options{FS: mem})
	require.NoError(t, err)
	times := 4 << 20
	if testing.Short() { // for the race detector: 16 MB, still more than a memtable
		times = 1 << 20
	}
	body := bytes.Repeat([]byte("0123456789abcdef"), times)
	c, err := st.Apply(bg, &store.Batch{Appends: []store.Append{
		{Stream: "s", Records: []store.Record{{Body: []byte("a")}, {Body: body}, {Body: []byte("b")}}},
	}}, store.Now)
	require.NoError(t, err)
	require.NoError(t, c.Wait(bg))
	require.NoError(t, st.Close())
	st, err = Open("db", Options{FS: mem})
	require.NoError(t, err)
	n := int64(0)
	for r, err := range st.Records(bg, "s", 1, 0) {
		require.NoError(t, err)
		if n++; n == 2 {
			require.True(t, bytes.Equal(body, r.Body))
		}
	}
	require.Equal(t, int64(3), n)
	require.NoError(t, st.Close())
}
