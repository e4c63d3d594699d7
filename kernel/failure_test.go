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

// broken is a store on which single calls can be made to answer an error.
type broken struct {
	*store.Mem
	applies int
	apply   func(n int) error
	records func() error
}

func (b *broken) Apply(ctx context.Context, batch *store.Batch, f store.Flush) (store.Commit, error) {
	b.applies++
	if b.apply != nil {
		if err := b.apply(b.applies); err != nil {
			return nil, err
		}
	}
	return b.Mem.Apply(ctx, batch, f)
}

func (b *broken) Records(ctx context.Context, stream string, from, to int64) iter.Seq2[store.Record, error] {
	if b.records != nil {
		return func(yield func(store.Record, error) bool) { yield(store.Record{}, b.records()) }
	}
	return b.Mem.Records(ctx, stream, from, to)
}

func TestFaultsKeepTheirKind(t *testing.T) {
	for err, want := range map[error]string{
		store.ErrBusy: "busy", store.ErrCorrupt: "corruption", store.ErrClosed: "closed",
		context.DeadlineExceeded: "timeout", context.Canceled: "timeout", errors.New("no space left on device"): "storage",
	} {
		t.Run(want, func(t *testing.T) {
			st := &broken{Mem: store.NewMem()}
			k := newKernel(st)
			s := opened(t, k)
			before := len(logOf(t, s))
			st.applies, st.apply = 0, func(int) error { return fmt.Errorf("writing: %w", err) }
			out := kernel.Beat(ctxb, s, device(t, kernel.Config{LLM: replies()}), kernel.BeatOptions{})
			require.Equal(t, kernel.StageState, out.Stage)
			require.Equal(t, want, out.Detail.Kind)
			require.Equal(t, want == "busy", out.Detail.Retryable)
			require.Equal(t, "knl: beat: "+want+": writing: "+err.Error(), out.Detail.Message)
			require.Equal(t, 1, st.applies, "one attempt")
			require.Len(t, logOf(t, s), before)
		})
	}
}

// A head that moves for ever is busy in the end and not an endless loop.
func TestConflictsEnd(t *testing.T) {
	st := &broken{Mem: store.NewMem()}
	s := opened(t, newKernel(st))
	st.apply = func(int) error { return store.ErrConflict }
	ctx, cancel := context.WithCancel(ctxb)
	cancel()
	_, err := s.Append(ctx, userSays("x"))
	require.Equal(t, kernel.Timeout, kernel.KindOf(err))
	n := 0
	st.apply = func(int) error {
		if n++; n < 20 {
			return store.ErrConflict
		}
		return nil
	}
	_, err = s.Append(ctxb, userSays("x"))
	require.NoError(t, err)
	require.Equal(t, 20, n)
}

func TestUnreadableLog(t *testing.T) {
	st := &broken{Mem: store.NewMem()}
	k := newKernel(st)
	s := opened(t, k)
	r, err := k.Resume(ctxb, s.ID(), kernel.Resume{})
	require.NoError(t, err)
	st.records = func() error { return store.ErrCorrupt }
	n, err := r.Len(ctxb)
	require.NoError(t, err)
	model := replies(says("hi"))
	out := kernel.Beat(ctxb, r, device(t, kernel.Config{LLM: model}), kernel.BeatOptions{})
	require.Equal(t, "error state: knl: events: corruption: stored bytes are damaged | kind corruption | method events", outcomeText(out))
	require.Empty(t, model.asked)
	after, err := r.Len(ctxb)
	require.NoError(t, err)
	require.Equal(t, n, after, "nothing reserved")
}

// The note about a failed call cannot be written either: the Outcome tells
// both.
func TestFailedNote(t *testing.T) {
	st := &broken{Mem: store.NewMem()}
	s := opened(t, newKernel(st))
	d := device(t, kernel.Config{LLM: replies(callFunc(func(context.Context, *kernel.Request, kernel.CallOptions) (*kernel.Answer, error) {
		st.apply = func(int) error { return errDisk }
		return nil, &kernel.CallError{Kind: kernel.Overloaded, Message: "come back later"}
	}))})
	out := kernel.Beat(ctxb, s, d, kernel.BeatOptions{})
	require.Equal(t, "error state: knl: beat: storage: the disk is on fire | kind storage | method beat | cause come back later", outcomeText(out))
}

// An answer that was paid for and cannot be recorded comes back.
func TestLostAnswer(t *testing.T) {
	st := &broken{Mem: store.NewMem()}
	k := newKernel(st)
	s := opened(t, k)
	lose := callFunc(func(context.Context, *kernel.Request, kernel.CallOptions) (*kernel.Answer, error) {
		st.apply = func(int) error { return errDisk }
		return calls(use("a", "send", "")), nil
	})
	d := device(t, kernel.Config{Tools: only("send"), LLM: replies(lose, says("hi"))})
	out := kernel.Beat(ctxb, s, d, kernel.BeatOptions{})
	require.Equal(t, kernel.StageState, out.Stage)
	require.JSONEq(t, `[{"id":"a","name":"send","input":{},"type":"tool_use"}]`, string(out.Detail.Reply.Content))
	require.Empty(t, out.Detail.Reply.Tools, "nothing ran")

	st.apply = nil // the same handle goes on, and the beat that was cut is on record
	require.Equal(t, "ok (end_turn)", outcomeText(kernel.Beat(ctxb, s, d, kernel.BeatOptions{})))
	require.Equal(t, []string{"budget_reserved", "llm_request", "beat_interrupted", "budget_reserved", "llm_request", "llm_response"}, kinds(logOf(t, s))[3:])
	requireSound(t, k)
}

