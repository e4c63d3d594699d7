package kernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
)

// looks is a device whose model asks for one read tool every time.
func looks(t testing.TB) *kernel.Device {
	return device(t, kernel.Config{Tools: toolbox(), LLM: kernel.LLMFunc(
		func(context.Context, *kernel.Request, kernel.CallOptions) (*kernel.Answer, error) {
			return calls(use("a", "look", ""), use("b", "send", "")), nil
		})})
}

func opened(t testing.TB, k *kernel.Kernel) *kernel.Session {
	s, err := k.Open(ctxb, kernel.Open{Grant: &kernel.Grant{Amount: 100_000, Tag: "units"}})
	require.NoError(t, err)
	_, err = s.Append(ctxb, userSays("hello"))
	require.NoError(t, err)
	return s
}

func TestConcurrentBeatsTakeTurns(t *testing.T) {
	k, _ := newMem(t)
	s := opened(t, k)
	var in, most atomic.Int32
	d := device(t, kernel.Config{LLM: kernel.LLMFunc(func(context.Context, *kernel.Request, kernel.CallOptions) (*kernel.Answer, error) {
		most.Store(max(most.Load(), in.Add(1)))
		defer in.Add(-1)
		time.Sleep(time.Millisecond)
		return says("hi"), nil
	})})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			out := kernel.Beat(ctxb, s, d, kernel.BeatOptions{})
			if out.Status != kernel.StatusOK {
				t.Error(outcomeText(out))
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, most.Load())
	requireSound(t, k)
}

func TestBeatWaitsNoLongerThanItsContext(t *testing.T) {
	k, _ := newMem(t)
	s := opened(t, k)
	started, release := make(chan struct{}), make(chan struct{})
	d := device(t, kernel.Config{LLM: kernel.LLMFunc(func(context.Context, *kernel.Request, kernel.CallOptions) (*kernel.Answer, error) {
		close(started)
		<-release
		return says("hi"), nil
	})})
	var wg sync.WaitGroup
	wg.Go(func() { kernel.Beat(ctxb, s, d, kernel.BeatOptions{}) })
	<-started
	ctx, cancel := context.WithCancel(ctxb)
	cancel()
	out := kernel.Beat(ctx, s, d, kernel.BeatOptions{})
	require.Equal(t, "error call: beat: context canceled | kind cancelled", outcomeText(out))
	out = kernel.Beat(ctxb, s, d, kernel.BeatOptions{Deadline: time.Now().Add(time.Millisecond)})
	require.Equal(t, "stopped reason deadline", outcomeText(out))
	close(release)
	wg.Wait()
}

func TestBeatInsideItsOwnTool(t *testing.T) {
	k, _ := newMem(t)
	s := opened(t, k)
	var inner []string
	var d *kernel.Device
	tools := map[string]kernel.Tool{"dive": {Effects: kernel.Read, Handler: func(ctx context.Context, _ json.RawMessage, tc kernel.ToolContext) (json.RawMessage, error) {
		inner = append(inner, outcomeText(kernel.Beat(ctx, tc.Session, d, kernel.BeatOptions{})), outcomeText(kernel.Rerun(ctx, tc.Session, d, "a")))
		c, err := k.Open(ctx, kernel.Open{Parent: tc.Session, Take: &kernel.Take{Amount: 5}})
		if err != nil {
			return nil, err
		}
		plain, err := d.With(func(c *kernel.Config) { c.LLM = replies(says("from the child")) })
		if err != nil {
			return nil, err
		}
		inner = append(inner, outcomeText(kernel.Beat(ctx, c, plain, kernel.BeatOptions{})), outcomeText(kernel.Beat(ctx, tc.Session, d, kernel.BeatOptions{})))
		return raw(`"up again"`), c.Close(ctx, "", "")
	}}}
	d = device(t, kernel.Config{Tools: tools, LLM: replies(calls(use("a", "dive", "")))})
	out := kernel.Beat(ctxb, s, d, kernel.BeatOptions{})
	require.Equal(t, "ok (tool_use) a=dive:ok", outcomeText(out))
	no := "error conf: beat: session i1 is in a beat already, and this runs inside it: open a child session"
	require.Equal(t, []string{no, "error conf: rerun" + no[len("error conf: beat"):], "ok (end_turn)", no}, inner)
	requireSound(t, k)
}

