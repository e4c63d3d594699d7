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

// kvSession is the session whose log is the pairs of a store. Its id sorts in
// front of every minted one, so that the newest session is never this.
const kvSession = ".kv"

// The events of that log.
const (
	kvSetKind     = "kv_set"     // data {key, value}
	kvDeletedKind = "kv_deleted" // data {key}
)

// pairs are the keys and values of one store, folded from the log of their
// session: durable, and shared with other processes, as every log is. Each
// reading takes in what has been appended since the one before.
type pairs struct {
	open func(spec string) (store.Store, error) // nil: the memory of this process
	mask *Masker

	mu      sync.Mutex
	session *kernel.Session // attached; nil while there is none
	seen    int64
	values  map[string]json.RawMessage
}

// pair is the data of both kinds of events.
type pair struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value,omitempty"`
}

func (p *pairs) get(ctx context.Context, key string) (json.RawMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.catchUp(ctx, false)
	return p.values[key], err
}

func (p *pairs) list(ctx context.Context, prefix string) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.catchUp(ctx, false); err != nil {
		return nil, err
	}
	keys := slices.Sorted(maps.Keys(p.values))
	return slices.DeleteFunc(keys, func(k string) bool { return !strings.HasPrefix(k, prefix) }), nil
}

func (p *pairs) set(ctx context.Context, key string, value json.RawMessage) error {
	if len(value) > valueLimit {
		return &stdError{kind: overSize, text: fmt.Sprintf("%q: got %d bytes as JSON, want at most %d: keep it in a file and its path here", key, len(value), valueLimit)}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.catchUp(ctx, true); err != nil {
		return err
	}
	if _, known := p.values[key]; !known && len(p.values) >= pairLimit {
		return &stdError{kind: overSize, text: fmt.Sprintf("%q: there are %d keys already, delete some", key, pairLimit)}
	}
	return p.append(ctx, kvSetKind, pair{key, value})
}

func (p *pairs) remove(ctx context.Context, key string) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.catchUp(ctx, false); err != nil {
		return false, err
	}
	if _, known := p.values[key]; !known {
		return false, nil
	}
	return true, p.append(ctx, kvDeletedKind, pair{Key: key})
}

func (p *pairs) append(ctx context.Context, kind string, d pair) error {
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
	rows, _, err := p.session.Scan(ctx, kernel.Where{From: p.seen + 1})
	for _, r := range rows {
		p.apply(r.Event)
	}
	return err
}

func (p *pairs) apply(ev *kernel.Event) {
	p.seen = ev.Seq
	var d pair
	if err := json.Unmarshal(ev.Data, &d); err != nil || d.Key == "" {
		return // what somebody else appended is no pair
	}
	switch {
	case ev.Kind == kvSetKind && d.Value != nil:
		p.values[d.Key] = d.Value
	case ev.Kind == kvDeletedKind:
		delete(p.values, d.Key)
	}
}

// attach finds the session, or begins it; of two that begin it at once one does.
func (p *pairs) attach(ctx context.Context, begin bool) error {
	st, err := p.store()
	if err != nil {
		return err
	}
	k := kernel.New(st, kernel.Options{Mint: func() string { return kvSession }, Mask: p.mask.MaskJSON})
	head, err := st.Head(ctx, kvSession)
	if err != nil || head.Seq == 0 && !begin {
		return err
	}
	if head.Seq == 0 {
		if _, err := k.Open(ctx, kernel.Open{Owner: "std.kv"}); err != nil && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	p.session, err = k.Attach(ctx, kvSession)
	p.seen, p.values = 0, map[string]json.RawMessage{}
	return err
}

func (p *pairs) store() (store.Store, error) {
	if p.open == nil {
		return SharedMem(), nil
	}
	return p.open("")
}
