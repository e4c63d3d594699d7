package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/pebblestore"
	"github.com/knl-run/knl/kernel/sockstore"
	"github.com/knl-run/knl/kernel/store"
	"github.com/knl-run/knl/luabind"
)

// memory is what --store says for a store that lives as long as the process.
const memory = "mem"

// openStore holds the store of a folder or reaches its holder; tests put a store
// in its place that stops at a write.
var openStore = sockstore.Open

// place is a store opened to be looked at.
type place struct {
	dir    string
	store  store.Store
	kernel *kernel.Kernel
	shared bool // another process holds the store and may write meanwhile
}

func placeOf(dir string, st store.Store, shared bool) *place {
	return &place{dir: dir, store: st, kernel: kernel.New(st, kernel.Options{}), shared: shared}
}

// look opens the store of the command to read, calls do and closes it. A folder
// without a store is left as it is.
func (a *app) look(ctx context.Context, do func(*place) error) error {
	dir := a.flags.store
	if dir == memory {
		return misuse("give the folder of a store: --store .knl", "--store mem lives inside one run and cannot be looked at")
	}
	if err := isStore(dir); err != nil {
		return err
	}
	st, held, err := sockstore.Open(ctx, dir, pebblestore.Options{ReadOnly: true})
	if err != nil {
		return storeFault(err)
	}
	tellLost(a.ui.note, dir, st)
	return errors.Join(do(placeOf(dir, st, !held)), st.Close())
}

// tellLost says what a store that was closed has lost since.
func tellLost(note func(format string, args ...any), dir string, st store.Store) {
	if l, ok := st.(interface{ Lost() string }); ok && l.Lost() != "" {
		note("knl: store %q: %s", dir, l.Lost())
	}
}

// isStore answers a fault when nothing stands at dir.
func isStore(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &fault{code: exitRaised, err: fmt.Errorf("store %q: no such folder", dir),
			hint: "knl run makes a store; --store names another folder"}
	case err != nil:
		return &fault{code: exitRaised, err: err}
	case !info.IsDir():
		return misuse("--store names another folder", "store %q: is a file, want a folder", dir)
	}
	return nil
}

// storeFault gives a store's error its next step.
func storeFault(err error) error {
	f := &fault{code: exitRaised, err: err}
	var held *pebblestore.Held
	switch {
	case errors.As(err, &held):
		f.hint = "wait for that process to end, or use another store with --store"
	case errors.Is(err, fs.ErrPermission):
		f.hint = "use a folder that you may write: --store DIR"
	}
	return f
}

// stores are the stores that a run has opened, each once.
type stores struct {
	dir    string // of the run's own
	note   func(format string, args ...any)
	mem    store.Store // what "mem" names; nil: the process's
	mu     sync.Mutex
	opened map[string]store.Store
}

// open answers the store that a script names: "" is the run's own.
func (s *stores) open(spec string) (store.Store, error) {
	if spec == "" {
		spec = s.dir
	}
	switch {
	case spec == memory && s.mem != nil:
		return s.mem, nil
	case spec == memory:
		return luabind.SharedMem(), nil
	}
	key, err := filepath.Abs(spec)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.opened[key]; st != nil {
		if t, ok := st.(*sockstore.Through); !ok || t.Ended() == nil {
			return st, nil
		}
		_ = st.Close() // who still works on it has been told
	}
	if info, err := os.Stat(spec); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("store %q: is a file, want a folder", spec)
	}
	st, held, err := openStore(context.Background(), spec, pebblestore.Options{})
	if err != nil {
		return nil, err
	}
	tellLost(s.note, spec, st)
	if !held {
		s.note("knl: store %q is held by another process: working through it", spec)
	}
	if s.opened == nil {
		s.opened = map[string]store.Store{}
	}
	s.opened[key] = st
	return st, nil
}

// close closes every store; what was recorded is on disk when it returns. Others
// who work through one that is held here go on by themselves.
func (s *stores) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, st := range s.opened {
		errs = append(errs, st.Close())
	}
	clear(s.opened)
	return errors.Join(errs...)
}

