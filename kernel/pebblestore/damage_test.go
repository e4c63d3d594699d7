package pebblestore

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel/store"
	"github.com/knl-run/knl/kernel/store/storetest"
)

// worked answers a file system with a store that went through the history of
// work, with tables, a manifest and a log on it.
func worked(t *testing.T) (*vfs.MemFS, *history) {
	fs := vfs.NewCrashableMem()
	st, h := reopen(t, fs), newHistory(storetest.NewModel())
	require.NoError(t, work(h, st))
	require.NoError(t, st.Compact(bg))
	require.NoError(t, work(h, st))
	require.NoError(t, st.Close())
	return fs, h
}

// flip changes one byte of a file.
func flip(t *testing.T, fs vfs.FS, name string, random *rand.Rand) {
	f, err := fs.Open(name)
	require.NoError(t, err)
	all, err := io.ReadAll(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	if len(all) == 0 {
		return
	}
	all[random.IntN(len(all))] ^= 1 << random.IntN(8)
	f, err = fs.Create(name, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.Write(all)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// TestDamageIsReportedOrHarmless flips bytes of every file. A store that then
// opens must hold a point of its history or say ErrCorrupt; it never holds
// anything else, and Check says so without a panic.
func TestDamageIsReportedOrHarmless(t *testing.T) {
	fs, h := worked(t)
	h.acked = len(h.models) - 1 // it was closed: whatever is lost is noticed
	names, err := fs.List("db")
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(7, 7))
	seen := map[string]int{}
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") && !strings.HasSuffix(name, ".log") && !strings.HasPrefix(name, "MANIFEST") {
			continue
		}
		for range 12 {
			hurt := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: random})
			flip(t, hurt, "db/"+name, random)
			seen[outcome(t, hurt, h)]++
		}
	}
	t.Log(seen)
	require.Positive(t, seen["refused"], "%v", seen)
	require.Positive(t, seen["found by check"], "%v", seen)
}

// TestATableThatWasCutIsDamage shortens a table: an open names the file, says that
// it is damaged and what to do next.
func TestATableThatWasCutIsDamage(t *testing.T) {
	fs, _ := worked(t)
	names, err := fs.List("db")
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			f, err := fs.Create("db/"+name, vfs.WriteCategoryUnspecified)
			require.NoError(t, err)
			require.NoError(t, f.Close())
			_, err = Open("db", Options{FS: fs})
			require.ErrorIs(t, err, store.ErrCorrupt)
			require.Regexp(t, `^store "db": stored bytes are damaged: .*`+name+`.*; .knl check store. lists what is wrong$`, err.Error())
			return
		}
	}
	require.Fail(t, "the store has no table")
}

func outcome(t *testing.T, fs *vfs.MemFS, h *history) string {
	st, err := Open("db", Options{FS: fs})
	if err != nil {
		require.ErrorIs(t, err, store.ErrCorrupt)
		require.Contains(t, err.Error(), "`knl check store` lists what is wrong")
		return "refused"
	}
	defer func() { _ = st.Close() }()
	report, err := st.Check(bg)
	require.NoError(t, err)
	if len(report.Damage) == 0 {
		h.recovered(t, st)
		return "harmless"
	}
	for _, d := range report.Damage {
		require.Regexp(t, `^P[1-7] (dense|owned|groups|family|blobs|form|whole): \S`, d.String())
	}
	readable := 0
	for stream := range h.now().Streams {
		for _, err := range st.Records(bg, stream, 1, 0) {
			if err != nil {
				require.ErrorIs(t, err, store.ErrCorrupt)
				continue
			}
			readable++
		}
	}
	return "found by check"
}

