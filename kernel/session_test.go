package kernel_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/store"
)

func TestOpenRefuses(t *testing.T) {
	k, _ := newMem(t)
	other, _ := newMem(t)
	rich, poor := opened(t, k), must(k.Open(ctxb, kernel.Open{}))
	take := &kernel.Take{Amount: 1}
	tests := map[string]struct {
		open kernel.Open
		kind kernel.Kind
		want string
	}{
		"anon":                {kernel.Open{Owner: "anon"}, kernel.Validation, `owner "anon" is the kernel's own`},
		"system":              {kernel.Open{Owner: "system"}, kernel.Validation, `owner "system" is the kernel's own`},
		"two budgets":         {kernel.Open{Grant: &kernel.Grant{}, Take: take, Parent: rich}, kernel.Validation, "both an amount and from_parent"},
		"no parent":           {kernel.Open{Take: take}, kernel.Validation, "no parent was given"},
		"a parent alone":      {kernel.Open{Parent: rich}, kernel.Validation, "a child needs budget"},
		"a negative grant":    {kernel.Open{Grant: &kernel.Grant{Amount: -1}}, kernel.Validation, "got -1, want a whole number ≥ 0"},
		"a negative take":     {kernel.Open{Parent: rich, Take: &kernel.Take{Amount: -1}}, kernel.Validation, "got -1, want a whole number ≥ 0"},
		"a parent without":    {kernel.Open{Parent: poor, Take: take}, kernel.Validation, "has no budget to take from"},
		"more than there is":  {kernel.Open{Parent: rich, Take: &kernel.Take{Amount: 100_001}}, kernel.Refused, "has 100000 left, want 100001"},
		"a foreign parent":    {kernel.Open{Parent: opened(t, other), Take: take}, kernel.Validation, "is in another store"},
		"meta of a beat":      {kernel.Open{Meta: raw(`{"beat":"b"}`)}, kernel.Validation, "an opening belongs to no beat"},
		"meta that is a list": {kernel.Open{Meta: raw(`[]`)}, kernel.Validation, "meta: got an array, want an object"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := k.Open(ctxb, tt.open)
			require.ErrorContains(t, err, tt.want)
			require.Equal(t, tt.kind, kernel.KindOf(err))
		})
	}
	list, err := k.Sessions(ctxb, "", 0)
	require.NoError(t, err)
	require.Len(t, list, 2, "nothing was opened")
}

func TestOpenRecordsWhoAndWhat(t *testing.T) {
	st := store.NewMem()
	k := kernel.New(st, kernel.Options{Now: ticking(), Mint: counting("i"), Stamp: map[string]string{"script": "abc", "knl": "1"}})
	s, err := k.Open(ctxb, kernel.Open{Owner: "ann", Meta: raw(`{"run":1,"script":"mine"}`), Grant: &kernel.Grant{Amount: 0}})
	require.NoError(t, err)
	require.Equal(t, [3]string{"i1", "i2", "ann"}, [3]string{s.ID(), s.ScopeID(), s.Owner()})
	require.EqualValues(t, 1, s.Epoch())
	require.False(t, s.Attached())
	require.JSONEq(t, `{"knl":"1","run":1,"script":"abc"}`, string(logOf(t, s)[0].Meta))
	left, granted, err := s.Remaining(ctxb)
	require.NoError(t, err)
	require.True(t, granted && left == 0, "an empty budget is a budget")
	ok, _, err := s.Reserve(ctxb, 1)
	require.NoError(t, err)
	require.False(t, ok)
	s, err = k.Resume(ctxb, s.ID(), kernel.Resume{Meta: raw(`{"why":"again"}`)})
	require.NoError(t, err)
	evs := logOf(t, s)
	require.JSONEq(t, `{"knl":"1","script":"abc","why":"again"}`, string(evs[len(evs)-1].Meta))
	require.EqualValues(t, 2, s.Epoch())
	require.Equal(t, "ann", s.Owner())
}

func TestUnknownSession(t *testing.T) {
	k, _ := newMem(t)
	_, err := k.Resume(ctxb, "nobody", kernel.Resume{})
	require.EqualError(t, err, `knl: resume: validation: session "nobody" is not in this store: knl sessions lists what is`)
	_, err = k.Attach(ctxb, "nobody")
	require.Equal(t, kernel.Validation, kernel.KindOf(err))
	_, err = k.Tree(ctxb, "nobody")
	require.Equal(t, kernel.Validation, kernel.KindOf(err))
	_, err = k.Resume(ctxb, "nobody", kernel.Resume{Grant: &kernel.Grant{Amount: -1}})
	require.ErrorContains(t, err, "got -1")
}

