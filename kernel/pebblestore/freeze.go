package pebblestore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// disk is the file system under Pebble. It passes everything through until an
// operation that changes the folder goes wrong; then it freezes: nothing is
// written below any more, and Pebble, which would end the process on such a
// fault, is told that all went well and lives on over memory.
//
//	after the freeze              answered
//	write, sync: log, manifest    done, and dropped
//	write: table begun before     the fault; Pebble begins it again
//	create                        a file in memory
//	create for a compaction       the fault: a compaction would pull the whole
//	                              store into memory; none begins any more
//	remove                        done; below nothing is removed
//	read, list                    memory first, then below
type disk struct {
	vfs.FS
	dir    string
	frozen atomic.Bool
	once   sync.Once
	fault  error // set before frozen
	memory *vfs.MemFS
	opened atomic.Bool // set when Open is done
}

func newDisk(below vfs.FS, dir string) *disk {
	return &disk{FS: below, dir: dir, memory: vfs.NewMem()}
}

// freeze ends writing for the given reason. Only the first call counts.
func (d *disk) freeze(reason error) {
	d.once.Do(func() {
		d.fault = reason
		_ = d.memory.MkdirAll(d.dir, 0o700) // memory has no faults
		d.frozen.Store(true)
	})
}

// compactions is how many may run, as Pebble asks for it: none while the store
// opens, which would wait for them, and none behind a freeze.
func (d *disk) compactions() (usually, atMost int) {
	if d.opened.Load() && !d.frozen.Load() {
		return 1, 1
	}
	return 0, 1
}

// broken answers the reason of the freeze, nil while there is none.
func (d *disk) broken() error {
	if !d.frozen.Load() {
		return nil
	}
	return d.fault
}

// did freezes when err is a fault of an act on the named file.
func (d *disk) did(act, name string, err error) {
	if err != nil {
		d.freeze(fmt.Errorf("%s %s: %w", act, filepath.Base(name), cause(err)))
	}
}

// cause drops the path and the name of the system call, which the caller's text
// already has.
func cause(err error) error {
	var no syscall.Errno
	if errors.As(err, &no) {
		return no
	}
	return err
}

// create runs one of Pebble's three ways to a new file.
func (d *disk) create(name string, cat vfs.DiskWriteCategory, below func() (vfs.File, error)) (vfs.File, error) {
	if !d.frozen.Load() {
		f, err := below()
		if err == nil {
			return &diskFile{File: f, disk: d, name: name}, nil
		}
		d.did("creating", name, err)
	}
	if cat == "pebble-compaction" || cat == "pebble-blob-file-rewrite" {
		return nil, d.fault
	}
	return d.memory.Create(name, cat)
}

func (d *disk) Create(name string, cat vfs.DiskWriteCategory) (vfs.File, error) {
	return d.create(name, cat, func() (vfs.File, error) { return d.FS.Create(name, cat) })
}

func (d *disk) OpenReadWrite(name string, cat vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return d.create(name, cat, func() (vfs.File, error) { return d.FS.OpenReadWrite(name, cat, o...) })
}

func (d *disk) ReuseForWrite(oldname, newname string, cat vfs.DiskWriteCategory) (vfs.File, error) {
	return d.create(newname, cat, func() (vfs.File, error) { return d.FS.ReuseForWrite(oldname, newname, cat) })
}

// change runs an act that has no answer but its error.
func (d *disk) change(act, name string, below, inMemory func() error) error {
	if !d.frozen.Load() {
		err := below()
		if err == nil {
			return nil
		}
		d.did(act, name, err)
	}
	_ = inMemory() // what is only below stays as it is
	return nil
}

func (d *disk) Rename(oldname, newname string) error {
	return d.change("renaming", oldname,
		func() error { return d.FS.Rename(oldname, newname) },
		func() error { return d.memory.Rename(oldname, newname) })
}

func (d *disk) Link(oldname, newname string) error {
	return d.change("linking", oldname,
		func() error { return d.FS.Link(oldname, newname) },
		func() error { return d.memory.Link(oldname, newname) })
}

func (d *disk) MkdirAll(dir string, perm os.FileMode) error {
	return d.change("making", dir,
		func() error { return d.FS.MkdirAll(dir, perm) },
		func() error { return d.memory.MkdirAll(dir, perm) })
}

// Remove is no fault when it goes wrong: Pebble tries again at the next open.
func (d *disk) Remove(name string) error {
	if d.frozen.Load() {
		_ = d.memory.Remove(name)
		return nil
	}
	return d.FS.Remove(name)
}

func (d *disk) RemoveAll(name string) error {
	if d.frozen.Load() {
		_ = d.memory.RemoveAll(name)
		return nil
	}
	return d.FS.RemoveAll(name)
}

func (d *disk) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	if d.frozen.Load() {
		if f, err := d.memory.Open(name, o...); err == nil {
			return f, nil
		}
	}
	return d.FS.Open(name, o...)
}

func (d *disk) OpenDir(name string) (vfs.File, error) {
	f, err := d.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &diskFile{File: f, disk: d, name: name}, nil
}

func (d *disk) Stat(name string) (vfs.FileInfo, error) {
	if d.frozen.Load() {
		if info, err := d.memory.Stat(name); err == nil {
			return info, nil
		}
	}
	return d.FS.Stat(name)
}

func (d *disk) List(dir string) ([]string, error) {
	names, err := d.FS.List(dir)
	if err == nil && d.frozen.Load() {
		more, _ := d.memory.List(dir)
		names = append(names, more...)
	}
	return names, err
}

// Lock takes Pebble's own lock, which a folder that must not be written cannot
// have: there it is left out.
func (d *disk) Lock(name string) (io.Closer, error) {
	if d.frozen.Load() {
		return io.NopCloser(nil), nil
	}
	return d.FS.Lock(name)
}

func (d *disk) Unwrap() vfs.FS { return d.FS }

// diskFile is an open file below.
type diskFile struct {
	vfs.File
	disk *disk
	name string
}

// table says whether the file is read back while the store is open. The log and
// the manifest are read by the next Open only.
func (f *diskFile) table() bool {
	return strings.HasSuffix(f.name, ".sst") || strings.HasSuffix(f.name, ".blob")
}

func (f *diskFile) do(act string, below func() error) error {
	if !f.disk.frozen.Load() {
		err := below()
		if err == nil {
			return nil
		}
		f.disk.did(act, f.name, err)
	}
	if f.table() {
		return f.disk.fault
	}
	return nil
}

func (f *diskFile) Write(p []byte) (int, error) {
	err := f.do("writing", func() error { _, err := f.File.Write(p); return err })
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

func (f *diskFile) WriteAt(p []byte, at int64) (int, error) {
	err := f.do("writing", func() error { _, err := f.File.WriteAt(p, at); return err })
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

func (f *diskFile) Sync() error { return f.do("syncing", f.File.Sync) }

func (f *diskFile) SyncData() error { return f.do("syncing", f.File.SyncData) }

func (f *diskFile) SyncTo(length int64) (full bool, err error) {
	err = f.do("syncing", func() (err error) { full, err = f.File.SyncTo(length); return err })
	return full, err
}

// maxPreallocate bounds what a log file takes from the disk before it is
// written: Pebble asks for a whole memtable, 70 MB for a session of 70 KB.
const maxPreallocate = 1 << 20

func (f *diskFile) Preallocate(offset, length int64) error {
	if length > maxPreallocate {
		length = maxPreallocate
	}
	return f.do("reserving room for", func() error { return f.File.Preallocate(offset, length) })
}
