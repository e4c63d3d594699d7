package cassette

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/internal/field"
)

// version is the form of the file that this package writes and reads.
const version = 1

var heading = fmt.Sprintf("{\"knl_cassette\":%d}\n", version)

// tape is what a file holds.
type tape struct {
	calls    []*call
	counts   map[counted]int64
	profiles map[sizes]port.Profile
}

func newTape() *tape {
	return &tape{counts: map[counted]int64{}, profiles: map[sizes]port.Profile{}}
}

// readTape reads a file; torn answers how many bytes at its end are a line that
// was not written whole.
func readTape(text []byte) (t *tape, torn int, err error) {
	t = newTape()
	for n := 1; len(text) > 0; n++ {
		line, rest, whole := bytes.Cut(text, []byte{'\n'})
		if !whole && (n > 1 || bytes.HasPrefix([]byte(heading), line)) {
			return t, len(line), nil
		}
		if n == 1 {
			err = readHeading(line)
		} else {
			err = t.read(fmt.Sprintf("line %d", n), line)
		}
		if err != nil {
			return nil, 0, err
		}
		text = rest
	}
	return t, 0, nil
}

func readHeading(line []byte) error {
	var h struct {
		Version int `json:"knl_cassette"`
	}
	switch err := json.Unmarshal(line, &h); {
	case err != nil || h.Version == 0:
		return errors.New("line 1: got something else, want {\"knl_cassette\":1}: the file is no cassette")
	case h.Version != version:
		return fmt.Errorf("line 1: written in form %d, this knl reads form %d: use a newer knl, or record it again", h.Version, version)
	}
	return nil
}

// read takes one entry.
func (t *tape) read(at string, line []byte) error {
	o := field.Open(at, line, []string{"call", "count", "profile"})
	switch {
	case o.Err() != nil:
		return o.Err()
	case o.Has("call"):
		c, err := readCall(o.Path("call"), o.Raw("call"), t.calls)
		if err == nil {
			t.calls = append(t.calls, c)
		}
		return err
	case o.Has("count"):
		k, n, err := readCount(o.Path("count"), o.Raw("count"))
		t.counts[k] = n
		return err
	case o.Has("profile"):
		s, p, err := readProfile(o.Path("profile"), o.Raw("profile"))
		t.profiles[s] = p
		return err
	}
	return fmt.Errorf("%s: got nothing, want one of call, count, profile", at)
}

// file is the place of a cassette on disk. It is opened for each write: a
// cassette has no end at which it could be closed.
type file struct {
	dir, path string
	replace   bool // the first write takes the place of what is there
	begun     bool
}

// load answers the bytes of the file; fs.ErrNotExist when there is none.
func (f *file) load() ([]byte, error) {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.ReadFile(f.path)
}

// add appends a line; the first one comes with the heading.
func (f *file) add(line json.RawMessage) error {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	text := append(append([]byte(nil), line...), '\n')
	if f.begun {
		return write(root, f.path, os.O_APPEND|os.O_WRONLY, text)
	}
	if err := f.begin(root, append([]byte(heading), text...)); err != nil {
		return err
	}
	f.begun = true
	return nil
}

// begin makes the file. One that has come meanwhile is somebody else's, unless
// it was to be replaced: then it stays until the new one is whole.
func (f *file) begin(root *os.Root, text []byte) error {
	if err := root.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
		return err
	}
	if !f.replace {
		err := write(root, f.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, text)
		if errors.Is(err, fs.ErrExist) {
			return errors.New("somebody else has recorded it since: run again to play it")
		}
		return err
	}
	next := f.path + ".new"
	if err := write(root, next, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, text); err != nil {
		return err
	}
	return root.Rename(next, f.path)
}

// write writes text with one call and waits for the disk.
func write(root *os.Root, path string, how int, text []byte) error {
	w, err := root.OpenFile(path, how, 0o644)
	if err != nil {
		return err
	}
	if _, err = w.Write(text); err == nil {
		err = w.Sync()
	}
	return errors.Join(err, w.Close())
}
