package pebblestore

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"

	"github.com/knl-run/knl/kernel/store"
)

// holderFile is the file whose lock says that a folder is held and whose text
// says by which process.
const holderFile = "holder"

// Held is the error of opening a folder that another Store holds. It matches
// [store.ErrBusy].
type Held struct {
	Dir string
	PID int // of the holder; 0 when it did not say
}

// Error names the holder and what to do.
func (h *Held) Error() string {
	who := "another process"
	switch h.PID {
	case 0:
	case os.Getpid():
		who = fmt.Sprintf("this process (%d)", h.PID)
	default:
		who = fmt.Sprintf("process %d", h.PID)
	}
	return fmt.Sprintf("store %q: held by %s; wait for it to end, or use another folder", h.Dir, who)
}

// Unwrap answers [store.ErrBusy].
func (h *Held) Unwrap() error { return store.ErrBusy }

// hold takes the lock of a folder. A reader shares it with readers and does not
// mind a folder that has no lock file and can have none.
func hold(dir string, readOnly bool) (io.Closer, error) {
	path := filepath.Join(dir, holderFile)
	if readOnly {
		return holdShared(dir, path)
	}
	l := flock.New(path, flock.SetPermissions(0o600))
	locked, err := l.TryLock()
	if err != nil {
		return nil, err
	}
	if !locked {
		return nil, &Held{Dir: dir, PID: holder(path)}
	}
	if err := os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		_ = l.Close()
		return nil, err
	}
	return &holding{l}, nil
}

func holdShared(dir, path string) (io.Closer, error) {
	if _, err := os.Stat(path); os.IsNotExist(err) {
		return io.NopCloser(nil), nil
	}
	l := flock.New(path, flock.SetFlag(os.O_RDONLY))
	locked, err := l.TryRLock()
	if err != nil {
		return nil, err
	}
	if !locked {
		return nil, &Held{Dir: dir, PID: holder(path)}
	}
	return l, nil
}

// holder reads the pid that a holder wrote.
func holder(path string) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}

// holding empties the file before it lets go, so that no pid outlives its lock
// but that of a killed process.
type holding struct{ *flock.Flock }

func (h *holding) Close() error {
	_ = os.Truncate(h.Path(), 0)
	return h.Flock.Close()
}
