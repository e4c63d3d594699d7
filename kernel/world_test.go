package kernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/knl-run/knl/kernel"
)

// world is a state machine of sessions that are opened, beaten, crashed,
// resumed and closed in any order. After every step it is held against what can
// be recounted from its logs.
type world struct {
	tape    *tape
	k       *kernel.Kernel
	n       int // kernels so far
	ids     []string
	handles map[string]*kernel.Session
	granted int64             // by the step that runs
	asked   map[string]string // session and beat → the canonical request that the model saw
	runs    map[string]int    // session and call → how often its effectful handler ran
	reruns  map[string]bool   // calls that were rerun on purpose
}

func newWorld() *world {
	w := &world{tape: newTape(), handles: map[string]*kernel.Session{}, asked: map[string]string{}, runs: map[string]int{}, reruns: map[string]bool{}}
	w.boot()
	return w
}

func (w *world) boot() {
	w.n++
	w.k = kernel.New(w.tape, kernel.Options{Now: ticking(), Mint: counting(fmt.Sprintf("k%d.", w.n))})
}

func (w *world) add(s *kernel.Session) {
	w.ids = append(w.ids, s.ID())
	w.handles[s.ID()] = s
}

// pick draws a session, after opening the first one.
func (w *world) pick(t *rapid.T) *kernel.Session {
	if len(w.ids) == 0 {
		w.open(t)
	}
	return w.handles[rapid.SampledFrom(w.ids).Draw(t, "session")]
}

// steps lists the actions of the machine.
func (w *world) steps() map[string]func(*rapid.T) {
	steps := map[string]func(*rapid.T){
		"open": w.open, "child": w.child, "append": w.append, "reserve": w.reserve, "spend": w.spend, "settle": w.settle,
		"beat": w.beat, "beat again": w.beat, "and again": w.beat, "resume": w.resume, "rerun": w.rerun, "crash": w.crash, "close": w.close,
	}
	for name, step := range steps {
		steps[name] = func(t *rapid.T) {
			before := w.worth(t)
			w.granted = 0
			step(t)
			require.LessOrEqual(t, w.worth(t), before+w.granted, "I2: units rise by a grant only")
		}
	}
	steps[""] = func(t *rapid.T) { requireSound(t, w.k) }
	return steps
}

func (w *world) open(t *rapid.T) {
	var o kernel.Open
	if rapid.Bool().Draw(t, "budget") {
		o.Grant = &kernel.Grant{Amount: rapid.Int64Range(0, 60).Draw(t, "amount"), Tag: "units"}
		w.granted += o.Grant.Amount
	}
	s, err := w.k.Open(ctxb, o)
	require.NoError(t, err)
	w.add(s)
}

func (w *world) child(t *rapid.T) {
	up := w.pick(t)
	take := &kernel.Take{Amount: rapid.Int64Range(0, 20).Draw(t, "amount"), Refund: rapid.Bool().Draw(t, "refund")}
	s, err := w.k.Open(ctxb, kernel.Open{Parent: up, Take: take})
	if err != nil {
		require.Contains(t, []kernel.Kind{kernel.Refused, kernel.Validation, kernel.Closed, kernel.Unsupported}, kernel.KindOf(err))
		return
	}
	w.add(s)
}

func (w *world) append(t *rapid.T) {
	s := w.pick(t)
	d := rapid.SampledFrom([]kernel.Draft{userSays("go on"), {Kind: "note", Data: raw(`{"n":1}`)},
		{Kind: kernel.ToolResult, Beat: "b1", Data: raw(`{"call_id":"a","ok":true,"result":"x"}`)},
		{Kind: kernel.ToolCall, Beat: "b1", Data: raw(`{"call_id":"call_0","name":"look"}`)},
		{Kind: kernel.LLMResponse, Data: raw(`{"content":[{"id":"a","input":{},"name":"look","type":"tool_use"}]}`)},
	}).Draw(t, "draft")
	if rapid.Bool().Draw(t, "attached") {
		var err error
		s, err = w.k.Attach(ctxb, s.ID())
		require.NoError(t, err)
	}
	if evs, err := s.Events(ctxb, 1); d.Kind == "note" && len(evs) > 0 { // a note on a beat of the past
		require.NoError(t, err)
		d.Beat = evs[rapid.IntRange(0, len(evs)-1).Draw(t, "at")].Beat
	}
	_, err := s.Append(ctxb, d)
	closedOr(t, err)
}

// closedOr wants no error but that the session has ended; one that was found
// ended after a crash has an attached handle.
func closedOr(t *rapid.T, err error, others ...kernel.Kind) {
	if err != nil {
		require.Contains(t, append(others, kernel.Closed, kernel.Unsupported), kernel.KindOf(err), "%v", err)
	}
}

func (w *world) reserve(t *rapid.T) {
	_, _, err := w.pick(t).Reserve(ctxb, rapid.Int64Range(0, 30).Draw(t, "n"))
	closedOr(t, err)
}