func TestAttachedAppendsWhileBeating(t *testing.T) {
	k, st := newMem(t)
	s, d := opened(t, k), looks(t)
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			a, err := newKernel(st).Attach(ctxb, s.ID())
			for i := 0; err == nil && i < 50; i++ {
				_, err = a.Append(ctxb, kernel.Draft{Kind: "note", Data: rawf(`{"by":%d}`, n)})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range 30 {
		out := kernel.Beat(ctxb, s, d, kernel.BeatOptions{})
		require.Equal(t, kernel.StatusOK, out.Status, outcomeText(out))
	}
	wg.Wait()
	evs := logOf(t, s)
	require.Len(t, evs, 3+30*7+4*50)
	requireClosedOnce(t, evs)
	requireSound(t, k)
}

// TestAttachedCannotAnswerForTheBeat: while a beat runs nobody else writes the
// events that it writes itself.
func TestAttachedCannotAnswerForTheBeat(t *testing.T) {
	k, _ := newMem(t)
	s := opened(t, k)
	a, err := k.Attach(ctxb, s.ID())
	require.NoError(t, err)
	d := device(t, kernel.Config{LLM: kernel.LLMFunc(func(_ context.Context, _ *kernel.Request, o kernel.CallOptions) (*kernel.Answer, error) {
		for _, kind := range []string{kernel.LLMRequest, kernel.LLMResponse, kernel.LLMCallFailed, kernel.ToolCall, kernel.ToolResult} {
			_, err := a.Append(ctxb, kernel.Draft{Kind: kind, Beat: o.Beat})
			if kernel.KindOf(err) != kernel.Validation {
				t.Errorf("%s: %v", kind, err)
			}
		}
		_, err := a.Append(ctxb, kernel.Draft{Kind: "note", Beat: o.Beat})
		return says("hi"), err
	})})
	out := kernel.Beat(ctxb, s, d, kernel.BeatOptions{})
	require.Equal(t, kernel.StatusOK, out.Status, outcomeText(out))
}

// TestTwoDrivers: each resume takes the session from the one before, who then
// writes nothing.
func TestTwoDrivers(t *testing.T) {
	k, st := newMem(t)
	first, d := opened(t, k), looks(t)
	id := first.ID()
	var wg sync.WaitGroup
	var told atomic.Int64
	for n := range 4 {
		wg.Go(func() {
			mine := kernel.New(st, kernel.Options{Now: ticking(), Mint: counting(fmt.Sprintf("d%d.", n))})
			for range 5 {
				s, err := mine.Resume(ctxb, id, kernel.Resume{})
				if err != nil {
					t.Error(err)
					return
				}
				for range 5 {
					out := kernel.Beat(ctxb, s, d, kernel.BeatOptions{})
					switch {
					case out.Status == kernel.StatusOK:
						told.Add(1)
					case out.Detail.Kind == string(kernel.Fenced):
						if err := s.Close(ctxb, "", ""); kernel.KindOf(err) != kernel.Fenced {
							t.Errorf("close of a stale handle: %v", err)
						}
					default:
						t.Error(outcomeText(out))
					}
				}
			}
		})
	}
	wg.Wait()
	s, err := k.Resume(ctxb, id, kernel.Resume{})
	require.NoError(t, err)
	require.EqualValues(t, 22, s.Epoch())
	evs := logOf(t, s)
	requireClosedOnce(t, evs)
	require.Empty(t, unpaired(kernel.FoldEvents(evs, nil)))
	require.GreaterOrEqual(t, told.Load(), int64(1))
	requireOneDriverAtATime(t, evs)
	requireSound(t, k)
}

// requireOneDriverAtATime wants no event of a beat, but what closes it, behind
// the change of drivers that ended it.
func requireOneDriverAtATime(t *testing.T, evs []*kernel.Event) {
	t.Helper()
	dead, beat := map[string]bool{}, ""
	for i, ev := range evs {
		switch {
		case ev.Kind == kernel.DriverChanged && beat != "":
			dead[beat] = true
		case ev.Kind == kernel.LLMRequest:
			require.False(t, dead[ev.Beat], "event %d", i+1)
			beat = ev.Beat
		case ev.Kind == kernel.ToolResult && field(ev, "interrupted") == "true":
		case ev.Kind == kernel.BeatInterrupted || ev.Beat == "":
		default:
			require.False(t, dead[ev.Beat], "event %d: %s", i+1, eventText(ev))
		}
	}
}

func TestCloseDuringABeat(t *testing.T) {
	k, _ := newMem(t)
	s := opened(t, k)
	tools := map[string]kernel.Tool{"stop": {Handler: func(ctx context.Context, _ json.RawMessage, tc kernel.ToolContext) (json.RawMessage, error) {
		return raw(`"stopped"`), tc.Session.Close(ctx, "enough", "")
	}}}
	d := device(t, kernel.Config{Tools: tools, LLM: replies(calls(use("a", "stop", ""), use("b", "stop", "")))})
	out := kernel.Beat(ctxb, s, d, kernel.BeatOptions{})
	require.Equal(t, "error state: knl: beat: closed: session i1 has ended: open a new one | kind closed | method beat", outcomeText(out))
	require.NotNil(t, out.Detail.Reply, "it was paid for")
	evs := logOf(t, s)
	require.Equal(t, kernel.SessionClosed, evs[len(evs)-1].Kind)
	requireClosedOnce(t, evs)
	requireSound(t, k)
}

func TestManySessions(t *testing.T) {
	k, _ := newMem(t)
	d := looks(t)
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			s := opened(t, k)
			for range 10 {
				if out := kernel.Beat(ctxb, s, d, kernel.BeatOptions{}); out.Status != kernel.StatusOK {
					t.Error(outcomeText(out))
				}
			}
			if err := s.Close(ctxb, "", ""); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	requireSound(t, k)
}

// TestManyChildren: allocations and refunds of many children meet on one
// ledger, and not a unit is lost.
func TestManyChildren(t *testing.T) {
	k, _ := newMem(t)
	up, d := opened(t, k), looks(t)
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			c, err := k.Open(ctxb, kernel.Open{Parent: up, Take: &kernel.Take{Amount: 7, Refund: true}})
			if err != nil {
				t.Error(err)
				return
			}
			if out := kernel.Beat(ctxb, c, d, kernel.BeatOptions{}); out.Status != kernel.StatusOK {
				t.Error(outcomeText(out))
			}
			if err := c.Close(ctxb, "", ""); err != nil {
				t.Error(err)
			}
		})
	}
	for range 20 {
		out := kernel.Beat(ctxb, up, d, kernel.BeatOptions{})
		require.Equal(t, kernel.StatusOK, out.Status, outcomeText(out))
	}
	wg.Wait()
	left, _, err := up.Remaining(ctxb)
	require.NoError(t, err)
	require.EqualValues(t, 100_000-220, left)
	requireSound(t, k)
}

