package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/knl-run/knl/kernel/store"
	"github.com/oklog/ulid/v2"
)

// Kernel opens sessions on one store. It owns no goroutine and reads no clock
// but the one it is given.
type Kernel struct {
	store  store.Store
	now    func() time.Time
	mint   func() string
	strict bool
	stamp  map[string]string
	mask   func(json.RawMessage) (json.RawMessage, bool)
}

// Options says how a Kernel is set up; the zero value is ready for use.
type Options struct {
	Now    func() time.Time  // wall clock of events; nil: time.Now
	Mint   func() string     // makes unique, time-ordered ids; nil: ULIDs
	Strict bool              // wait for the disk at every record
	Stamp  map[string]string // laid into the meta of every session_opened and driver_changed

	// Mask hides what must be neither recorded nor told to a model: of valid JSON it
	// answers valid JSON, and whether it changed anything. nil: nothing is hidden.
	Mask func(json.RawMessage) (json.RawMessage, bool)
}

// New answers a Kernel on st. The caller closes st.
func New(st store.Store, o Options) *Kernel {
	k := &Kernel{store: st, now: o.Now, mint: o.Mint, strict: o.Strict, stamp: o.Stamp, mask: o.Mask}
	if k.now == nil {
		k.now = time.Now
	}
	if k.mint == nil {
		k.mint = mintULID()
	}
	return k
}

// mintULID answers a source of ids that sort by the order of their making.
func mintULID() func() string {
	var mu sync.Mutex
	entropy := ulid.Monotonic(ulid.DefaultEntropy(), 0)
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		id, err := ulid.New(ulid.Now(), entropy)
		if err != nil { // the millisecond's counter is used up
			id = ulid.Make()
		}
		return id.String()
	}
}

// NewBeatID answers a fresh beat id. Ids sort by the time of their making.
func (k *Kernel) NewBeatID() string { return k.mint() }

// Store answers the store that k was made on.
func (k *Kernel) Store() store.Store { return k.store }

// part is what one write does to one stream: events decided on a head.
type part struct {
	id     string
	head   store.Head
	st     state
	parent string
	events []*Event
}

// flush says how long a write waits.
type flush int

const (
	lazy    flush = iota // nothing outside depends on it yet
	barrier              // everything recorded so far is on disk when it returns
)

// errMoved says that a decision was made on a head that has moved since.
var errMoved = store.ErrConflict

const (
	maxTries = 1000                 // how often a decision is made again because others wrote: some 5 s
	maxPause = 5 * time.Millisecond // between two tries
)

// apply writes the parts in one atomic batch and moves their heads.
func (k *Kernel) apply(ctx context.Context, f flush, parts ...*part) error {
	var b store.Batch
	now := k.now().UnixMilli()
	for _, p := range parts {
		a := store.Append{Stream: p.id, Expect: p.head.Seq, Parent: p.parent}
		for i, ev := range p.events {
			k.hide(ev)
			ev.Seq, ev.EpochMS = p.head.Seq+int64(i)+1, now
			p.st.apply(ev)
			rec, blobs := ev.encode()
			a.Records = append(a.Records, rec)
			b.Blobs = append(b.Blobs, blobs...)
			a.Marks = p.mark(a.Marks, ev)
		}
		a.State = p.st.encode()
		b.Appends = append(b.Appends, a)
	}
	kind := store.Lazy
	if f == barrier || k.strict {
		kind = store.Now
	}
	commit, err := k.store.Apply(ctx, &b, kind)
	if err != nil {
		return err
	}
	for i, p := range parts {
		p.head = store.Head{Seq: p.head.Seq + int64(len(p.events)), State: b.Appends[i].State}
	}
	if kind == store.Now {
		return commit.Wait(context.WithoutCancel(ctx))
	}
	return nil
}

// mark adds the call ids that ev takes: those of a reply, and that of a
// caller's tool_call, which no reply has named. An id that is too long to be
// kept is never given to a call.
func (p *part) mark(marks []string, ev *Event) []string {
	var ids []string
	switch {
	case ev.Kind == LLMResponse:
		ids = ev.fold().calls
	case ev.Kind == ToolCall && ev.Beat != p.st.Open:
		ids = []string{textOf(fieldOf(ev.Data, "call_id"))}
	}
	for _, id := range ids {
		if id != "" && len(id) <= store.MaxName {
			marks = append(marks, id)
		}
	}
	return marks
}

// again runs try until it answers something else than errMoved.
func again(ctx context.Context, method string, try func() error) error {
	for n := range maxTries {
		err := try()
		if !errors.Is(err, errMoved) {
			return wrap(method, err)
		}
		if n < 4 {
			continue
		}
		select {
		case <-ctx.Done():
			return wrap(method, context.Cause(ctx))
		case <-time.After(rand.N(min(time.Duration(n)*400*time.Microsecond, 2*maxPause))):
		}
	}
	return faultf(Busy, method, "%d other writes came first each time: try again", maxTries)
}

// load reads the head of a stream and its state.
func (k *Kernel) load(ctx context.Context, method, id string) (store.Head, state, error) {
	head, err := k.store.Head(ctx, id)
	if err != nil {
		return head, state{}, wrap(method, err)
	}
	if head.Seq == 0 {
		return head, state{}, faultf(Validation, method, "session %q is not in this store: knl sessions lists what is", id)
	}
	st, err := decodeState(id, head.State)
	return head, st, wrap(method, err)
}

// event decodes one record.
func (k *Kernel) event(ctx context.Context, r store.Record) (*Event, error) {
	return decodeEvent(r, func(h [32]byte) ([]byte, error) {
		b, err := k.store.Blob(ctx, h)
		if errors.Is(err, store.ErrNotFound) {
			err = fmt.Errorf("missing: %w", store.ErrCorrupt)
		}
		return b, err
	})
}

// events reads from ≤ seq ≤ to of a stream; to 0 means the end.
func (k *Kernel) events(ctx context.Context, id string, from, to int64) ([]*Event, error) {
	var out []*Event
	for r, err := range k.store.Records(ctx, id, from, to) {
		if err != nil {
			return out, err
		}
		ev, err := k.event(ctx, r)
		if err != nil {
			return out, fmt.Errorf("session %s: %w", id, err)
		}
		out = append(out, ev)
	}
	return out, nil
}

// stampMeta answers a caller's meta with the kernel's stamp laid over it.
func (k *Kernel) stampMeta(meta json.RawMessage) (json.RawMessage, error) {
	var none string
	clean, err := admitMeta(meta, &none, 0)
	if err != nil {
		return nil, err
	}
	if none != "" {
		return nil, errors.New("meta.beat: an opening belongs to no beat")
	}
	if len(k.stamp) == 0 {
		return clean, nil
	}
	fields, err := objectFields(clean)
	if err != nil {
		return nil, err
	}
	for name, v := range k.stamp {
		fields[name] = quote(v)
	}
	return appendObject(nil, fields), nil
}
