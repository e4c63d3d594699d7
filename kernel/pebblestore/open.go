package pebblestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/knl-run/knl/kernel/store"
)

// Options says how to open a folder. The zero value is the usual way.
type Options struct {
	// FS is the file system below; nil means the machine's, and only there the
	// folder is locked against other processes.
	FS vfs.FS
	// ReadOnly opens a folder that exists and leaves every byte of it alone.
	// Apply answers an error.
	ReadOnly bool

	memTable uint64 // bytes; 0 means usualMemTable, tests take less
}

var errReadOnly = errors.New("opened to read only; open it for writing")

// Open opens the store in dir, which it makes when there is none. Errors: [Held]
// when another Store has it, [store.ErrCorrupt] when its bytes are damaged; else
// what the file system or the format has against it.
func Open(dir string, o Options) (*Store, error) {
	if dir == "" {
		return nil, errors.New("store folder has no name; want a path")
	}
	local := o.FS == nil
	if local {
		o.FS = vfs.Default
	}
	fresh, err := folder(dir, o)
	if err != nil {
		return nil, describe(dir, err)
	}
	s := &Store{view: view{dir: dir}, disk: newDisk(o.FS, dir), streams: make(map[string]position)}
	if local {
		if s.lock, err = hold(dir, o.ReadOnly); err != nil {
			return nil, describe(dir, err)
		}
	}
	if o.ReadOnly {
		s.disk.freeze(errReadOnly)
	}
	if fresh {
		err = makeRoom(dir, o.FS)
	}
	if err == nil {
		err = s.start(fresh, o.memTable)
	}
	if err != nil {
		if s.lock != nil {
			_ = s.lock.Close()
		}
		return nil, describe(dir, err)
	}
	return s, nil
}

// unfinished is a file that stands in a folder while its store is being made.
// What a cut short making left behind is swept away by the next Open; without
// the file nothing is ever removed.
const unfinished = "unfinished"

// folder sees to it that dir is there and is a store or empty. It answers
// whether a store has to be made.
func folder(dir string, o Options) (fresh bool, err error) {
	names, err := o.FS.List(dir)
	if errors.Is(err, fs.ErrNotExist) && !o.ReadOnly {
		return true, makeFolder(o.FS, dir)
	}
	if err != nil {
		return false, err
	}
	others := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == holderFile })
	switch {
	case o.ReadOnly && (len(others) == 0 || slices.Contains(names, unfinished)):
		return false, errors.New("the folder is empty; want a store")
	case slices.Contains(names, unfinished), len(others) == 0:
		return true, nil
	case slices.ContainsFunc(names, isMarker):
		return false, nil
	}
	return false, fmt.Errorf("the folder holds other files (%s); want a store, or a folder that is empty or does not exist", sample(others))
}

// isMarker knows the file that every Pebble database has.
func isMarker(name string) bool { return strings.HasPrefix(name, "marker.format-version.") }

// makeRoom sweeps a folder and says that a store is being made in it. It runs
// under the folder's lock.
func makeRoom(dir string, below vfs.FS) error {
	names, err := below.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == holderFile || name == unfinished {
			continue
		}
		if err := below.Remove(below.PathJoin(dir, name)); err != nil {
			return err
		}
	}
	f, err := below.Create(below.PathJoin(dir, unfinished), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close(), syncFolder(dir, below))
}

// finish says that the store is made. The removal must be on the disk before
// anything is acknowledged, or the next Open would sweep it away.
func finish(dir string, below vfs.FS) error {
	if err := below.Remove(below.PathJoin(dir, unfinished)); err != nil {
		return err
	}
	return syncFolder(dir, below)
}

func syncFolder(dir string, below vfs.FS) error {
	f, err := below.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func sample(names []string) string {
	slices.Sort(names)
	if len(names) > 3 {
		names = append(names[:3:3], "…")
	}
	return strings.Join(names, ", ")
}

// makeFolder makes dir for its owner alone and syncs every folder that got a
// new entry.
func makeFolder(below vfs.FS, dir string) error {
	var grown []string
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		if _, err := below.Stat(d); err == nil || filepath.Dir(d) == d {
			break
		}
		grown = append(grown, filepath.Dir(d))
	}
	if err := below.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, d := range grown {
		if err := syncFolder(d, below); err != nil {
			return err
		}
	}
	return nil
}

// start opens the database and checks that it is one of ours.
func (s *Store) start(fresh bool, memTable uint64) (err error) {
	if s.db, err = openPebble(s.dir, pebbleOptions(s.disk, memTable)); err != nil {
		return err
	}
	s.from = s.db
	s.flush = flusher{db: s.db, fault: s.Fault, delay: lazyDelay}
	if err = s.disk.broken(); err == nil || errors.Is(err, errReadOnly) {
		err = s.checkFormat(fresh)
	}
	if err == nil {
		err = s.checkCloses()
	}
	if err != nil {
		_ = s.db.Close()
		return err
	}
	s.disk.opened.Store(true)
	return nil
}

