package sockstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// version is that of the wire.
const version = 1

const magic = "knl-sock"

// helloTime bounds the hello: a holder that was stopped accepts connections and
// says nothing. Tests shorten it.
var helloTime = 3 * time.Second

// greet says hello on conn and answers who the other side is, in at most wait.
func greet(conn net.Conn, wait time.Duration) (pid int, err error) {
	mine := binary.BigEndian.AppendUint16([]byte(magic), version)
	mine = binary.BigEndian.AppendUint32(mine, uint32(os.Getpid()))
	if err := conn.SetDeadline(time.Now().Add(wait)); err != nil {
		return 0, err
	}
	if _, err := conn.Write(mine); err != nil {
		return 0, err
	}
	theirs := make([]byte, len(mine))
	if _, err := io.ReadFull(conn, theirs); err != nil {
		return 0, err
	}
	if string(theirs[:len(magic)]) != magic {
		return 0, errors.New("the other side does not speak for a knl store")
	}
	pid = int(binary.BigEndian.Uint32(theirs[len(magic)+2:]))
	if v := binary.BigEndian.Uint16(theirs[len(magic):]); v != version {
		return pid, &otherVersion{pid: pid, version: v}
	}
	return pid, conn.SetDeadline(time.Time{})
}

// otherVersion is the error of two sides that cannot talk.
type otherVersion struct {
	pid     int
	version uint16
}

func (o *otherVersion) Error() string {
	return fmt.Sprintf("process %d speaks version %d of the socket, this knl speaks %d; use the same knl, or wait for it to end", o.pid, o.version, version)
}

// maxPath is what the address of a Unix socket holds on every system.
const maxPath = 100

// listen makes the socket at path, for its owner alone. It replaces what stands
// there: who holds a store is the only one to serve it. A path too long for an
// address becomes a link to a socket in a folder of the system's own.
func listen(path string) (ln net.Listener, cleanup func(), err error) {
	sweep(path)
	at, folder := path, ""
	if len(path) > maxPath {
		if folder, err = os.MkdirTemp("", tempPattern); err != nil {
			return nil, nil, err
		}
		at = filepath.Join(folder, "sock")
		if err = os.Symlink(at, path); err != nil {
			_ = os.RemoveAll(folder)
			return nil, nil, err
		}
	}
	cleanup = func() {
		_ = os.Remove(path)
		if folder != "" {
			_ = os.RemoveAll(folder)
		}
	}
	if ln, err = net.Listen("unix", at); err == nil {
		err = os.Chmod(at, 0o600)
	}
	if err != nil {
		if ln != nil {
			_ = ln.Close()
		}
		cleanup()
		return nil, nil, err
	}
	return ln, cleanup, nil
}

const tempPattern = "knl-sock-"

// sweep removes a socket that a killed holder left, and the folder it may have
// stood in.
func sweep(path string) {
	if at, err := os.Readlink(path); err == nil && strings.HasPrefix(filepath.Base(filepath.Dir(at)), tempPattern) {
		_ = os.RemoveAll(filepath.Dir(at))
	}
	_ = os.Remove(path)
}

// address answers what to dial for path.
func address(path string) string {
	if at, err := os.Readlink(path); err == nil {
		return at
	}
	return path
}
