package kernel

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/knl-run/knl/kernel/store"
)

// Session is a handle on one session: of its driver, who may beat it, or an
// attached one, which reads and appends. Its methods may be called from any
// goroutine; they take turns.
type Session struct {
	k        *Kernel
	id       string
	scope    string
	owner    string
	parent   string
	attached bool
	epoch    int64 // the driver epoch this handle was opened under
	beating  chan struct{}

	mu     sync.Mutex
	head   store.Head
	st     state
	closed bool // by this handle
	tail   tail
	last   *sentRequest // the request that the next one is stored against

	sown   []*Event          // the events before the first beat, once they were read
	newest map[string]newest // by the kinds that were asked for

	cookedSeq int64 // the request rebuilt last, and its messages
	cooked    []json.RawMessage
}

// Open says how a session begins.
type Open struct {
	Owner  string          // "": "anon", or the parent's
	Grant  *Grant          // a budget from outside
	Parent *Session        // with Take: the session that the budget comes from
	Take   *Take           // a budget moved from Parent
	Meta   json.RawMessage // labels: a flat object
}

// Grant is a budget given from outside.
type Grant struct {
	Amount int64
	Tag    string // names the unit
	Desc   string
}

// Take is a budget moved from a parent to its child.
type Take struct {
	Amount int64
	Tag    string // "": the parent's
	Refund bool   // what is left goes back when the child closes
}

// Open begins a session and answers its driver's handle.
func (k *Kernel) Open(ctx context.Context, o Open) (*Session, error) {
	const method = "open"
	if err := o.check(); err != nil {
		return nil, err
	}
	meta, err := k.stampMeta(o.Meta)
	if err != nil {
		return nil, faultf(Validation, method, "meta: %s", err)
	}
	child := &part{id: k.mint()}
	opened := map[string]any{"scope_id": k.mint(), "owner": o.Owner}
	if o.Owner == "" {
		opened["owner"] = "anon"
	}
	if o.Parent != nil {
		err = k.openChild(ctx, o, child, opened, meta)
	} else {
		child.events = []*Event{kernelEvent(SessionOpened, "", opened)}
		child.events[0].Meta = meta
		if g := o.Grant; g != nil {
			child.events = append(child.events, g.event(opened["scope_id"]))
		}
		err = wrap(method, k.apply(ctx, barrier, child))
	}
	if err != nil {
		return nil, err
	}
	return k.handle(child.id, child.head, child.st, child.events), nil
}

func (o *Open) check() error {
	const method = "open"
	switch {
	case o.Owner == "anon" || o.Owner == "system":
		return faultf(Validation, method, "owner %q is the kernel's own, want another name", o.Owner)
	case o.Grant != nil && o.Take != nil:
		return faultf(Validation, method, "budget has both an amount and from_parent, want one")
	case o.Take != nil && o.Parent == nil:
		return faultf(Validation, method, "budget takes from_parent but no parent was given")
	case o.Parent != nil && o.Take == nil:
		return faultf(Validation, method, "a child needs budget = { from_parent = n }")
	case o.Take != nil:
		return whole(method, o.Take.Amount)
	case o.Grant != nil:
		return whole(method, o.Grant.Amount)
	}
	return nil
}

func (g *Grant) event(scope any) *Event {
	fields := map[string]any{"scope_id": scope, "amount": g.Amount}
	if g.Tag != "" {
		fields["tag"] = g.Tag
	}
	if g.Desc != "" {
		fields["desc"] = g.Desc
	}
	return kernelEvent(BudgetGranted, "", fields)
}