func (w *world) spend(t *rapid.T) {
	closedOr(t, w.pick(t).Spend(ctxb, rapid.Int64Range(0, 30).Draw(t, "n")))
}

func (w *world) settle(t *rapid.T) {
	closedOr(t, w.pick(t).Settle(ctxb, rapid.Int64Range(0, 40).Draw(t, "n")), kernel.Validation)
}

func (w *world) close(t *rapid.T) {
	closedOr(t, w.pick(t).Close(ctxb, "", ""))
}

func (w *world) resume(t *rapid.T) {
	id := w.pick(t).ID()
	var r kernel.Resume
	if rapid.Bool().Draw(t, "grant") {
		r.Grant = &kernel.Grant{Amount: rapid.Int64Range(0, 20).Draw(t, "amount"), Tag: "units"}
	}
	s, err := w.k.Resume(ctxb, id, r)
	if closedOr(t, err); err == nil {
		w.handles[id] = s
		if r.Grant != nil {
			w.granted += r.Grant.Amount
		}
	}
}

func (w *world) beat(t *rapid.T) {
	s := w.pick(t)
	ctx, cancel := context.WithCancel(ctxb)
	defer cancel()
	out := kernel.Beat(ctx, s, w.device(t, cancel), kernel.BeatOptions{})
	if out.Status == kernel.StatusError && out.Stage == kernel.StageState {
		require.Contains(t, []string{string(kernel.Closed), string(kernel.Unsupported)}, out.Detail.Kind, out.Detail.Message)
	}
}

func (w *world) rerun(t *rapid.T) {
	s := w.pick(t)
	in, err := s.Interrupted(ctxb)
	require.NoError(t, err)
	if in == nil || len(in.OpenCalls) == 0 {
		return
	}
	c := rapid.SampledFrom(in.OpenCalls).Draw(t, "call")
	w.reruns[s.ID()+"/"+c.CallID] = true
	out := kernel.Rerun(ctxb, s, w.device(t, func() {}), c.CallID)
	switch {
	case out.Status == kernel.StatusOK:
		require.True(t, !c.Started || c.Name != "send", "%s was started and is not idempotent", c.CallID)
	case out.Stage == kernel.StageState:
		require.Contains(t, []string{string(kernel.Closed), string(kernel.Unsupported), string(kernel.Refused), string(kernel.Validation)}, out.Detail.Kind)
	}
}

// crash loses batches from the end. Some crashes lose durable ones too, for what
// a law says of every prefix it says of any crash; but nobody can promise then
// that what was run is not run again.
func (w *world) crash(t *rapid.T) {
	n := len(w.tape.batches)
	keep := n - rapid.IntRange(0, min(n, 6)).Draw(t, "lost")
	if rapid.Bool().Draw(t, "kept its promise") {
		keep = max(keep, w.tape.durable)
	} else if keep < w.tape.durable {
		clear(w.runs)
	}
	w.tape = w.tape.crashed(keep)
	w.boot()
	var left []string
	for _, id := range w.ids {
		s, err := w.k.Resume(ctxb, id, kernel.Resume{})
		if err != nil && kernel.KindOf(err) == kernel.Closed {
			s, err = w.k.Attach(ctxb, id)
		}
		if err == nil {
			left, w.handles[id] = append(left, id), s
		} else {
			require.Equal(t, kernel.Validation, kernel.KindOf(err), "%v", err) // its opening was lost
		}
	}
	w.ids = left
	w.granted = 1 << 40 // what was spent may be back
	w.asked = map[string]string{}
}

// worth sums the balances of all sessions and what is reserved by hand, each
// recounted from the log, and holds the balances against the kernel's.
func (w *world) worth(t *rapid.T) (sum int64) {
	for _, id := range w.ids {
		s := w.handles[id]
		evs, err := s.Events(ctxb, 1)
		require.NoError(t, err)
		balance, held, granted := recount(evs)
		got, ok, err := s.Remaining(ctxb)
		require.NoError(t, err)
		require.Equal(t, granted, ok)
		require.Equal(t, balance, got, "session %s", id)
		sum += balance + held
	}
	return sum
}

// recount is the ledger in its simplest words.
func recount(evs []*kernel.Event) (balance, held int64, granted bool) {
	for _, ev := range evs {
		var d struct {
			Amount, Reserved, Returned int64
			Child                      string
		}
		_ = json.Unmarshal(ev.Data, &d)
		by := map[string]int64{kernel.BudgetGranted: d.Amount, kernel.BudgetReserved: -d.Amount, kernel.BudgetSpent: -d.Amount,
			kernel.BudgetSettled: d.Reserved - d.Amount, kernel.BudgetReturned: d.Amount, kernel.SessionClosed: -d.Returned}[ev.Kind]
		if granted = granted || ev.Kind == kernel.BudgetGranted; granted {
			balance = max(0, balance+by)
		}
		switch {
		case ev.Kind == kernel.BudgetReserved && ev.Beat == "" && d.Child == "":
			held = d.Amount
		case ev.Kind == kernel.BudgetSettled && ev.Beat == "":
			held = 0
		}
	}
	return balance, held, granted
}