// openPebble turns a panic over damaged bytes into an error.
func openPebble(dir string, o *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = damaged("%v", r)
		}
	}()
	db, err = pebble.Open(dir, o)
	switch {
	case errors.Is(err, fs.ErrNotExist): // the folder is there: a file of it is not
		err = fmt.Errorf("%w: %w", store.ErrCorrupt, err)
	case err != nil && strings.Contains(err.Error(), wrongSize):
		err = fmt.Errorf("%w: %s", store.ErrCorrupt, oneLine(err))
	}
	return db, err
}

// wrongSize is how Pebble says that a table was cut. It names the file and marks
// the error as nothing.
const wrongSize = "object size mismatch"

// usualMemTable bounds the log that an Open replays after a kill: one and a half
// of it. With 16 MB that takes a fifth of a second, with 64 MB more than one, and
// commits are as fast. The first memtable has 256 KB, each next one doubles.
const usualMemTable = 16 << 20

func pebbleOptions(d *disk, memTable uint64) *pebble.Options {
	if memTable == 0 {
		memTable = usualMemTable
	}
	o := &pebble.Options{
		FS:                 d,
		FormatMajorVersion: pebble.FormatNewest,
		CacheSize:          16 << 20,
		MemTableSize:       memTable,
		// Writing never waits for a compaction: behind a frozen disk it would
		// wait for ever.
		L0StopWritesThreshold: 1000,
		Logger:                quiet{d},
		EventListener: &pebble.EventListener{
			// The read that met the damage answers it; the rest can go on.
			DataCorruption: func(pebble.DataCorruptionInfo) {},
		},
	}
	// Compactions are as many as CompactionConcurrencyRange says and never more
	// because of a backlog.
	o.CompactionConcurrencyRange = d.compactions
	o.Experimental.L0CompactionConcurrency = math.MaxInt32
	o.Experimental.CompactionDebtConcurrency = math.MaxInt64
	o.Experimental.CompactionGarbageFractionForMaxConcurrency = func() float64 { return 0 }
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		o.Levels[i].BlockSize = 32 << 10 // the words of records repeat from one to the next
	}
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionBalanced })
	return o
}

// quiet is Pebble's logger. What Pebble holds for the end of the process is the
// end of writing.
type quiet struct{ disk *disk }

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (q quiet) Fatalf(format string, args ...any) {
	q.disk.freeze(fmt.Errorf(format, args...))
}

// checkFormat reads the version key, or writes it into a store that is new.
func (s *Store) checkFormat(fresh bool) error {
	if fresh {
		return s.firstWrite()
	}
	var version uint16
	found, err := s.value(formatKey, func(v []byte) error {
		if len(v) != 2 {
			return damaged("format key holds %d bytes, want 2", len(v))
		}
		version = binary.BigEndian.Uint16(v)
		return nil
	})
	switch {
	case err != nil:
		return err
	case !found:
		return damaged("the database has no format key: it is another program's, or its start is lost")
	case version > formatVersion:
		return newer(fmt.Sprint(version), fmt.Sprint(formatVersion))
	}
	return nil
}

func (s *Store) firstWrite() error {
	if err := s.db.Set(formatKey, binary.BigEndian.AppendUint16(nil, formatVersion), pebble.Sync); err != nil {
		return err
	}
	if err := s.disk.broken(); err != nil {
		return err
	}
	return finish(s.dir, s.disk.FS)
}

func newer(got, want string) error {
	return fmt.Errorf("written in format %s, this knl reads up to %s; use a newer knl", got, want)
}

// located is an error that says already which store it is about.
type located struct{ error }

func (l located) Unwrap() error { return l.error }

// describe puts a fault in the words of the house: which store, what, and what
// to do about it. It describes no fault twice.
func describe(dir string, err error) error {
	var done located
	var held *Held
	if errors.As(err, &done) || errors.As(err, &held) {
		return err
	}
	const unknownFormat = "unknown format major version "
	hint := ""
	switch _, version, isFormat := strings.Cut(err.Error(), unknownFormat); {
	case isFormat:
		err = newer("pebble "+version, "pebble "+pebble.FormatNewest.String())
	case errors.Is(err, store.ErrCorrupt):
		hint = damageHint
	case pebble.IsCorruptionError(err):
		err, hint = fmt.Errorf("%w: %s", store.ErrCorrupt, oneLine(err)), damageHint
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		hint = "; nothing acknowledged is lost: make room, then open it again"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		hint = "; use a folder that you may write"
	}
	return located{fmt.Errorf("store %q: %w%s", dir, err, hint)}
}

const damageHint = "; `knl check store` lists what is wrong"
