package luabind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/store"
)

// kvSession is the first session whose log is the pairs of a store; the ones that
// follow it are numbered. Its id sorts in front of every minted one, so that the
// newest session is never this.
const kvSession = ".kv"

// The events of that log.
const (
	kvSetKind     = "kv_set"     // data {key, value}
	kvDeletedKind = "kv_deleted" // data {key}
	kvKeptKind    = "kv_kept"    // data {values}: pairs of the log before this one
	kvBegunKind   = "kv_begun"   // data {}: all that was kept stands in front of it
)

// kvDead is how many events of a log may be out of date before a new log is
// begun, beside as many as there are keys.
const kvDead = 1000

// kvKeptSize is how many bytes of pairs one event keeps, or one pair.
const kvKeptSize = 256 << 10

// pairs are the keys and values of one store, folded from the log of their
// session: durable, and shared with other processes, as every log is. Each
// reading takes in what has been appended since the one before.
//
// A log that has ended is followed by the next, which begins with what was kept.
// So nothing is lost when a script closes the session, and a log that is mostly
// out of date is ended by whoever finds it. An ended log takes no more events,
// hence all who follow it keep the same; what they keep twice, or too late, is
// passed over by [pairs.apply].
type pairs struct {
	open func(spec string) (store.Store, error) // nil: the memory of this process
	mask *Masker

	mu      sync.Mutex
	k       *kernel.Kernel
	session *kernel.Session // attached; nil while there is none
	number  int             // of the session, from 1
	begun   bool            // the log holds all that it keeps
	seen    int64
	values  map[string]json.RawMessage
}

func kvSessionID(number int) string {
	if number == 1 {
		return kvSession
	}
	return fmt.Sprintf("%s-%06d", kvSession, number)
}

// pair is the data of both kinds of events.
type pair struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value,omitempty"`
}

// kept is the data of kv_kept.
type kept struct {
	Values map[string]json.RawMessage `json:"values"`
}

// kvTries is how often a call is made while the store fails under it.
const kvTries = 5

// call makes a call of a script. When the store fails under it, as one does whose
// holder ends, the call is made again by a new session: what it did may be done
// twice, and whoever reads the log anew sees whether it was done. A call that was
// cut short leaves no session either, for it may stand between two logs.
func (p *pairs) call(ctx context.Context, do func() error) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range kvTries {
		err = do()
		if _, refused := stdFault(err); err == nil || refused {
			return err
		}
		p.session, p.values = nil, nil
		if ctx.Err() != nil || !storeFailed(err) {
			return err
		}
	}
	return err
}

// storeFailed says whether it was the store that failed, and another handle of it
// may not.
func storeFailed(err error) bool {
	kind := kernel.KindOf(err)
	return kind == kernel.Storage || kind == kernel.Busy || errors.Is(err, store.ErrClosed)
}

func (p *pairs) get(ctx context.Context, key string) (value json.RawMessage, err error) {
	err = p.call(ctx, func() error {
		err := p.catchUp(ctx, false)
		value = p.values[key]
		return err
	})
	return value, err
}

func (p *pairs) list(ctx context.Context, prefix string) (keys []string, err error) {
	err = p.call(ctx, func() error {
		err := p.catchUp(ctx, false)
		keys = slices.Sorted(maps.Keys(p.values))
		return err
	})
	return slices.DeleteFunc(keys, func(k string) bool { return !strings.HasPrefix(k, prefix) }), err
}

func (p *pairs) set(ctx context.Context, key string, value json.RawMessage) error {
	if len(value) > valueLimit {
		return &stdError{kind: overSize, text: fmt.Sprintf("%q: got %d bytes as JSON, want at most %d: keep it in a file and its path here", key, len(value), valueLimit)}
	}
	return p.call(ctx, func() error {
		if err := p.catchUp(ctx, true); err != nil {
			return err
		}
		if _, known := p.values[key]; !known && len(p.values) >= pairLimit {
			return &stdError{kind: overSize, text: fmt.Sprintf("%q: there are %d keys already, delete some", key, pairLimit)}
		}
		return p.append(ctx, kvSetKind, pair{key, value})
	})
}

// remove answers true also when it was this call, and not the one made again,
// that found the key.
func (p *pairs) remove(ctx context.Context, key string) (was bool, err error) {
	err = p.call(ctx, func() error {
		if err := p.catchUp(ctx, false); err != nil {
			return err
		}
		if _, known := p.values[key]; !known {
			return nil
		}
		was = true
		return p.append(ctx, kvDeletedKind, pair{Key: key})
	})
	return was, err
}

// append adds to the log. When that has ended meanwhile it adds to the next.
func (p *pairs) append(ctx context.Context, kind string, d pair) error {
	for {
		err := p.add(ctx, kind, d)
		if kernel.KindOf(err) != kernel.Closed {
			return err
		}
		if err := p.catchUp(ctx, true); err != nil {
			return err
		}
	}
}

func (p *pairs) add(ctx context.Context, kind string, d any) error {
	raw, err := json.Marshal(d)
	if err != nil {
		return err
	}
	_, err = p.session.Append(ctx, kernel.Draft{Kind: kind, Data: raw})
	return err
}