// TestCheckNamesWhatIsWrong breaks each invariant by hand.
func TestCheckNamesWhatIsWrong(t *testing.T) {
	set := func(k []byte, v string) func(*pebble.Batch) {
		return func(b *pebble.Batch) { _ = b.Set(k, []byte(v), nil) }
	}
	del := func(k []byte) func(*pebble.Batch) { return func(b *pebble.Batch) { _ = b.Delete(k, nil) } }
	eight := string([]byte{0, 0, 0, 0, 0, 0, 0, 3})
	for want, hurt := range map[string]func(*pebble.Batch){
		`P1 dense: stream "s1": record 3 follows record 1`:                         del(numberedKey(tagRecord, "s1", 2)),
		`P1 dense: stream "s1": head is 16, last record is 15`:                     del(numberedKey(tagRecord, "s1", 16)),
		`P2 owned: stream "ghost": has keys of kind 'm' and no head`:               set(namedKey(tagMark, "ghost", "m"), ""),
		`P2 owned: stream "s2": has keys of kind 'r' and no head`:                  del(headKey("s2")),
		`P3 groups: stream "s1": group "b0" begins at record 1 and is not listed`:  del(numberedKey(tagGroup, "s1", 1)),
		`P3 groups: stream "s1": group "b0" begins at record 1 and is not indexed`: del(namedKey(tagIndex, "s1", "b0")),
		`P3 groups: stream "s1": group "b0" is indexed at record 3, begins at 1`:   set(namedKey(tagIndex, "s1", "b0"), eight),
		`P3 groups: stream "s1": group "b7" is listed at record 2, begins at 0`:    set(numberedKey(tagGroup, "s1", 2), "b7"),
		`P4 family: stream "s1": has parent "s0" and is not listed under it`:       del(namedKey(tagChild, "s0", "s1")),
		`P4 family: stream "s0": is listed under "s1", its head says ""`:           set(namedKey(tagChild, "s1", "s0"), ""),
		`P5 blobs: blob 00`: set(blobKey([32]byte{}), "payload"),
		`P6 form: stream "s1": head of 3 bytes does not read`:     set(headKey("s1"), "abc"),
		`P6 form: stream "s1": record 2 of 1 bytes does not read`: set(numberedKey(tagRecord, "s1", 2), "x"),
		`P6 form: stream "s1": record key`:                        set(namedKey(tagRecord, "s1", "xyz"), "x"),
		`P6 form: key 7a7a: is of no known kind`:                  set([]byte("zz"), ""),
		`P6 form: key 72ff: does not read`:                        set([]byte{tagRecord, 0xff}, ""),
	} {
		t.Run(want, func(t *testing.T) {
			noLeaks(t)
			st, h := reopen(t, vfs.NewMem()), newHistory(storetest.NewModel())
			defer func() { require.NoError(t, st.Close()) }()
			require.NoError(t, work(h, st))
			report, err := st.Check(bg)
			require.NoError(t, err)
			require.Equal(t, Report{Streams: 3, Records: 48, Groups: 12, Marks: 24, Blobs: 6, Bytes: report.Bytes}, report)
			require.Greater(t, report.Bytes, int64(30*3000))
			b := st.db.NewBatch()
			hurt(b)
			require.NoError(t, b.Commit(pebble.Sync))
			report, err = st.Check(bg)
			require.NoError(t, err)
			require.Contains(t, fmt.Sprint(report.Damage), want)
		})
	}
}

func TestCheckBoundsItsList(t *testing.T) {
	st := reopen(t, vfs.NewMem())
	defer func() { require.NoError(t, st.Close()) }()
	b := st.db.NewBatch()
	for i := range maxDamage + 5 {
		_ = b.Set(blobKey([32]byte{byte(i), byte(i >> 8), 1}), []byte("x"), nil)
	}
	require.NoError(t, b.Commit(pebble.Sync))
	report, err := st.Check(bg)
	require.NoError(t, err)
	require.Len(t, report.Damage, maxDamage)
	require.Equal(t, 5, report.More)
}

func TestReadsOfDamagedValuesSaySo(t *testing.T) {
	st, h := reopen(t, vfs.NewMem()), newHistory(storetest.NewModel())
	defer func() { require.NoError(t, st.Close()) }()
	require.NoError(t, work(h, st))
	b := st.db.NewBatch()
	_ = b.Delete(numberedKey(tagRecord, "s1", 5), nil)
	_ = b.Set(headKey("s2"), []byte("abc"), nil)
	_ = b.Set(namedKey(tagIndex, "s0", "b0"), []byte("abc"), nil)
	_ = b.Set(blobKey([32]byte{}), []byte("abc"), nil)
	require.NoError(t, b.Commit(pebble.Sync))
	clear(st.streams) // a store knows the heads that it wrote itself
	var last error
	for _, err := range st.Records(bg, "s1", 1, 0) {
		last = err
	}
	require.ErrorIs(t, last, store.ErrCorrupt)
	require.ErrorContains(t, last, `stream "s1": record 5 is missing`)
	_, err := st.Head(bg, "s2")
	require.ErrorIs(t, err, store.ErrCorrupt)
	_, err = st.FindGroup(bg, "s0", "b0")
	require.ErrorIs(t, err, store.ErrCorrupt)
	_, err = st.Blob(bg, [32]byte{})
	require.ErrorIs(t, err, store.ErrCorrupt)
}
