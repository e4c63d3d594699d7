package kernel

import (
	"context"

	"github.com/knl-run/knl/kernel/store"
)

// Prefix answers a store that holds the first keep[id] events of each session
// of st, or all of them where keep has no number: what a crash leaves of it.
func Prefix(ctx context.Context, st store.Store, keep map[string]int64) (*store.Mem, error) {
	out := store.NewMem()
	infos, err := st.Streams(ctx, "", 0)
	if err != nil {
		return nil, err
	}
	for _, in := range infos {
		n, cut := keep[in.Stream]
		if !cut {
			n = in.Head.Seq
		}
		if n == 0 {
			continue
		}
		if err := copyPrefix(ctx, out, st, in.Stream, n); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func copyPrefix(ctx context.Context, out *store.Mem, from store.Store, id string, n int64) error {
	k := New(from, Options{})
	evs, err := k.events(ctx, id, 1, n)
	if err != nil {
		return err
	}
	p := &part{id: id}
	a := store.Append{Stream: id}
	b := store.Batch{}
	for _, ev := range evs {
		p.st.apply(ev)
		rec, blobs := ev.encode()
		a.Records, a.Marks = append(a.Records, rec), p.mark(a.Marks, ev)
		b.Blobs = append(b.Blobs, blobs...)
	}
	a.Parent, a.State = p.st.Parent, p.st.encode()
	b.Appends = []store.Append{a}
	_, err = out.Apply(ctx, &b, store.Now)
	return err
}

// Encoded answers the record of an event and its payloads, and Decoded reads
// one back.
func Encoded(ev *Event) (store.Record, []store.Blob) { return ev.encode() }

func Decoded(r store.Record, blob func([32]byte) ([]byte, error)) (*Event, error) {
	return decodeEvent(r, blob)
}

// Held answers how many decoded events and beats a handle keeps in memory.
func (s *Session) Held() (events, beats int) { return len(s.tail.events), len(s.tail.groups) }

// Kernel answers the kernel of a handle.
func (s *Session) Kernel() *Kernel { return s.k }
