package sockstore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/knl-run/knl/kernel/pebblestore"
	"github.com/knl-run/knl/kernel/store"
)

// SocketName is the socket's name in the folder of its store.
const SocketName = "sock"

// handover is how long Open bears with a folder that is held and not served: its
// holder is just coming, or just going.
const handover = 3 * time.Second

// Open answers the store in dir: held, and served to others until Close, when
// nobody has it; through its holder when somebody does, as a [Through] that
// outlives the holder. Errors are those of [pebblestore.Open]; of a holder that
// serves nothing, a [pebblestore.Held].
func Open(ctx context.Context, dir string, o pebblestore.Options) (st store.Store, held bool, err error) {
	st, held, err = reach(ctx, dir, o)
	if err == nil && !held && !o.ReadOnly {
		st = through(st, func(ctx context.Context) (store.Store, bool, error) { return reach(ctx, dir, o) })
	}
	return st, held, err
}

// reach holds the store or dials its holder. A run that has ended waits for
// neither longer than it must.
func reach(ctx context.Context, dir string, o pebblestore.Options) (st store.Store, held bool, err error) {
	wait := handover
	if run := store.RunOf(ctx); run != nil && run.Err() != nil {
		wait = hurry
	}
	patience, stop := context.WithTimeout(ctx, wait)
	defer stop()
	for {
		st, err := hold(dir, o)
		var busy *pebblestore.Held
		if err == nil || !errors.As(err, &busy) {
			return st, err == nil, err
		}
		c, dialErr := dialWithin(filepath.Join(dir, SocketName), min(helloTime, wait))
		if dialErr == nil {
			return c, false, nil
		}
		var other *otherVersion
		if errors.As(dialErr, &other) {
			return nil, false, dialErr
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-patience.Done():
			return nil, false, fmt.Errorf("%w (asked its holder: %w)", err, errors.Join(ctx.Err(), dialErr))
		}
	}
}

// holding is a store that this process holds and serves.
type holding struct {
	*pebblestore.Store
	server *Server
}

func hold(dir string, o pebblestore.Options) (store.Store, error) {
	st, err := pebblestore.Open(dir, o)
	if err != nil || o.ReadOnly {
		if err != nil {
			return nil, err
		}
		return st, nil
	}
	server, err := Serve(context.Background(), st, filepath.Join(dir, SocketName))
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return &holding{st, server}, nil
}

// Close answers the others what they have asked, hangs up, and closes the store:
// they go on by themselves.
func (h *holding) Close() error { return errors.Join(h.server.Close(), h.Store.Close()) }