// catchUp takes in what is new in the log. It begins the log when begin says so;
// without one there are no pairs.
func (p *pairs) catchUp(ctx context.Context, begin bool) error {
	if p.session == nil {
		if err := p.attach(ctx, begin); err != nil || p.session == nil {
			return err
		}
	}
	if err := p.read(ctx); err != nil {
		return err
	}
	over, _, err := p.session.Closed(ctx)
	if err != nil {
		return err
	}
	if !over && begin && p.seen > int64(2*len(p.values)+kvDead) {
		if err := p.end(ctx); err != nil {
			return err
		}
		if over, _, err = p.session.Closed(ctx); err != nil {
			return err
		}
	}
	if !over {
		return nil
	}
	if follows, err := p.there(ctx, p.number+1); err != nil || !follows && !begin {
		return err // of a log that has ended the pairs are still to be read
	}
	return p.next(ctx)
}

// read takes in what is new in the log that p stands at.
func (p *pairs) read(ctx context.Context) error {
	rows, _, err := p.session.Scan(ctx, kernel.Where{From: p.seen + 1})
	for _, r := range rows {
		p.apply(r.Event)
	}
	return err
}

func (p *pairs) apply(ev *kernel.Event) {
	p.seen = ev.Seq
	switch ev.Kind {
	case kvBegunKind:
		p.begun = true
	case kvKeptKind:
		var d kept
		if json.Unmarshal(ev.Data, &d) == nil && !p.begun {
			maps.Copy(p.values, d.Values)
		}
	case kvSetKind, kvDeletedKind:
		var d pair
		if err := json.Unmarshal(ev.Data, &d); err != nil || d.Key == "" {
			return // what somebody else appended is no pair
		}
		if ev.Kind == kvDeletedKind {
			delete(p.values, d.Key)
		} else if d.Value != nil {
			p.values[d.Key] = d.Value
		}
	}
}

// end ends the log, so that nobody adds to it any more.
func (p *pairs) end(ctx context.Context) error {
	s, err := p.k.Resume(ctx, p.session.ID(), kernel.Resume{})
	if err == nil {
		err = s.Close(ctx, "", "most of it was out of date")
	}
	switch kernel.KindOf(err) {
	case kernel.Closed, kernel.Fenced:
		return nil // somebody else did, or is about to
	}
	return err
}

// next goes on from a log that has ended to the first one behind it that has
// not. One that ended before it held all that was kept is passed over.
func (p *pairs) next(ctx context.Context) error {
	var values map[string]json.RawMessage
	for over := true; over; {
		err := p.read(ctx) // what came before the end
		if err != nil {
			return err
		}
		if p.begun {
			values = p.values
		}
		if err = p.beginAt(ctx, p.number+1); err == nil {
			err = p.read(ctx)
		}
		if err == nil && !p.begun {
			err = p.keep(ctx, values)
		}
		if err != nil && kernel.KindOf(err) != kernel.Closed {
			return err
		}
		if over, _, err = p.session.Closed(ctx); err != nil {
			return err
		}
	}
	return p.read(ctx)
}

// keep puts the pairs of the log before into a new one.
func (p *pairs) keep(ctx context.Context, values map[string]json.RawMessage) error {
	part, size := map[string]json.RawMessage{}, 0
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if size += len(key) + len(values[key]); size > kvKeptSize && len(part) > 0 {
			if err := p.add(ctx, kvKeptKind, kept{part}); err != nil {
				return err
			}
			part, size = map[string]json.RawMessage{}, len(key)+len(values[key])
		}
		part[key] = values[key]
	}
	if err := p.add(ctx, kvKeptKind, kept{part}); err != nil {
		return err
	}
	return p.add(ctx, kvBegunKind, struct{}{})
}

// attach finds the last log that holds all that it keeps, or begins the first.
func (p *pairs) attach(ctx context.Context, begin bool) error {
	number := 1
	for ; ; number++ {
		follows, err := p.there(ctx, number)
		if err != nil {
			return err
		}
		if !follows {
			break
		}
	}
	if number == 1 && !begin {
		return nil
	}
	for number = max(number-1, 1); ; number-- {
		if err := p.beginAt(ctx, number); err != nil {
			return err
		}
		if err := p.read(ctx); err != nil || p.begun {
			return err
		}
	}
}

func (p *pairs) there(ctx context.Context, number int) (bool, error) {
	st, err := p.store()
	if err != nil {
		return false, err
	}
	head, err := headOf(ctx, st, kvSessionID(number))
	return head.Seq > 0, err
}

// beginAt attaches to a session, which it begins when it is not there; of two
// that begin it at once one does.
func (p *pairs) beginAt(ctx context.Context, number int) error {
	st, err := p.store()
	if err != nil {
		return err
	}
	id := kvSessionID(number)
	k := kernel.New(st, kernel.Options{Mint: func() string { return id }, Mask: p.mask.MaskJSON})
	if head, err := headOf(ctx, st, id); err != nil {
		return err
	} else if head.Seq == 0 {
		if _, err := k.Open(ctx, kernel.Open{Owner: "std.kv"}); err != nil && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	session, err := k.Attach(ctx, id)
	if err != nil {
		return err
	}
	p.k, p.session, p.number = k, session, number
	p.begun, p.seen, p.values = number == 1, 0, map[string]json.RawMessage{}
	return nil
}

// headOf gives a fault of the store the form that the kernel's have.
func headOf(ctx context.Context, st store.Store, id string) (store.Head, error) {
	head, err := st.Head(ctx, id)
	if err != nil && ctx.Err() == nil && kernel.KindOf(err) == "" {
		err = &kernel.Error{Kind: kernel.Storage, Method: "attach", Message: err.Error(), Err: err}
	}
	return head, err
}

func (p *pairs) store() (store.Store, error) {
	if p.open == nil {
		return SharedMem(), nil
	}
	return p.open("")
}