// openChild moves a budget from the parent's ledger to a new session in one
// write, decided on the parent's ledger as it is then.
func (k *Kernel) openChild(ctx context.Context, o Open, child *part, opened map[string]any, meta json.RawMessage) error {
	const method = "open"
	parent := o.Parent
	switch {
	case parent.attached:
		return parent.attachedFault(method)
	case parent.k.store != k.store:
		return faultf(Validation, method, "parent %s is in another store, want the same one", parent.id)
	}
	var refusal error
	err := again(ctx, method, func() error {
		head, st, err := k.load(ctx, method, parent.id)
		if err == nil {
			err = parent.allows(method, &st)
		}
		if err != nil {
			return err
		}
		if !st.Granted {
			return faultf(Validation, method, "parent %s has no budget to take from: grant one with open or resume", parent.id)
		}
		up := &part{id: parent.id, head: head, st: st}
		if st.Balance < o.Take.Amount {
			refusal = faultf(Refused, method, "parent %s has %d left, want %d", parent.id, st.Balance, o.Take.Amount)
			up.events = []*Event{st.ledgerEvent(BudgetRefused, "", map[string]any{
				"amount": o.Take.Amount, "remaining": st.Balance, "child": child.id})}
			return k.apply(ctx, barrier, up)
		}
		refusal = nil
		child.open(o, up, opened, meta)
		return k.apply(ctx, barrier, up, child)
	})
	if err == nil {
		err = refusal
	}
	return err
}

// open fills a child's first events and the parent's side of the move.
func (child *part) open(o Open, up *part, opened map[string]any, meta json.RawMessage) {
	child.parent, child.head, child.st = up.id, store.Head{}, state{}
	opened["parent"] = up.id
	if o.Owner == "" {
		opened["owner"] = up.st.Owner
	}
	if o.Take.Refund {
		opened["refund"] = true
	}
	tag := o.Take.Tag
	if tag == "" {
		tag = up.st.Tag
	}
	granted := map[string]any{"scope_id": opened["scope_id"], "amount": o.Take.Amount, "parent": up.id}
	if tag != "" {
		granted["tag"] = tag
	}
	child.events = []*Event{kernelEvent(SessionOpened, "", opened), kernelEvent(BudgetGranted, "", granted)}
	child.events[0].Meta = meta
	up.events = []*Event{up.st.ledgerEvent(BudgetReserved, "", map[string]any{"amount": o.Take.Amount, "child": child.id})}
}

func (k *Kernel) handle(id string, head store.Head, st state, events []*Event) *Session {
	s := &Session{k: k, id: id, scope: st.Scope, owner: st.Owner, parent: st.Parent,
		head: head, st: st, epoch: st.Epoch, beating: make(chan struct{}, 1)}
	s.tail.reset(head.Seq + 1 - int64(len(events)))
	for _, ev := range events {
		s.tail.add(ev)
	}
	return s
}

// Attach answers a handle that reads a session and appends to it beside its
// driver.
func (k *Kernel) Attach(ctx context.Context, id string) (*Session, error) {
	head, st, err := k.load(ctx, "attach", id)
	if err != nil {
		return nil, err
	}
	s := k.handle(id, head, st, nil)
	s.attached = true
	return s, nil
}

// ID answers the session's id.
func (s *Session) ID() string { return s.id }

// ScopeID answers the id of the authority the session is written under.
func (s *Session) ScopeID() string { return s.scope }

// Owner answers the principal; "anon" when none was named.
func (s *Session) Owner() string { return s.owner }

// Parent answers the id of the parent, or "".
func (s *Session) Parent() string { return s.parent }

// Epoch answers the driver epoch this handle was opened under.
func (s *Session) Epoch() int64 { return s.epoch }

// Attached says whether the handle only reads and appends.
func (s *Session) Attached() bool { return s.attached }

// Append records one event of a caller's kind and answers its seq.
func (s *Session) Append(ctx context.Context, d Draft) (int64, error) {
	ev, err := d.check("append")
	if err != nil {
		return 0, err
	}
	err = s.write(ctx, "append", barrier, func(st *state) ([]*Event, error) {
		if st.Open != "" && ev.Beat == st.Open && beatKind(ev.Kind) {
			return nil, faultf(Validation, "append", "beat %s is running and records its %s itself", ev.Beat, ev.Kind)
		}
		return []*Event{ev}, nil
	})
	if err != nil {
		return 0, err
	}
	return ev.Seq, nil
}