// TestCloseBesideBusyChildren: children that write all the time do not hold a
// close up.
func TestCloseBesideBusyChildren(t *testing.T) {
	k, _ := newMem(t)
	up := opened(t, k)
	ctx, stop := context.WithCancel(ctxb)
	var wg sync.WaitGroup
	var ids []string
	for range 4 {
		c, err := k.Open(ctxb, kernel.Open{Parent: up, Take: &kernel.Take{Amount: 7}})
		require.NoError(t, err)
		ids = append(ids, c.ID())
		wg.Go(func() {
			for ctx.Err() == nil {
				_, _ = c.Append(ctxb, kernel.Draft{Kind: "note"})
			}
		})
	}
	require.NoError(t, up.Close(ctxb, "", ""))
	stop()
	wg.Wait()
	evs := logOf(t, up)
	var open []string
	require.NoError(t, json.Unmarshal([]byte(field(evs[len(evs)-1], "open_children")), &open))
	require.ElementsMatch(t, ids, open)
}

func TestHandleIsSharedSafely(t *testing.T) {
	k, _ := newMem(t)
	s, d := opened(t, k), looks(t)
	var wg sync.WaitGroup
	for _, fn := range []func(){
		func() { kernel.Beat(ctxb, s, d, kernel.BeatOptions{}) },
		func() { _, _ = s.Append(ctxb, userSays("psst")) },
		func() { _, _, _ = s.Beats(ctxb, 2, true) },
		func() { _, _ = s.Tail(ctxb, 3) },
		func() { _, _, _ = s.Reserve(ctxb, 1) },
		func() { _, _, _ = s.Remaining(ctxb) },
		func() { _, _ = s.Interrupted(ctxb) },
		func() {
			for _, b := range must(s.Events(ctxb, 1)) {
				if b.Kind == kernel.LLMRequest {
					_, _ = s.Request(ctxb, b.Beat)
				}
			}
		},
		func() { _, _ = k.Open(ctxb, kernel.Open{Parent: s, Take: &kernel.Take{Amount: 1}}) },
		func() { _ = kernel.FoldEvents(must(s.Events(ctxb, 1)), d) },
	} {
		wg.Go(func() {
			for range 20 {
				fn()
			}
		})
	}
	wg.Wait()
	require.NoError(t, s.Close(ctxb, "", ""))
	requireSound(t, k)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return v
}