// candidates is how many ids an ambiguous beginning lists.
const candidates = 5

// session answers the id of the session that prefix begins.
func (p *place) session(ctx context.Context, prefix string) (string, error) {
	return findSession(ctx, p.store, p.dir, prefix)
}

func findSession(ctx context.Context, st store.Store, dir, prefix string) (string, error) {
	if prefix == "" {
		return "", misuse("knl sessions lists them", "session ID is empty")
	}
	head, err := st.Head(ctx, prefix)
	if err != nil || head.Seq > 0 {
		return prefix, err
	}
	found, err := sessionsNamed(ctx, st, prefix)
	if err != nil {
		return "", err
	}
	return only(found, "session", prefix, fmt.Sprintf("store %q", dir), "knl sessions lists what is there")
}

// newest names the session or the beat that was begun last. A child is a part of
// its run, and no session that anybody would go on with.
const newest = "last"

// sessionsNamed answers the sessions that part may mean.
func sessionsNamed(ctx context.Context, st store.Store, part string) (found []string, err error) {
	if part == newest {
		return newestRoot(ctx, st)
	}
	infos, err := st.Streams(ctx, "", 0)
	for _, in := range infos {
		if names(in.Stream, part) {
			found = append(found, in.Stream)
		}
	}
	return found, err
}

// newestRoot answers the last session without a parent; ids sort by the time of
// their making.
func newestRoot(ctx context.Context, st store.Store) (id []string, err error) {
	rows, err := kernel.New(st, kernel.Options{}).Sessions(ctx, "", 0)
	for _, r := range rows {
		if r.Parent == "" {
			id = []string{r.Session}
		}
	}
	return id, err
}

// names says whether part is the beginning or the ending of id: ids of one day
// begin alike and end apart. Minted ids are in capitals.
func names(id, part string) bool {
	for _, spelled := range spellings(part) {
		if strings.HasPrefix(id, spelled) || strings.HasSuffix(id, spelled) {
			return true
		}
	}
	return false
}

// spellings answers the ways an id may be typed: minted ids are in capitals.
func spellings(prefix string) []string {
	if upper := strings.ToUpper(prefix); upper != prefix {
		return []string{prefix, upper}
	}
	return []string{prefix}
}

// beat answers the id of the beat of a session that part names: by its number
// from 1, as "last", or by a beginning or an ending of its id.
func (p *place) beat(ctx context.Context, session, part string) (string, error) {
	groups, err := p.store.Groups(ctx, session, 0)
	if err != nil {
		return "", err
	}
	n, err := strconv.Atoi(part)
	switch {
	case part == newest:
		n = len(groups)
	case err != nil || len(part) > len("999999"):
		n = 0
	}
	if n > 0 && n <= len(groups) {
		return groups[n-1].ID, nil
	}
	var found []string
	for _, g := range groups {
		if g.ID == part {
			return g.ID, nil
		}
		if n == 0 && names(g.ID, part) { // a number is no ending of an id, however few beats there are
			found = append(found, g.ID)
		}
	}
	return only(found, "beat", part, fmt.Sprintf("session %s, which has %d", session, len(groups)), "knl log "+session+" shows its beats")
}

// only answers the one id found, or what is wrong with prefix.
func only(found []string, noun, prefix, where, hint string) (string, error) {
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", &fault{code: exitUsage, err: fmt.Errorf("%s %q is not in %s", noun, prefix, where), hint: hint}
	}
	shown, more := found, ""
	if len(found) > candidates {
		shown, more = found[:candidates], ", …"
	}
	return "", &fault{code: exitUsage, hint: "type more of it, or its end, where ids differ",
		err: fmt.Errorf("%s %q is ambiguous: %s%s", noun, prefix, strings.Join(shown, ", "), more)}
}

// row answers what knl sessions says about one session.
func (p *place) row(ctx context.Context, id string) (*kernel.SessionRow, error) {
	rows, err := p.kernel.Tree(ctx, id)
	if err != nil {
		return nil, err
	}
	return &rows[0].SessionRow, nil
}
