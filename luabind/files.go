package luabind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// readLimit is the size of a file that is read without max_bytes.
const readLimit = 64 << 20

// projectFiles is the part of the file system that std.fs reaches: the project
// root. os.Root refuses what leads out of it, links and races included; this
// type gives paths, atomic writes and errors their form.
type projectFiles struct {
	root *os.Root
	dir  string // absolute
	real string // dir with its links resolved
}

func openProject(dir string) (*projectFiles, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &projectFiles{root, dir, real}, nil
}

func (p *projectFiles) Close() error { return p.root.Close() }

// local answers name relative to the root. An absolute path must lie inside it.
func (p *projectFiles) local(name string) (string, error) {
	switch {
	case name == "":
		return "", &stdError{kind: notFound, text: `got "" as a path, want one below the root`}
	case strings.ContainsRune(name, 0):
		return "", &stdError{kind: notFound, text: fmt.Sprintf("%q: got a path with a zero byte", name)}
	}
	local := filepath.Clean(name)
	if filepath.IsAbs(local) {
		local = p.relative(local)
	}
	if !filepath.IsLocal(local) {
		return "", p.outside(name)
	}
	return local, nil
}

// relative answers an absolute path from the root, or the path when it lies
// elsewhere.
func (p *projectFiles) relative(name string) string {
	for _, base := range []string{p.dir, p.real} {
		if rel, err := filepath.Rel(base, name); err == nil && filepath.IsLocal(rel) {
			return rel
		}
	}
	return name
}

func (p *projectFiles) outside(name string) error {
	return &stdError{kind: denied, text: fmt.Sprintf("%q: outside the project root %q", name, p.dir)}
}

// fault gives the error of an operation on name its form.
func (p *projectFiles) fault(name string, err error) error {
	var already *stdError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &already), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case strings.HasSuffix(err.Error(), "path escapes from parent"): // os keeps that error to itself
		return p.outside(name)
	}
	kind, text := systemText(err)
	if kind == notFound {
		text += fmt.Sprintf(", root is %q", p.dir)
	}
	return &stdError{kind: kind, text: fmt.Sprintf("%q: %s", name, text), cause: err}
}

// read answers the bytes of a file, at most limit of them, and whether there
// were more.
func (p *projectFiles) read(name string, limit int64) (data []byte, more bool, err error) {
	local, err := p.local(name)
	if err != nil {
		return nil, false, err
	}
	info, err := p.root.Stat(local)
	if err == nil {
		err = wantFile(info) // before opening: a named pipe would wait for a writer
	}
	if err != nil {
		return nil, false, p.fault(name, err)
	}
	f, err := p.root.Open(local)
	if err != nil {
		return nil, false, p.fault(name, err)
	}
	defer f.Close()
	data, err = readUpTo(f, info.Size(), limit)
	if err != nil {
		return nil, false, p.fault(name, err)
	}
	if int64(len(data)) > limit {
		return wholeText(data[:limit]), true, nil
	}
	return data, false, nil
}

func tooLarge(name string) string {
	return fmt.Sprintf("%q: larger than %d MB, give max_bytes to read its start", name, readLimit>>20)
}

// readUpTo reads one byte more than limit, to know whether there is more.
func readUpTo(r io.Reader, size, limit int64) ([]byte, error) {
	data := make([]byte, 0, min(size, limit)+1)
	for int64(len(data)) <= limit {
		if len(data) == cap(data) {
			data = slices.Grow(data, len(data)+512)
		}
		room := min(int64(cap(data)), limit+1)
		n, err := r.Read(data[len(data):room])
		data = data[:len(data)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return data, nil
}

func wantFile(info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return &fs.PathError{Err: errors.New("is a " + kindOfFile(info.Mode()) + ", want a file")}
}

func kindOfFile(mode fs.FileMode) string {
	switch mode.Type() {
	case 0:
		return "file"
	case fs.ModeDir:
		return "folder"
	case fs.ModeSymlink:
		return "link"
	case fs.ModeNamedPipe:
		return "pipe"
	case fs.ModeSocket:
		return "socket"
	}
	return "device"
}

// fileInfo is what list and stat tell about an entry.
type fileInfo struct {
	name string
	info fs.FileInfo
}

func (p *projectFiles) list(name string) ([]fileInfo, error) {
	local, err := p.local(name)
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(p.root.FS(), filepath.ToSlash(local))
	if err != nil {
		return nil, p.fault(name, err)
	}
	infos := make([]fileInfo, 0, len(entries))
	for _, e := range entries {
		if info, err := e.Info(); err == nil { // else it went meanwhile
			infos = append(infos, fileInfo{e.Name(), info})
		}
	}
	return infos, nil
}

// stat answers nil when nothing stands at name.
func (p *projectFiles) stat(name string) (fs.FileInfo, error) {
	local, err := p.local(name)
	if err != nil {
		return nil, err
	}
	info, err := p.root.Stat(local)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return info, p.fault(name, err)
}