// A model may answer the same value again and again; nobody writes into it.
func TestAnswerIsNotTouched(t *testing.T) {
	k, _ := newMem(t)
	a := calls(use("", "look", ""), use("x", "look", ""))
	before := *a
	content := string(a.Content)
	d := device(t, kernel.Config{Tools: only("look"), LLM: replies(a, a, a)})
	s := opened(t, k)
	for range 3 {
		require.Equal(t, kernel.StatusOK, kernel.Beat(ctxb, s, d, kernel.BeatOptions{}).Status)
	}
	require.Equal(t, before, *a)
	require.Equal(t, content, string(a.Content))
	require.NotContains(t, string(logOf(t, s)[6].Data), "provider_id")
	requireClosedOnce(t, logOf(t, s))
}

// A fold may use its list of messages again; what was recorded stays.
func TestFoldMayReuseItsList(t *testing.T) {
	k, _ := newMem(t)
	s := opened(t, k)
	req := &kernel.Request{}
	fold := func(_ context.Context, log kernel.Log, d *kernel.Device) (*kernel.Request, error) {
		evs, err := log.Events(ctxb, 1)
		fresh := kernel.FoldEvents(evs, d)
		req.Messages = append(req.Messages[:0], fresh.Messages[len(fresh.Messages)-1:]...)
		return req, err
	}
	d := device(t, kernel.Config{Fold: fold, LLM: replies(says("a"), says("b"), says("c"))})
	for range 3 {
		require.Equal(t, kernel.StatusOK, kernel.Beat(ctxb, s, d, kernel.BeatOptions{}).Status)
	}
	requireSound(t, k)
}

func TestHandlerIsTold(t *testing.T) {
	k, _ := newMem(t)
	s := opened(t, k)
	var told []kernel.ToolContext
	tool := kernel.Tool{Handler: func(_ context.Context, _ json.RawMessage, tc kernel.ToolContext) (json.RawMessage, error) {
		told = append(told, tc)
		return nil, nil
	}}
	d := device(t, kernel.Config{Tools: map[string]kernel.Tool{"t": tool}, LLM: replies(calls(use("a", "t", "")))})
	out := kernel.Beat(ctxb, s, d, kernel.BeatOptions{})
	require.Len(t, told, 1)
	require.Equal(t, kernel.ToolContext{Session: s, Beat: out.Reply.Beat, CallID: "a", IdempotencyKey: s.ID() + "/a"}, told[0])
}

// The cost sees the request that is sent, and a device drives many sessions.
func TestOneDeviceTwoSessions(t *testing.T) {
	k, _ := newMem(t)
	var seen []string
	d := device(t, kernel.Config{LLM: replies(says("a"), says("b")), Cost: func(_ context.Context, r *kernel.Request) (int64, error) {
		seen = append(seen, string(r.Messages[0]))
		return 3, nil
	}})
	for _, text := range []string{"one", "two"} {
		s, err := k.Open(ctxb, kernel.Open{Grant: &kernel.Grant{Amount: 3}})
		require.NoError(t, err)
		_, err = s.Append(ctxb, userSays(text))
		require.NoError(t, err)
		require.Equal(t, kernel.StatusOK, kernel.Beat(ctxb, s, d, kernel.BeatOptions{}).Status)
		done, err := s.Exhausted(ctxb)
		require.NoError(t, err)
		require.True(t, done)
	}
	require.Equal(t, []string{`{"content":"one","role":"user"}`, `{"content":"two","role":"user"}`}, seen)
}

// A fold or a cost that asked a provider failed as a call does: whether asking
// again helps is in the error, and a loop that retries does.
func TestAFunctionThatAskedAProvider(t *testing.T) {
	busy := fmt.Errorf("counting: %w", &kernel.CallError{Kind: kernel.Overloaded, Message: "busy", RetryAfter: 3, Status: 529})
	never := new(bool)
	for name, c := range map[string]struct {
		err  error
		want kernel.Detail
	}{
		"busy":    {busy, kernel.Detail{Kind: "overloaded", Retryable: true, RetryAfter: 3, Status: 529}},
		"key":     {&kernel.CallError{Kind: kernel.Auth, Message: "no key"}, kernel.Detail{Kind: "auth"}},
		"too far": {&kernel.CallError{Kind: kernel.RateLimited, Retry: never}, kernel.Detail{Kind: "rate_limited"}},
		"its own": {errors.New("oops"), kernel.Detail{}},
	} {
		for what, config := range map[string]kernel.Config{
			"fold": {Fold: func(context.Context, kernel.Log, *kernel.Device) (*kernel.Request, error) { return nil, c.err }},
			"cost": {Cost: func(context.Context, *kernel.Request) (int64, error) { return 0, c.err }},
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				config.LLM = kernel.LLMFunc(func(context.Context, *kernel.Request, kernel.CallOptions) (*kernel.Answer, error) {
					panic("the model is not asked")
				})
				st := store.NewMem()
				t.Cleanup(func() { _ = st.Close() })
				out := kernel.Beat(ctxb, opened(t, kernel.New(st, kernel.Options{})), device(t, config), kernel.BeatOptions{})
				require.Equal(t, kernel.StageConf, out.Stage)
				d := out.Detail
				require.Equal(t, c.want, kernel.Detail{Kind: d.Kind, Retryable: d.Retryable, RetryAfter: d.RetryAfter, Status: d.Status})
				require.Equal(t, what+": "+c.err.Error(), d.Message)
			})
		}
	}
}
