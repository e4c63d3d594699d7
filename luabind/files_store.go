package luabind

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// The folder of a store is out of reach, whatever name leads there and whoever's
// it is. Some are known by name before they are there: the host's own. Every
// other one is known by what is in it, also when another run made it.

// storeSigns are files of which every store has one from its first moment to its
// last. To look for them is all that a folder without them costs.
var storeSigns = []string{"holder", "LOCK"}

// isStoreFile knows what no folder beside a store has: the mark of the format,
// or, while the store is being made, the word that it is.
func isStoreFile(name string) bool {
	return strings.HasPrefix(name, "marker.format-version.") || name == "unfinished"
}

// isStore says whether a folder in folder is a store by what is in it.
func isStore(folder *os.Root, name string) bool {
	if !slices.ContainsFunc(storeSigns, func(sign string) bool {
		_, err := folder.Lstat(path.Join(name, sign))
		return err == nil
	}) {
		return false
	}
	f, err := folder.Open(name)
	if err != nil {
		return true // what it is cannot be seen
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	return err != nil || slices.ContainsFunc(names, isStoreFile)
}

// guard refuses to be in the folder of a store, whatever name led there.
func (p *projectFiles) guard(s *spot, name string) error {
	if p.keeps(s.at) {
		return p.shutFault(name)
	}
	info, err := s.folder.Stat(".")
	if err == nil && (p.isKept(info) || isStore(s.folder, ".")) {
		return p.shutFault(name)
	}
	return err
}

func (p *projectFiles) shutFault(name string) error {
	return &stdError{kind: denied, text: fmt.Sprintf("%q: is in the folder of the store, which is the host's: read sessions by knl.attach, keep values by std.kv", name)}
}

// hides says whether e, which is in the folder of s, is the folder of a store.
func (p *projectFiles) hides(s *spot, e fs.DirEntry) bool {
	return p.keeps(path.Join(s.at, e.Name())) || e.IsDir() && isStore(s.folder, e.Name())
}

// keeps says whether at is below a folder that is known by name, or that folder.
func (p *projectFiles) keeps(at string) bool {
	return slices.ContainsFunc(p.shut, func(dir string) bool { return dir == "." || at == dir || strings.HasPrefix(at, dir+"/") })
}

// isKept knows those folders under every name that they have.
func (p *projectFiles) isKept(info fs.FileInfo) bool {
	return slices.ContainsFunc(p.kept, func(dir string) bool {
		kept, err := os.Stat(dir)
		return err == nil && os.SameFile(kept, info)
	})
}

// spare refuses what acts on all that is below the folder at s when a store is
// there.
func (p *projectFiles) spare(ctx context.Context, s *spot, name string) error {
	w := walk{projectFiles: p.project(), visit: func(*spot, fs.DirEntry, string) error { return nil }}
	w.hidden = slices.ContainsFunc(p.shut, func(dir string) bool { return s.at == "." || strings.HasPrefix(dir, s.at+"/") })
	if !w.hidden {
		top := spot{folder: s.folder, shared: true, name: s.name, at: s.at}
		if err := w.down(ctx, top, s.at, 0); err != nil {
			return err
		}
	}
	if w.hidden {
		return &stdError{kind: denied, text: fmt.Sprintf("%q: the folder of the store is in it, which is the host's", name)}
	}
	return nil
}
