package luabind

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// depthLimit is how many folders a path may lead through, and how far a walk
// goes down: each level is an open folder.
const depthLimit = 100

// linkLimit is how many links a path may lead through, as on Linux.
const linkLimit = 40

// A spot is where an operation acts: a name in an open folder. The way there was
// gone folder by folder, and each was seen to be no link, so at is where it
// really stands: whoever swaps a folder for a link meanwhile is found out.
type spot struct {
	folder *os.Root
	shared bool   // folder is the project's, which stays open
	name   string // in folder; "." is the folder itself
	at     string // from the project root
}

// way says how a path is gone.
type way struct {
	follow bool // its last part too, when that is a link
	make   bool // folders that are missing are made
}

// errChanged is the fault of a name that was one thing when it was looked at and
// another when it was opened.
var errChanged error = &fs.PathError{Err: errors.New("was replaced while it was opened")}

// openTries is how often a file is looked at that others replace all the time.
const openTries = 100

func (s *spot) leave() {
	if !s.shared {
		s.folder.Close()
	}
}

// enter goes on to a folder in the folder of s; at is the caller's to move.
func (s *spot) enter(part string) error {
	seen, err := s.folder.Lstat(part)
	if err != nil {
		return err
	}
	if !seen.IsDir() { // before opening: a named pipe would wait for a writer
		return &fs.PathError{Op: "open", Path: part, Err: syscall.ENOTDIR}
	}
	next, err := s.folder.OpenRoot(part)
	if err != nil {
		return err
	}
	info, err := next.Stat(".")
	if err == nil && !os.SameFile(seen, info) {
		err = errChanged
	}
	if err != nil {
		next.Close()
		return err
	}
	s.leave()
	s.folder, s.shared, s.name = next, false, "."
	return nil
}

// open opens the file at s, which is a regular one and no link. One that is
// replaced meanwhile, as every write does, is looked at again.
func (s *spot) open(flag int) (f *os.File, info fs.FileInfo, err error) {
	for range openTries {
		if f, info, err = s.tryOpen(flag); err != errChanged {
			break
		}
	}
	return f, info, err
}

func (s *spot) tryOpen(flag int) (*os.File, fs.FileInfo, error) {
	seen, err := s.folder.Lstat(s.name)
	if err == nil {
		err = wantFile(seen)
	}
	if err != nil {
		return nil, nil, err
	}
	f, err := s.folder.OpenFile(s.name, flag|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(seen, info) {
		err = errChanged
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// entries answers what is in the folder at s, sorted by name.
func (s *spot) entries() ([]fs.DirEntry, error) {
	f, err := s.folder.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// find goes the way to name. It answers an error of [projectFiles.fault].
func (p *projectFiles) find(name string, w way) (*spot, error) {
	local, err := p.local(name)
	if err != nil {
		return nil, err
	}
	s := &spot{folder: p.root, shared: true, name: ".", at: "."}
	if err = p.guard(s, name); err == nil && p.base != "." {
		err = p.project().goTo(s, &trip{name: name, rest: p.base, enter: true, way: way{follow: true, make: w.make}})
	}
	if err == nil {
		err = p.goTo(s, &trip{name: name, rest: filepath.ToSlash(local), way: w})
	}
	if err != nil {
		s.leave()
		return nil, p.fault(name, err)
	}
	return s, nil
}

// findFolder goes into the folder that name is.
func (p *projectFiles) findFolder(name string) (*spot, error) {
	s, err := p.find(name, way{follow: true})
	if err != nil {
		return nil, err
	}
	if err := p.into(s, name); err != nil {
		s.leave()
		return nil, p.fault(name, err)
	}
	return s, nil
}

// into goes on to the folder that s names.
func (p *projectFiles) into(s *spot, name string) error {
	if s.name == "." {
		return nil
	}
	if err := s.enter(s.name); err != nil {
		return err
	}
	return p.guard(s, name)
}

// project answers p without its base.
func (p *projectFiles) project() *projectFiles {
	q := *p
	q.base, q.strict = ".", false
	return &q
}

// trip is a way that is gone: name is what the script said, rest what is left.
type trip struct {
	way
	name, rest string
	enter      bool // go into the last part too
	links      int  // that were followed
}

// goTo moves s along t, to the name that is the last part.
func (p *projectFiles) goTo(s *spot, t *trip) error {
	for t.rest != "." && t.rest != "" {
		part, rest, _ := strings.Cut(t.rest, "/")
		t.rest = rest
		last := rest == "" && !t.enter
		at := path.Join(s.at, part)
		if p.keeps(at) {
			return p.shutFault(t.name)
		}
		info, err := s.folder.Lstat(part)
		switch {
		case err == nil && info.Mode().Type() == fs.ModeSymlink && (!last || t.follow):
			if err := p.through(s, part, t); err != nil {
				return err
			}
			continue
		case last:
			if err == nil && info.IsDir() && (p.isKept(info) || isStore(s.folder, part)) {
				return p.shutFault(t.name)
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			s.name, s.at = part, at
			return nil
		case errors.Is(err, fs.ErrNotExist) && t.make:
			if err := s.folder.Mkdir(part, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
		if err := s.enter(part); err != nil {
			return err
		}
		s.at = at
		if err := p.guard(s, t.name); err != nil {
			return err
		}
	}
	return nil
}

// through goes on where a link leads: from the project root, since nothing else
// bounds it.
func (p *projectFiles) through(s *spot, part string, t *trip) error {
	if p.strict {
		return &stdError{kind: denied, text: fmt.Sprintf("%q: %q is a link, and links may lead out of the folder", t.name, part)}
	}
	if t.links++; t.links > linkLimit {
		return &stdError{kind: ioFault, text: fmt.Sprintf("%q: the links lead in a circle", t.name)}
	}
	to, err := s.folder.Readlink(part)
	if err != nil {
		return err
	}
	if filepath.IsAbs(to) {
		to = p.relative(filepath.Clean(to))
	} else {
		to = path.Join(s.at, to)
	}
	if !filepath.IsLocal(to) {
		return p.project().outside(t.name)
	}
	s.leave()
	*s = spot{folder: p.root, shared: true, name: ".", at: "."}
	t.rest = path.Join(filepath.ToSlash(to), t.rest)
	return deepFault(t.name, t.rest)
}

func deepFault(name, local string) error {
	n := strings.Count(filepath.ToSlash(local), "/")
	if n <= depthLimit {
		return nil
	}
	shown := string(wholeText([]byte(name[:min(len(name), 60)])))
	return &stdError{kind: overSize, text: fmt.Sprintf("%q…: leads through %d folders, want at most %d", shown, n, depthLimit)}
}
