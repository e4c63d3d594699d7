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
	"path/filepath"
	"strings"
)

// write puts data at name in one step: a reader sees the old file or the new
// one, and a crash leaves one of them.
func (p *projectFiles) write(name string, data []byte) error {
	local, err := p.target(name)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if info, err := p.root.Stat(local); err == nil {
		if err := wantFile(info); err != nil {
			return p.fault(name, err)
		}
		mode = info.Mode().Perm()
	}
	return p.fault(name, p.replace(local, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}))
}

// replace fills a file beside local and renames it there.
func (p *projectFiles) replace(local string, mode fs.FileMode, fill func(io.Writer) error) (err error) {
	draft := filepath.Join(filepath.Dir(local), ".knl-"+rand.Text())
	f, err := p.root.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			p.root.Remove(draft)
		}
	}()
	err = errors.Join(fill(f), f.Chmod(mode), f.Sync())
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return p.root.Rename(draft, local)
}

// target answers where a write to name ends up: links are followed, so that
// writing through one does not put a file in its place.
func (p *projectFiles) target(name string) (string, error) {
	local, err := p.local(name)
	for range 40 {
		if err != nil {
			return "", err
		}
		info, statErr := p.root.Lstat(local)
		if statErr != nil || info.Mode().Type() != fs.ModeSymlink {
			return local, nil // what is wrong shows when it is written
		}
		to, linkErr := p.root.Readlink(local)
		if linkErr != nil {
			return "", p.fault(name, linkErr)
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(local), to)
		}
		if local, err = p.local(to); err != nil {
			err = p.outside(name)
		}
	}
	return "", &stdError{kind: ioFault, text: fmt.Sprintf("%q: the links lead in a circle", name)}
}

func (p *projectFiles) append(name string, data []byte) error {
	local, err := p.target(name)
	if err != nil {
		return err
	}
	if info, err := p.root.Stat(local); err == nil {
		if err := wantFile(info); err != nil {
			return p.fault(name, err)
		}
	}
	f, err := p.root.OpenFile(local, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return p.fault(name, err)
	}
	_, err = f.Write(data)
	return p.fault(name, errors.Join(err, f.Close()))
}

func (p *projectFiles) mkdir(name string) error {
	local, err := p.local(name)
	if err != nil {
		return err
	}
	if local == "." {
		return nil
	}
	return p.fault(name, p.root.MkdirAll(local, 0o755))
}

// remove answers false when nothing stood there.
func (p *projectFiles) remove(name string, recursive bool) (bool, error) {
	local, err := p.local(name)
	if err != nil {
		return false, err
	}
	if local == "." {
		return false, &stdError{kind: denied, text: fmt.Sprintf("%q: is the project root, which stays", name)}
	}
	if _, err := p.root.Lstat(local); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if recursive {
		err = p.root.RemoveAll(local)
	} else {
		err = p.root.Remove(local)
	}
	return err == nil, p.fault(name, err)
}

// copy copies a file over another, or a folder with all below it into another.
func (p *projectFiles) copy(ctx context.Context, from, to string) error {
	source, err := p.local(from)
	if err != nil {
		return err
	}
	target, err := p.target(to)
	if err != nil {
		return err
	}
	info, err := p.root.Stat(source)
	if err != nil {
		return p.fault(from, err)
	}
	if !info.IsDir() {
		if info, err := p.root.Stat(target); err == nil && info.IsDir() {
			return p.fault(to, wantFile(info))
		}
		return p.copyFile(source, target, info, to)
	}
	if target == source || strings.HasPrefix(target+"/", source+"/") || source == "." {
		return &stdError{kind: conflict, text: fmt.Sprintf("%q: lies inside %q, which is copied", to, from)}
	}
	return p.copyTree(ctx, source, target, to)
}

func (p *projectFiles) copyTree(ctx context.Context, source, target, to string) error {
	walk := func(at string, e fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		dest := path.Join(target, strings.TrimPrefix(at, source))
		info, err := e.Info()
		switch {
		case err != nil:
			return err
		case info.IsDir():
			return p.root.MkdirAll(dest, info.Mode().Perm()|0o700)
		case info.Mode().Type() == fs.ModeSymlink:
			return p.copyLink(at, dest)
		}
		return p.copyFile(at, dest, info, dest)
	}
	return p.fault(to, fs.WalkDir(p.root.FS(), filepath.ToSlash(source), walk))
}

func (p *projectFiles) copyLink(at, dest string) error {
	to, err := p.root.Readlink(at)
	if err != nil {
		return err
	}
	if err := p.root.Remove(dest); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return p.root.Symlink(to, dest)
}

func (p *projectFiles) copyFile(source, target string, info fs.FileInfo, to string) error {
	if err := wantFile(info); err != nil {
		return p.fault(source, err)
	}
	f, err := p.root.Open(source)
	if err != nil {
		return p.fault(source, err)
	}
	defer f.Close()
	return p.fault(to, p.replace(target, info.Mode().Perm(), func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	}))
}
