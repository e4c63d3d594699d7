package pebblestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Pebble reads a damaged end of its log or of its manifest as one that was cut
// by a crash, and opens without what stood there. So the last write of a store
// that is closed counts its closes, and a file beside it holds the same number:
// an Open that finds less in the database says that its end is lost (P7).

// closesFile holds how often the store was closed.
const closesFile = "closes"

// unread is what notedCloses answers for a file that holds no number.
const unread = math.MaxUint64

// Lost says what a closed store has lost since, or what about that cannot be
// told; "" for nothing.
func (s *Store) Lost() string { return s.lost }

// countClose writes the count behind everything else.
func (s *Store) countClose() error {
	if !s.wrote.Load() || s.Fault() != nil {
		return nil
	}
	s.closes++
	w := s.db.NewBatch()
	if err := w.Set(closesKey, binary.BigEndian.AppendUint64(nil, s.closes), nil); err != nil {
		return err
	}
	_, err := s.flush.launch(w)
	return err
}

// noteClose leaves the count in the file.
func (s *Store) noteClose() error {
	path := filepath.Join(s.dir, closesFile)
	f, err := s.disk.Create(path+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, strconv.FormatUint(s.closes, 10)+"\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return s.disk.Rename(path+".new", path)
}

// checkCloses reads the count and holds it against the file's. A store that is
// opened to read only opens all the same: what is left of it can be looked at,
// and Check reports the loss.
func (s *Store) checkCloses() error {
	_, err := s.value(closesKey, func(v []byte) error {
		if len(v) != 8 {
			return damaged("closes holds %d bytes, want 8", len(v))
		}
		s.closes = binary.BigEndian.Uint64(v)
		return nil
	})
	if err != nil {
		return err
	}
	noted, err := s.notedCloses()
	if err != nil || noted <= s.closes {
		return err
	}
	if noted == unread { // the data may be whole, there is just nothing to hold it against
		s.lost = fmt.Sprintf("file %q does not hold a number: whether the end of the log is there cannot be told", closesFile)
		return nil
	}
	s.lost = fmt.Sprintf("it was closed %d times and remembers %d: the end of its log or manifest is damaged", noted, s.closes)
	if errors.Is(s.disk.broken(), errReadOnly) {
		return nil
	}
	return damaged("%s; remove its file %q to go on with what is left", s.lost, closesFile)
}

// notedCloses answers 0 for a store that was never closed.
func (s *Store) notedCloses() (uint64, error) {
	f, err := s.disk.Open(filepath.Join(s.dir, closesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 32))
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return unread, nil
	}
	return n, nil
}
