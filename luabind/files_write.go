package luabind

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
)

// turns make writers of one file wait for each other, in whatever VM of this
// process they are: a file's turn is that of the hash of its real path.
var turns [64]sync.Mutex

// turn waits for the turn at s, and answers how it ends.
func (p *projectFiles) turn(s *spot) (end func()) {
	hash := fnv.New32a()
	io.WriteString(hash, filepath.Join(p.real, s.at))
	lock := &turns[hash.Sum32()%uint32(len(turns))]
	lock.Lock()
	return lock.Unlock
}

// content is what is written to a file.
type content struct {
	text   string
	expect *string // what the file must hold, if anything
}

// write puts text at name in one step: a reader sees the old file or the new
// one, and a crash leaves one of them.
func (p *projectFiles) write(name string, text content) error {
	return p.at(name, func(s *spot) error {
		if err := s.expects(name, text.expect); err != nil {
			return err
		}
		mode, err := s.writable()
		if err != nil {
			return err
		}
		return s.replace(mode, func(w io.Writer) error {
			_, err := io.WriteString(w, text.text)
			return err
		})
	})
}

// at calls put where name is to be written, when its turn has come.
func (p *projectFiles) at(name string, put func(s *spot) error) error {
	s, err := p.find(name, way{follow: true})
	if err != nil {
		return err
	}
	defer s.leave()
	defer p.turn(s)()
	return p.fault(name, put(s))
}

// expects refuses a file that does not hold want. Whoever waits for the turn
// changes nothing meanwhile; another process may.
func (s *spot) expects(name string, want *string) error {
	if want == nil {
		return nil
	}
	got, more, err := s.read(int64(len(*want)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && !more && string(got) == *want {
		return nil
	}
	return &stdError{kind: conflict, again: true, text: fmt.Sprintf("%q: does not hold what was expected: read it again", name)}
}

// writable answers the permissions that the file at s has, or nil when there is
// none yet. A file that may not be written is not replaced either.
func (s *spot) writable() (mode *fs.FileMode, err error) {
	f, info, err := s.open(os.O_WRONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	perm := info.Mode().Perm()
	return &perm, f.Close()
}

// replace fills a file beside s and renames it there. Without a mode the file
// gets what the umask leaves.
func (s *spot) replace(mode *fs.FileMode, fill func(io.Writer) error) (err error) {
	draft := ".knl-" + rand.Text()
	first := fs.FileMode(0o666)
	if mode != nil {
		first = 0o600
	}
	f, err := s.folder.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, first)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			s.folder.Remove(draft)
		}
	}()
	err = fill(f)
	if mode != nil {
		err = errors.Join(err, f.Chmod(*mode))
	}
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return s.folder.Rename(draft, s.name)
}

func (p *projectFiles) append(name, text string) error {
	return p.at(name, func(s *spot) error {
		f, _, err := s.open(os.O_WRONLY | os.O_APPEND)
		if errors.Is(err, fs.ErrNotExist) {
			f, err = s.folder.OpenFile(s.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		}
		if err != nil {
			return err
		}
		_, err = io.WriteString(f, text)
		return errors.Join(err, f.Close())
	})
}

// mkdir makes a folder and those above it.
func (p *projectFiles) mkdir(name string) error {
	s, err := p.find(name, way{follow: true, make: true})
	if err != nil {
		return err
	}
	defer s.leave()
	return p.fault(name, s.mkdir(0o777))
}

func (s *spot) mkdir(mode fs.FileMode) error {
	if s.name == "." {
		return nil
	}
	err := s.folder.Mkdir(s.name, mode)
	if errors.Is(err, fs.ErrExist) {
		if info, statErr := s.folder.Lstat(s.name); statErr == nil && info.IsDir() {
			return nil
		}
	}
	return err
}

// remove answers false when nothing stood there.
func (p *projectFiles) remove(name string, recursive bool) (bool, error) {
	s, err := p.find(name, way{})
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer s.leave()
	switch _, err := s.folder.Lstat(s.name); {
	case s.name == "." && p.base == ".":
		return false, &stdError{kind: denied, text: fmt.Sprintf("%q: is the project root, which stays", name)}
	case s.name == ".":
		return false, &stdError{kind: denied, text: fmt.Sprintf("%q: is the folder itself, which stays", name)}
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case p.holds(s.at):
		return false, p.holdsFault(name)
	}
	if recursive {
		err = s.folder.RemoveAll(s.name)
	} else {
		err = s.folder.Remove(s.name)
	}
	return err == nil, p.fault(name, err)
}

func (p *projectFiles) holdsFault(name string) error {
	return &stdError{kind: denied, text: fmt.Sprintf("%q: the folder of the store is in it, which is the host's", name)}
}

// copy copies a file over another, or a folder with all below it into another.
func (p *projectFiles) copy(ctx context.Context, from, to string) error {
	source, err := p.find(from, way{follow: true})
	if err != nil {
		return err
	}
	defer source.leave()
	target, err := p.find(to, way{follow: true})
	if err != nil {
		return err
	}
	defer target.leave()
	info, err := source.folder.Lstat(source.name)
	if err != nil {
		return p.fault(from, err)
	}
	if !info.IsDir() {
		if err := wantFile(info); err != nil {
			return p.fault(from, err)
		}
		return p.fault(to, p.copyFile(source, target))
	}
	if target.at == source.at || strings.HasPrefix(target.at+"/", source.at+"/") || source.at == "." {
		return &stdError{kind: conflict, text: fmt.Sprintf("%q: lies inside %q, which is copied", to, from)}
	}
	if p.holds(source.at) {
		return p.holdsFault(from)
	}
	return p.fault(to, p.copyTree(ctx, source, target))
}

func (p *projectFiles) copyFile(source, target *spot) error {
	f, info, err := source.open(os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	defer p.turn(target)()
	if _, err := target.writable(); err != nil {
		return err
	}
	mode := info.Mode().Perm()
	return target.replace(&mode, func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	})
}

// copyTree copies the folder at source. Folders are made, then filled.
func (p *projectFiles) copyTree(ctx context.Context, source, target *spot) error {
	if err := p.into(source, source.at); err != nil {
		return err
	}
	info, err := source.folder.Stat(".")
	if err != nil {
		return err
	}
	if err := target.mkdir(info.Mode().Perm() | 0o700); err != nil {
		return err
	}
	whole := p.project() // both sides are places, whatever the script's paths count from
	whole.strict = p.strict
	w := walk{projectFiles: whole, exact: true, visit: func(s *spot, e fs.DirEntry, shown string) error {
		dest, err := whole.find(path.Join(target.at, shown), way{})
		if err != nil {
			return err
		}
		defer dest.leave()
		return p.copyEntry(s, dest, e)
	}}
	return w.from(ctx, source, ".")
}

func (p *projectFiles) copyEntry(s, dest *spot, e fs.DirEntry) error {
	info, err := e.Info()
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return dest.mkdir(info.Mode().Perm() | 0o700)
	case info.Mode().Type() == fs.ModeSymlink:
		return copyLink(s, dest)
	}
	return p.fault(dest.at, p.copyFile(s, dest))
}

func copyLink(s, dest *spot) error {
	to, err := s.folder.Readlink(s.name)
	if err != nil {
		return err
	}
	if err := dest.folder.Remove(dest.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return dest.folder.Symlink(to, dest.name)
}