// device draws a policy and a model that may do anything.
func (w *world) device(t *rapid.T, cancel func()) *kernel.Device {
	c := kernel.Config{LLM: w.model(t, cancel), Tools: w.tools(), Fold: someFold(t), Parallel: 2}
	if rapid.Bool().Draw(t, "cost") {
		n := rapid.Int64Range(0, 9).Draw(t, "price")
		c.Cost = func(context.Context, *kernel.Request) (int64, error) { return n, nil }
	}
	if rapid.Bool().Draw(t, "settle") {
		n := rapid.Int64Range(-1, 15).Draw(t, "cost")
		c.Settle = func(context.Context, *kernel.Request, *kernel.Answer) (int64, error) { return n, nil }
	}
	if rapid.IntRange(0, 3).Draw(t, "policy") == 0 {
		d := rapid.SampledFrom([]kernel.Decision{kernel.Run, kernel.Deny, "skip"}).Draw(t, "decision")
		c.Policy = func(context.Context, *kernel.Call, *kernel.Answer) (kernel.Decision, string, error) {
			return d, "", nil
		}
	}
	d, err := kernel.NewDevice(c)
	require.NoError(t, err)
	return d
}

// tools are those of the box, counting how often each effectful call runs; of
// a read nobody promises anything.
func (w *world) tools() map[string]kernel.Tool {
	box := toolbox()
	for name, tool := range box {
		inner := tool.Handler
		tool.Handler = func(ctx context.Context, args json.RawMessage, tc kernel.ToolContext) (json.RawMessage, error) {
			if tool.Effects != kernel.Read {
				w.runs[tc.IdempotencyKey]++
			}
			return inner(ctx, args, tc)
		}
		box[name] = tool
	}
	return box
}

// model draws one answer.
func (w *world) model(t *rapid.T, cancel func()) kernel.LLM {
	a := &kernel.Answer{StopReason: rapid.SampledFrom([]string{"", "end_turn", "tool_use", "max_tokens", "tired"}).Draw(t, "stop")}
	var blocks []string
	for range rapid.IntRange(0, 3).Draw(t, "calls") {
		blocks = append(blocks, use(rapid.SampledFrom([]string{"", "a", "b", "call_0"}).Draw(t, "id"),
			rapid.SampledFrom([]string{"look", "send", "put", "fail", "panic", "par", "nothing", "strict"}).Draw(t, "tool"),
			rapid.SampledFrom([]string{"", "{}", `{"n":1}`, `"x"`}).Draw(t, "args")))
	}
	a.Content = calls(append(blocks, `{"text":"hm","type":"text"}`)...).Content
	mode := rapid.IntRange(0, 9).Draw(t, "mode")
	return kernel.LLMFunc(func(_ context.Context, req *kernel.Request, o kernel.CallOptions) (*kernel.Answer, error) {
		w.asked[o.Session+"/"+o.Beat] = string(req.Canonical())
		switch mode {
		case 0:
			return nil, errors.New("no answer")
		case 1:
			return &kernel.Answer{Content: raw(`[{"type":"tool_use"}]`)}, nil
		case 2:
			a.Refused, a.RefusalKind = true, "model"
		case 3:
			cancel()
		case 4:
			panic("in the model")
		}
		return a, nil
	})
}

// someFold draws a fold: the whole log, a window, or one that edits what it
// sends.
func someFold(t *rapid.T) kernel.Fold {
	window := rapid.IntRange(0, 4).Draw(t, "window")
	seeded := rapid.Bool().Draw(t, "seeded")
	drop := rapid.IntRange(-1, 3).Draw(t, "drop")
	note := rapid.IntRange(-1, 5).Draw(t, "note")
	cutAt := rapid.IntRange(-1, 5).Draw(t, "edit")
	return func(ctx context.Context, log kernel.Log, d *kernel.Device) (*kernel.Request, error) {
		evs, err := log.Events(ctx, 1)
		if window > 0 && err == nil {
			evs, err = lastBeats(ctx, log, window, seeded)
		}
		if err != nil {
			return nil, err
		}
		req := kernel.FoldEvents(evs, d)
		m := slices.Clone(req.Messages)
		if drop >= 0 && drop < len(m) {
			m = slices.Delete(m, drop, drop+1)
		}
		if cutAt >= 0 && cutAt < len(m) {
			m[cutAt] = raw(` {"content":"cut","role":"user"}`)
		}
		if note >= 0 && note <= len(m) {
			m = slices.Insert(m, note, raw(`{"content":"a note","role":"user"}`))
		}
		req.Messages = m
		return req, nil
	}
}

// lastBeats answers the events of the last n beats and, if asked, the seed.
func lastBeats(ctx context.Context, log kernel.Log, n int, seeded bool) ([]*kernel.Event, error) {
	beats, evs, err := log.Beats(ctx, n, seeded)
	evs = slices.Clone(evs)
	for _, b := range beats {
		evs = append(evs, b.Events...)
	}
	return evs, err
}
