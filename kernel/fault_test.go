package kernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/store"
)

// faulty is a tape whose n-th call answers a fault, and with still set every
// call after it too: a disk that hiccups, and a disk that is gone.
type faulty struct {
	*tape
	at    int // 0: never
	still bool
	calls int
	met   string // the call that failed first
}

var errDisk = errors.New("the disk is on fire")

func (f *faulty) fail(what string) error {
	f.calls++
	if f.at == 0 || f.calls < f.at || (f.calls > f.at && !f.still) {
		return nil
	}
	if f.met == "" {
		f.met = what
	}
	return errDisk
}

func (f *faulty) Apply(ctx context.Context, b *store.Batch, fl store.Flush) (store.Commit, error) {
	if err := f.fail("apply"); err != nil {
		return nil, err
	}
	c, err := f.tape.Apply(ctx, b, fl)
	if err != nil {
		return nil, err
	}
	return &faultyCommit{f, c}, nil
}

type faultyCommit struct {
	f *faulty
	c store.Commit
}

func (c *faultyCommit) Wait(ctx context.Context) error {
	if err := c.f.fail("wait"); err != nil {
		return err
	}
	return c.c.Wait(ctx)
}

func (f *faulty) Head(ctx context.Context, stream string) (store.Head, error) {
	if err := f.fail("head"); err != nil {
		return store.Head{}, err
	}
	return f.tape.Head(ctx, stream)
}

func (f *faulty) Records(ctx context.Context, stream string, from, to int64) iter.Seq2[store.Record, error] {
	if err := f.fail("records"); err != nil {
		return func(yield func(store.Record, error) bool) { yield(store.Record{}, err) }
	}
	return f.tape.Records(ctx, stream, from, to)
}

func (f *faulty) Groups(ctx context.Context, stream string, n int) ([]store.Group, error) {
	if err := f.fail("groups"); err != nil {
		return nil, err
	}
	return f.tape.Groups(ctx, stream, n)
}

func (f *faulty) FindGroup(ctx context.Context, stream, group string) (int64, error) {
	if err := f.fail("findgroup"); err != nil {
		return 0, err
	}
	return f.tape.FindGroup(ctx, stream, group)
}

func (f *faulty) Marked(ctx context.Context, stream, name string) (bool, error) {
	if err := f.fail("marked"); err != nil {
		return false, err
	}
	return f.tape.Marked(ctx, stream, name)
}

func (f *faulty) Blob(ctx context.Context, h [32]byte) ([]byte, error) {
	if err := f.fail("blob"); err != nil {
		return nil, err
	}
	return f.tape.Blob(ctx, h)
}

func (f *faulty) Children(ctx context.Context, parent string) ([]string, error) {
	if err := f.fail("children"); err != nil {
		return nil, err
	}
	return f.tape.Children(ctx, parent)
}

// script is the run that faults are put into: it goes on whatever it meets.
type script struct {
	fenced bool           // a resume was written, and its answer lost
	runs   map[string]int // effectful call → how often its handler ran
	bad    []string       // what was neither right nor a fault
	told   []string       // beats whose Outcome was ok, with the calls that they told of
}

func (r *script) device(window bool) *kernel.Device {
	count := func(_ context.Context, _ json.RawMessage, tc kernel.ToolContext) (json.RawMessage, error) {
		r.runs[tc.IdempotencyKey]++
		return raw(`"done"`), nil
	}
	c := kernel.Config{Tools: map[string]kernel.Tool{
		"look": {Effects: kernel.Read, Handler: gives(`"seen"`)}, "send": {Handler: count}}}
	if window {
		c.Fold = func(ctx context.Context, log kernel.Log, d *kernel.Device) (*kernel.Request, error) {
			evs, err := lastBeats(ctx, log, 2, true)
			if err != nil {
				return nil, err
			}
			return kernel.FoldEvents(evs, d), nil
		}
	}
	n := 0
	c.LLM = kernel.LLMFunc(func(context.Context, *kernel.Request, kernel.CallOptions) (*kernel.Answer, error) {
		n++
		return calls(use(fmt.Sprintf("c%d", n), "look", "{}"), use(fmt.Sprintf("d%d", n), "send", "{}")), nil
	})
	d, err := kernel.NewDevice(c)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return d
}

// stateFault notes an error that is no fault of the store's.
func (r *script) stateFault(what string, err error) bool {
	if err != nil && kernel.KindOf(err) != kernel.Storage && !(r.fenced && kernel.KindOf(err) == kernel.Fenced) {
		r.bad = append(r.bad, fmt.Sprintf("%s: %v", what, err))
	}
	return err != nil
}

