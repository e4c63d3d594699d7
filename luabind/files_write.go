package luabind

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// content is what is written to a file.
type content struct {
	text   string
	expect *string // what the file must hold, if anything
}

// write puts text at name in one step: a reader sees the old file or the new
// one, and a crash leaves one of them.
func (p *projectFiles) write(ctx context.Context, name string, text content) error {
	return p.at(ctx, name, func(s *spot) error {
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
func (p *projectFiles) at(ctx context.Context, name string, put func(s *spot) error) error {
	s, err := p.find(name, way{follow: true})
	if err != nil {
		return err
	}
	defer s.leave()
	end, err := p.turn(ctx, s)
	if err != nil {
		return err
	}
	defer end()
	return p.fault(name, put(s))
}

// expects refuses a file that does not hold want. Whoever waits for the turn
// changes nothing meanwhile.
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
func (s *spot) replace(mode *fs.FileMode, fill func(io.Writer) error) error {
	draft, err := s.draft(mode, fill)
	if err != nil {
		return err
	}
	return s.settle(draft)
}

// draft fills a file beside s.
func (s *spot) draft(mode *fs.FileMode, fill func(io.Writer) error) (name string, err error) {
	name = ".knl-" + rand.Text()
	first := fs.FileMode(0o666)
	if mode != nil {
		first = 0o600
	}
	f, err := s.folder.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, first)
	if err != nil {
		return "", err
	}
	err = fill(f)
	if mode != nil {
		err = errors.Join(err, f.Chmod(*mode))
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		s.folder.Remove(name)
	}
	return name, err
}

// settle puts a draft at s.
func (s *spot) settle(draft string) error {
	err := s.folder.Rename(draft, s.name)
	if err != nil {
		s.folder.Remove(draft)
	}
	return err
}

func (p *projectFiles) append(ctx context.Context, name, text string) error {
	return p.at(ctx, name, func(s *spot) error {
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
func (p *projectFiles) remove(ctx context.Context, name string, recursive bool) (bool, error) {
	s, err := p.find(name, way{})
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer s.leave()
	info, err := s.folder.Lstat(s.name)
	switch {
	case s.name == "." && p.base == ".":
		return false, &stdError{kind: denied, text: fmt.Sprintf("%q: is the project root, which stays", name)}
	case s.name == ".":
		return false, &stdError{kind: denied, text: fmt.Sprintf("%q: is the folder itself, which stays", name)}
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err == nil && recursive && info.IsDir():
		if err := p.spare(ctx, s, name); err != nil {
			return false, p.fault(name, err)
		}
	}
	end, err := p.turn(ctx, s)
	if err != nil {
		return false, err
	}
	defer end()
	if recursive {
		err = s.folder.RemoveAll(s.name)
	} else {
		err = s.folder.Remove(s.name)
	}
	return err == nil, p.fault(name, err)
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
		return p.fault(to, p.copyFile(ctx, source, target))
	}
	if target.at == source.at || strings.HasPrefix(target.at+"/", source.at+"/") || source.at == "." {
		return &stdError{kind: conflict, text: fmt.Sprintf("%q: lies inside %q, which is copied", to, from)}
	}
	if err := p.spare(ctx, source, from); err != nil {
		return p.fault(from, err)
	}
	return p.fault(to, p.copyTree(ctx, source, target))
}

// copyFile waits for its turn with the copy made: that may take long.
func (p *projectFiles) copyFile(ctx context.Context, source, target *spot) error {
	f, info, err := source.open(os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := target.writable(); err != nil {
		return err
	}
	mode := info.Mode().Perm()
	draft, err := target.draft(&mode, func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	})
	if err != nil {
		return err
	}
	end, err := p.turn(ctx, target)
	if err != nil {
		return errors.Join(err, target.folder.Remove(draft))
	}
	defer end()
	return target.settle(draft)
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
	w := walk{projectFiles: whole, exact: true, visit: func(s *spot, _ fs.DirEntry, shown string) error {
		dest, err := whole.find(path.Join(target.at, shown), way{})
		if err != nil {
			return err
		}
		defer dest.leave()
		return p.copyEntry(ctx, s, dest)
	}}
	return w.from(ctx, source, ".")
}

func (p *projectFiles) copyEntry(ctx context.Context, s, dest *spot) error {
	info, err := s.folder.Lstat(s.name)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return dest.mkdir(info.Mode().Perm() | 0o700)
	case info.Mode().Type() == fs.ModeSymlink:
		return copyLink(s, dest)
	}
	return p.fault(dest.at, p.copyFile(ctx, s, dest))
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
