package luabind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// readLimit is the size of a file that is read without max_bytes.
const readLimit = 64 << 20

// projectFiles is the part of the file system that std.fs reaches: the project
// root, without the folders of stores. Each operation finds its way there by
// [projectFiles.find]; this type gives paths, turns and errors their form.
type projectFiles struct {
	root *os.Root
	dir  string   // absolute
	real string   // dir with its links resolved
	kept []string // folders of stores, absolute; others are known by what is in them
	shut []string // what kept is from the root, by its own names and by where its links lead

	base   string // paths count from here, which is below the root
	strict bool   // no link is followed below base
}

// openProject opens the files below dir. kept are folders that none of them
// reaches; they need not be there yet.
func openProject(dir string, kept ...string) (*projectFiles, error) {
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
	p := &projectFiles{root: root, dir: dir, real: real, base: "."}
	for _, folder := range kept {
		folder, _ = filepath.Abs(folder)
		p.kept = append(p.kept, folder)
		for _, name := range []string{folder, realPath(folder)} {
			if rel := p.relative(name); filepath.IsLocal(rel) {
				p.shut = append(p.shut, filepath.ToSlash(rel))
			}
		}
	}
	return p, nil
}

// realPath resolves the links of as much of name as is there.
func realPath(name string) string {
	if real, err := filepath.EvalSymlinks(name); err == nil || filepath.Dir(name) == name {
		return real
	}
	return filepath.Join(realPath(filepath.Dir(name)), filepath.Base(name))
}

// below answers the files below a folder of p, which need not be there. A strict
// one follows no link: what its paths spell is where they lead.
func (p *projectFiles) below(folder string, strict bool) (*projectFiles, error) {
	local, err := p.local(folder)
	if err != nil {
		return nil, err
	}
	q := *p
	q.base, q.strict = path.Join(p.base, filepath.ToSlash(local)), strict
	return &q, nil
}

func (p *projectFiles) Close() error { return p.root.Close() }

// local answers name relative to the base. An absolute path must lie inside it.
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
		if rel, err := filepath.Rel(p.base, local); err == nil {
			local = rel
		}
	}
	if !filepath.IsLocal(local) {
		return "", p.outside(name)
	}
	return local, deepFault(name, local)
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
	if p.base != "." {
		return &stdError{kind: denied, text: fmt.Sprintf("%q: outside the folder %q", name, p.base)}
	}
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
		text += fmt.Sprintf(", root is %q", filepath.Join(p.dir, p.base))
	}
	return &stdError{kind: kind, text: fmt.Sprintf("%q: %s", name, text), cause: err}
}

// read answers the bytes of a file, at most limit of them, and whether there
// were more.
func (p *projectFiles) read(name string, limit int64) (data []byte, more bool, err error) {
	s, err := p.find(name, way{follow: true})
	if err != nil {
		return nil, false, err
	}
	defer s.leave()
	data, more, err = s.read(limit)
	return data, more, p.fault(name, err)
}

func (s *spot) read(limit int64) (data []byte, more bool, err error) {
	f, info, err := s.open(os.O_RDONLY)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	if data, err = readUpTo(f, info.Size(), limit); err != nil {
		return nil, false, err
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

// list answers what is in a folder. The folders of stores are no part of it.
func (p *projectFiles) list(name string) ([]fileInfo, error) {
	s, err := p.findFolder(name)
	if err != nil {
		return nil, err
	}
	defer s.leave()
	entries, err := s.entries()
	if err != nil {
		return nil, p.fault(name, err)
	}
	infos := make([]fileInfo, 0, len(entries))
	for _, e := range entries {
		if p.hides(s, e) {
			continue
		}
		if info, err := e.Info(); err == nil { // else it went meanwhile
			infos = append(infos, fileInfo{e.Name(), info})
		}
	}
	return infos, nil
}

// stat answers nil when nothing stands at name.
func (p *projectFiles) stat(name string) (fs.FileInfo, error) {
	s, err := p.find(name, way{follow: true})
	if err == nil {
		defer s.leave()
		var info fs.FileInfo
		if info, err = s.folder.Lstat(s.name); err == nil {
			return info, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return nil, p.fault(name, err)
}