func beatKind(kind string) bool {
	switch kind {
	case LLMRequest, LLMResponse, LLMCallFailed, ToolCall, ToolResult:
		return true
	}
	return false
}

func (s *Session) attachedFault(method string) error {
	return faultf(Unsupported, method, "this handle is attached to session %s and does not drive it: resume it to drive", s.id)
}

// allows is may for a caller that does not hold s.mu.
func (s *Session) allows(method string, st *state) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.may(method, st)
}

// may says whether this handle may write to a session in state st. s.mu is
// held.
func (s *Session) may(method string, st *state) error {
	switch {
	case !s.attached && st.Epoch != s.epoch:
		return faultf(Fenced, method, "session %s is driven under epoch %d since, this handle has %d: nothing was written", s.id, st.Epoch, s.epoch)
	case s.closed || st.Closed > 0:
		return faultf(Closed, method, "session %s has ended: open a new one", s.id)
	}
	return nil
}

// drive is write for what only the driver may do.
func (s *Session) drive(ctx context.Context, method string, f flush, decide func(*state) ([]*Event, error)) ([]*Event, error) {
	if s.attached {
		return nil, s.attachedFault(method)
	}
	var out []*Event
	err := s.write(ctx, method, f, func(st *state) (evs []*Event, err error) {
		out, err = decide(st)
		return out, err
	})
	return out, err
}

// write records what decide answers on the session as it stands, in one batch;
// decide runs again when somebody else wrote in between.
func (s *Session) write(ctx context.Context, method string, f flush, decide func(*state) ([]*Event, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return again(ctx, method, func() error {
		if err := s.catchUp(ctx); err != nil {
			return err
		}
		if err := s.may(method, &s.st); err != nil {
			return err
		}
		p := &part{id: s.id, head: s.head, st: s.st}
		var err error
		if p.events, err = decide(&p.st); err != nil || len(p.events) == 0 {
			return err
		}
		if err := s.k.apply(ctx, f, p); err != nil {
			return err
		}
		s.took(p)
		return nil
	})
}

func (s *Session) took(p *part) {
	s.head, s.st = p.head, p.st
	for _, ev := range p.events {
		s.tail.add(ev)
	}
}

// catchUp reads what others wrote since this handle last looked.
func (s *Session) catchUp(ctx context.Context) error {
	head, err := s.k.store.Head(ctx, s.id)
	if err != nil || head.Seq == s.head.Seq {
		return err
	}
	st, err := decodeState(s.id, head.State)
	if err != nil {
		return err
	}
	news, err := s.k.events(ctx, s.id, s.head.Seq+1, head.Seq)
	if err != nil {
		return err
	}
	s.head, s.st = head, st
	for _, ev := range news {
		s.tail.add(ev)
	}
	return nil
}

// now answers the state as it stands.
func (s *Session) now(ctx context.Context, method string) (state, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.catchUp(ctx)
	return s.st, wrap(method, err)
}

// usable is now, and an error when this handle may not write.
func (s *Session) usable(ctx context.Context, method string) (state, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.catchUp(ctx)
	if err == nil {
		err = s.may(method, &s.st)
	}
	return s.st, wrap(method, err)
}

// Closed says whether the session has ended, and when (milliseconds).
func (s *Session) Closed(ctx context.Context) (bool, int64, error) {
	st, err := s.now(ctx, "closed")
	return st.Closed > 0, st.Closed, err
}

// Len answers the number of recorded events.
func (s *Session) Len(ctx context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.catchUp(ctx)
	return s.head.Seq, wrap("len", err)
}

// BeatCount answers the number of beats that were begun, however long the log is.
func (s *Session) BeatCount(ctx context.Context) (int64, error) {
	st, err := s.now(ctx, "len")
	return st.Beats, err
}

// Watch answers a channel that gets a token after the session moved; it closes
// when ctx ends.
func (s *Session) Watch(ctx context.Context) <-chan struct{} { return s.k.store.Watch(ctx, s.id) }
