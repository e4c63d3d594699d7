package pebblestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Pebble reads a damaged end of its log or of its manifest as one that was cut
// by a crash, and opens without what stood there. So the store counts its
// batches in the database, and a store that is closed leaves the count beside
// it: an Open that finds fewer says what is lost (P7).

// totalFile holds the count of batches that a closed store had.
const totalFile = "batches"

// stageTotal counts w.
func (s *Store) stageTotal(w *pebble.Batch) {
	if !w.Empty() {
		_ = w.Set(totalKey, binary.BigEndian.AppendUint64(nil, s.total+1), nil)
	}
}

// noteTotal leaves the count of a store that is closed.
func (s *Store) noteTotal() error {
	path := filepath.Join(s.dir, totalFile)
	f, err := s.disk.Create(path+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, strconv.FormatUint(s.total, 10)+"\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return s.disk.Rename(path+".new", path)
}

// checkTotal reads the count and holds it against that of the last close. A
// store that is opened to read only opens all the same: what is left of it can
// be looked at, and Check reports the loss.
func (s *Store) checkTotal() error {
	_, err := s.value(totalKey, func(v []byte) error {
		if len(v) != 8 {
			return damaged("total holds %d bytes, want 8", len(v))
		}
		s.total = binary.BigEndian.Uint64(v)
		return nil
	})
	if err != nil {
		return err
	}
	closed, err := s.closedTotal()
	if err != nil || closed <= s.total {
		return err
	}
	s.lost = fmt.Sprintf("it was closed with %d batches and has %d: the end of its log or manifest is damaged", closed, s.total)
	if errors.Is(s.disk.broken(), errReadOnly) {
		return nil
	}
	return damaged("%s; remove its file %q to go on with what is left", s.lost, totalFile)
}

// closedTotal answers 0 for a store that was never closed.
func (s *Store) closedTotal() (uint64, error) {
	f, err := s.disk.Open(filepath.Join(s.dir, totalFile))
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
		return 0, damaged("file %q reads %.32q, want a number", totalFile, text)
	}
	return n, nil
}