func TestBracket(t *testing.T) {
	k, st := newMem(t)
	_ = st
	end := func(s *kernel.Session) string {
		evs := logOf(t, s)
		return eventText(evs[len(evs)-1])
	}
	s := opened(t, k)
	require.NoError(t, s.Bracket(ctxb, func(*kernel.Session) error { return nil }))
	require.Equal(t, `4 session_closed {"reason":"scope_exit"}`, end(s))

	boom := errors.New("boom\xff")
	s = opened(t, k)
	require.Same(t, boom, s.Bracket(ctxb, func(*kernel.Session) error { return boom }))
	require.Equal(t, "4 session_closed {\"detail\":\"boom\ufffd\",\"reason\":\"error\"}", end(s))

	s = opened(t, k)
	require.NoError(t, s.Bracket(ctxb, func(s *kernel.Session) error { return s.Close(ctxb, "mine", "") }))
	require.Equal(t, `4 session_closed {"reason":"mine"}`, end(s))

	ctx, cancel := context.WithCancel(ctxb)
	s = opened(t, k)
	err := s.Bracket(ctx, func(*kernel.Session) error { cancel(); return ctx.Err() })
	require.ErrorIs(t, err, context.Canceled)
	require.Contains(t, end(s), "session_closed", "a cancelled run still closes")

	s = opened(t, k)
	_, err = k.Resume(ctxb, s.ID(), kernel.Resume{})
	require.NoError(t, err)
	err = s.Bracket(ctxb, func(*kernel.Session) error { return boom })
	require.ErrorIs(t, err, boom)
	require.Equal(t, kernel.Fenced, kernel.KindOf(err), "both are told")
}

func TestCloseDetailIsCutByCharacters(t *testing.T) {
	k, _ := newMem(t)
	for detail, want := range map[string]string{
		strings.Repeat("é", 200): strings.Repeat("é", 200),
		strings.Repeat("é", 201): strings.Repeat("é", 200) + "...",
		"":                       "",
	} {
		s := opened(t, k)
		require.NoError(t, s.Close(ctxb, "", detail))
		evs := logOf(t, s)
		var got string
		if v := field(evs[3], "detail"); v != "" {
			got = strings.Trim(v, `"`)
		}
		require.Equal(t, want, got)
	}
}

// A close that fails leaves the handle open, so it can be tried again.
func TestCloseAgainAfterAFault(t *testing.T) {
	st := &broken{Mem: store.NewMem()}
	s := opened(t, newKernel(st))
	st.apply = func(int) error { return errDisk }
	require.Equal(t, kernel.Storage, kernel.KindOf(s.Close(ctxb, "", "")))
	st.apply = nil
	_, err := s.Append(ctxb, userSays("still open"))
	require.NoError(t, err)
	require.NoError(t, s.Close(ctxb, "", ""))
	ended, at, err := s.Closed(ctxb)
	require.NoError(t, err)
	require.True(t, ended && at > 0)
}

// A child whose parent has ended keeps what is left of it.
func TestRefundToAnEndedParent(t *testing.T) {
	k, _ := newMem(t)
	up := opened(t, k)
	c, err := k.Open(ctxb, kernel.Open{Parent: up, Take: &kernel.Take{Amount: 5, Refund: true}})
	require.NoError(t, err)
	require.Equal(t, up.ID(), c.Parent())
	require.NoError(t, up.Close(ctxb, "", ""))
	require.NoError(t, c.Close(ctxb, "", ""))
	left, _, err := c.Remaining(ctxb)
	require.NoError(t, err)
	require.EqualValues(t, 5, left)
	requireSound(t, k)
}

// What is left climbs over parents that have ended and were to give back too,
// and stops where units were moved for good.
func TestRefundClimbs(t *testing.T) {
	for _, tt := range []struct {
		middle     bool // opened with refund
		root, left int64
	}{{true, 7, 0}, {false, 4, 3}} {
		k, _ := newMem(t)
		root := open(t, k, kernel.Open{Grant: &kernel.Grant{Amount: 10}})
		middle := open(t, k, kernel.Open{Parent: root, Take: &kernel.Take{Amount: 6, Refund: tt.middle}})
		leaf := open(t, k, kernel.Open{Parent: middle, Take: &kernel.Take{Amount: 5, Refund: true}})
		require.NoError(t, leaf.Spend(ctxb, 2))
		require.NoError(t, middle.Spend(ctxb, 1))
		require.NoError(t, middle.Close(ctxb, "", ""))
		require.NoError(t, leaf.Close(ctxb, "", ""))
		require.EqualValues(t, tt.root, remaining(t, root))
		require.EqualValues(t, tt.left, remaining(t, leaf))
		evs := logOf(t, root)
		if tt.middle {
			require.Contains(t, eventText(evs[len(evs)-1]), `budget_returned {"amount":3,"child":"`+leaf.ID()+`"`)
		}
		requireSound(t, k)
	}
}

