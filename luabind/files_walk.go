package luabind

import (
	"context"
	"errors"
	"io/fs"
	"path"
)

// walk looks at all that is below a folder, each name after those before it and
// in front of what is below it. Every folder is opened from the one above it, so
// the work grows with the names and not with their depth. Links are seen and not
// followed, the folders of stores are not seen, and below [depthLimit] nothing is.
type walk struct {
	*projectFiles
	// visit sees a name: s is there until it returns, shown is the path as the
	// script spells it. fs.SkipDir leaves out what is below.
	visit func(s *spot, e fs.DirEntry, shown string) error
	exact bool // what cannot be read is a fault; else it is passed over, as a shell does

	hidden bool // there was the folder of a store
}

// from walks below the folder that s stands in.
func (w *walk) from(ctx context.Context, s *spot, shown string) error {
	return w.level(ctx, s, shown, 0)
}

func (w *walk) level(ctx context.Context, s *spot, shown string, depth int) error {
	entries, err := s.entries()
	if err != nil {
		return w.pass(err)
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		here := spot{folder: s.folder, shared: true, name: e.Name(), at: path.Join(s.at, e.Name())}
		if w.hides(s, e) {
			w.hidden = true
			continue
		}
		if err = w.visit(&here, e, path.Join(shown, e.Name())); err == nil && e.IsDir() {
			err = w.down(ctx, here, path.Join(shown, e.Name()), depth+1)
		}
		if err != nil && !errors.Is(err, fs.SkipDir) {
			return err
		}
	}
	return nil
}

func (w *walk) down(ctx context.Context, s spot, shown string, depth int) error {
	if depth > depthLimit {
		return w.pass(deepFault(shown, shown))
	}
	if err := w.into(&s, shown); err != nil {
		return w.pass(err)
	}
	defer s.leave()
	return w.level(ctx, &s, shown, depth)
}

func (w *walk) pass(err error) error {
	if w.exact {
		return err
	}
	return nil
}