func (r *script) run(k *kernel.Kernel) (id string) {
	s, err := k.Open(ctxb, kernel.Open{Grant: &kernel.Grant{Amount: 50}})
	if r.stateFault("open", err) {
		return ""
	}
	id = s.ID()
	_, err = s.Append(ctxb, userSays("hello"))
	r.stateFault("append", err)
	d, w := r.device(false), r.device(true)
	w.LLM = d.LLM
	for i := range 4 {
		if i == 2 {
			next, err := k.Resume(ctxb, id, kernel.Resume{})
			if r.fenced = r.stateFault("resume", err); !r.fenced {
				s = next
			}
			c, err := k.Open(ctxb, kernel.Open{Parent: s, Take: &kernel.Take{Amount: 5, Refund: true}})
			if !r.stateFault("child", err) {
				r.stateFault("close child", c.Close(ctxb, "", ""))
			}
		}
		r.beat(s, map[bool]*kernel.Device{false: d, true: w}[i%2 == 1])
		_, _, err := s.Reserve(ctxb, 1)
		r.stateFault("reserve", err)
		_, _, err = s.Remaining(ctxb)
		r.stateFault("remaining", err)
	}
	return id
}

func (r *script) beat(s *kernel.Session, d *kernel.Device) {
	out := kernel.Beat(ctxb, s, d, kernel.BeatOptions{})
	switch {
	case out.Status == kernel.StatusOK:
		for _, run := range out.Reply.Tools {
			r.told = append(r.told, run.CallID)
		}
	case out.Status != kernel.StatusError || out.Stage != kernel.StageState:
		r.bad = append(r.bad, outcomeText(out))
	case out.Detail.Kind != string(kernel.Storage) && out.Detail.Kind != string(kernel.Fenced):
		r.bad = append(r.bad, outcomeText(out))
	}
}

// TestStoreFaults puts a fault at every call to the store in turn: whatever
// meets it is told so as error/state, what was told ok is in the log, and on a
// healthy store the session goes on as if it had been killed there.
func TestStoreFaults(t *testing.T) {
	dry := &faulty{tape: newTape()}
	r := &script{runs: map[string]int{}}
	r.run(newKernel(dry))
	require.Empty(t, r.bad)
	require.Len(t, r.told, 8)
	met := map[string]int{}
	for _, still := range []bool{false, true} {
		for at := 1; at <= dry.calls; at++ {
			f := &faulty{tape: newTape(), at: at, still: still}
			afterFault(t, f)
			met[f.met]++
		}
	}
	require.Subset(t, []string{"apply", "wait", "head", "records", "groups", "findgroup", "marked", "children"}, keysOf(met))
	require.Greater(t, met["apply"], 20)
	require.Greater(t, met["wait"], 10)
}

func keysOf(m map[string]int) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	return out
}

func afterFault(t *testing.T, f *faulty) {
	at := fmt.Sprintf("fault %d (still %t)", f.at, f.still)
	r := &script{runs: map[string]int{}}
	id := r.run(newKernel(f))
	require.Empty(t, r.bad, "%s, a %s", at, f.met)
	if id == "" {
		return
	}
	k := kernel.New(f.tape, kernel.Options{Now: ticking(), Mint: counting("after")})
	s, err := k.Resume(ctxb, id, kernel.Resume{})
	require.NoError(t, err, at)
	r.beat(s, r.device(false))
	require.Empty(t, r.bad, "%s, a %s", at, f.met)
	requireSound(t, k)
	evs := logOf(t, s)
	requireClosedOnce(t, evs)
	require.Empty(t, unpaired(kernel.FoldEvents(evs, nil)))
	results := map[string]bool{}
	for _, ev := range evs {
		if ev.Kind == kernel.ToolResult && field(ev, "ok") == "true" {
			results[field(ev, "call_id")] = true
		}
	}
	for _, id := range r.told {
		require.True(t, results[string(jsonOf(id))], "%s: %s was told ok and is not in the log", at, id)
	}
	for key, n := range r.runs {
		require.Equal(t, 1, n, "%s: %s", at, key)
	}
}

// requireClosedOnce wants every call of every reply to have an id of its own and
// one result.
func requireClosedOnce(t *testing.T, evs []*kernel.Event) {
	t.Helper()
	asked, closed := map[string]int{}, map[string]int{}
	for _, ev := range evs {
		switch ev.Kind {
		case kernel.LLMResponse:
			for _, b := range blocksOf(json.RawMessage(field(ev, "content"))) {
				if b.Type == "tool_use" {
					asked[string(jsonOf(b.ID))]++
				}
			}
		case kernel.ToolResult:
			closed[field(ev, "call_id")]++
		}
	}
	require.Equal(t, asked, closed)
	for id, n := range asked {
		require.Equal(t, 1, n, "the id %s is used again", id)
	}
}