// A driver that was cut off may not know it: what it still writes is fenced,
// and what was left of its units is back where it came from.
func TestCloseAborted(t *testing.T) {
	k, _ := newMem(t)
	root := open(t, k, kernel.Open{Grant: &kernel.Grant{Amount: 10}})
	c := open(t, k, kernel.Open{Parent: root, Take: &kernel.Take{Amount: 6, Refund: true}})
	require.NoError(t, c.CloseAborted(ctxb))
	evs := logOf(t, c)
	require.Equal(t, `3 driver_changed {"epoch":2}`, eventText(evs[2]))
	require.Equal(t, `4 session_closed {"detail":"aborted","reason":"error","returned":6}`, eventText(evs[3]))
	_, err := c.Append(ctxb, userSays("late"))
	require.Equal(t, kernel.Fenced, kernel.KindOf(err))
	require.NoError(t, c.Close(ctxb, "", ""), "one close")
	require.EqualValues(t, 10, remaining(t, root))

	c = open(t, k, kernel.Open{Parent: root, Take: &kernel.Take{Amount: 6, Refund: true}})
	other, err := k.Resume(ctxb, c.ID(), kernel.Resume{})
	require.NoError(t, err)
	require.Equal(t, kernel.Fenced, kernel.KindOf(c.CloseAborted(ctxb)), "another drives it")
	_, err = other.Append(ctxb, userSays("mine"))
	require.NoError(t, err)
	requireSound(t, k)
}

func open(t *testing.T, k *kernel.Kernel, o kernel.Open) *kernel.Session {
	t.Helper()
	s, err := k.Open(ctxb, o)
	require.NoError(t, err)
	return s
}

func remaining(t *testing.T, s *kernel.Session) int64 {
	t.Helper()
	n, _, err := s.Remaining(ctxb)
	require.NoError(t, err)
	return n
}

func TestHugeGrants(t *testing.T) {
	k, _ := newMem(t)
	s, err := k.Open(ctxb, kernel.Open{Grant: &kernel.Grant{Amount: math.MaxInt64}})
	require.NoError(t, err)
	s, err = k.Resume(ctxb, s.ID(), kernel.Resume{Grant: &kernel.Grant{Amount: math.MaxInt64}})
	require.NoError(t, err)
	left, _, err := s.Remaining(ctxb)
	require.NoError(t, err)
	require.EqualValues(t, math.MaxInt64, left, "more than can be counted is as much as can be counted")
	requireSound(t, k)
}

func TestWatch(t *testing.T) {
	k, _ := newMem(t)
	s := opened(t, k)
	ctx, cancel := context.WithCancel(ctxb)
	moved := s.Watch(ctx)
	_, err := s.Append(ctxb, userSays("x"))
	require.NoError(t, err)
	<-moved
	cancel()
	for range moved { // a last token, then the end
	}
}

func TestMintedIDsSortByTime(t *testing.T) {
	k := kernel.New(store.NewMem(), kernel.Options{})
	last := ""
	for range 10_000 {
		id := k.NewBeatID()
		require.Greater(t, id, last)
		last = id
	}
}

func TestErrorText(t *testing.T) {
	err := &kernel.Error{Kind: kernel.Busy, Method: "append", Message: "try again", Err: errDisk}
	require.EqualError(t, err, "knl: append: busy: try again")
	require.ErrorIs(t, err, errDisk)
	require.True(t, err.Retryable())
	require.Empty(t, kernel.KindOf(errors.New("knl: append: busy: not ours")), "kinds are not read from text")
	for _, kind := range kernel.Kinds {
		require.Equal(t, kind == kernel.Busy, (&kernel.Error{Kind: kind}).Retryable())
	}
	var retryable []kernel.CallKind
	for _, kind := range kernel.CallKinds {
		require.True(t, kind.Known())
		if (&kernel.CallError{Kind: kind}).Retryable() {
			retryable = append(retryable, kind)
		}
	}
	require.Equal(t, kernel.CallKinds[:4], retryable)
	yes := true
	require.True(t, (&kernel.CallError{Kind: kernel.Auth, Retry: &yes}).Retryable())
	require.False(t, (&kernel.CallError{Kind: "made_up", Retry: &yes}).Retryable(), "a kind that nobody knows is not repeated")
}
