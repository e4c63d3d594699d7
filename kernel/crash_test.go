package kernel_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
)

// crashRun is a run with all that a crash may cut: a child with a refund,
// several tools, parallel ones, a failed call, a settled budget, an end.
func crashRun(t *testing.T, k *kernel.Kernel) (up, down string) {
	s, err := k.Open(ctxb, kernel.Open{Grant: &kernel.Grant{Amount: 50, Tag: "units"}})
	require.NoError(t, err)
	_, err = s.Append(ctxb, userSays("hello"))
	require.NoError(t, err)
	d := device(t, kernel.Config{Tools: toolbox(), LLM: replies(
		calls(use("a", "look", ""), use("b", "send", ""), use("c", "put", "")),
		&kernel.CallError{Kind: kernel.Server, Message: "down"},
		calls(use("a", "par", ""), use("", "par", ""), use("d", "nothing", "")),
		says("done"))})
	c, err := k.Open(ctxb, kernel.Open{Parent: s, Take: &kernel.Take{Amount: 9, Refund: true}})
	require.NoError(t, err)
	for _, on := range []*kernel.Session{s, s, s, c} {
		kernel.Beat(ctxb, on, d, kernel.BeatOptions{})
	}
	_, _, err = s.Reserve(ctxb, 5)
	require.NoError(t, err)
	require.NoError(t, s.Settle(ctxb, 2))
	require.NoError(t, c.Close(ctxb, "", ""))
	require.NoError(t, s.Close(ctxb, "", ""))
	return s.ID(), c.ID()
}

// TestEveryCrashResumes cuts a run behind every write.
func TestEveryCrashResumes(t *testing.T) {
	tape := newTape()
	up, down := crashRun(t, newKernel(tape))
	require.Greater(t, len(tape.batches), 15)
	for keep := range len(tape.batches) + 1 {
		cut := tape.crashed(keep)
		k := kernel.New(cut, kernel.Options{Now: ticking(), Mint: counting("j")})
		resumes(t, k, up)
		resumes(t, k, down)
		requireSound(t, k)
	}
}

// TestEveryPrefixResumes cuts a session behind every event, also where no crash
// would cut it.
func TestEveryPrefixResumes(t *testing.T) {
	tape := newTape()
	up, _ := crashRun(t, newKernel(tape))
	head, err := tape.Head(ctxb, up)
	require.NoError(t, err)
	for keep := int64(1); keep <= head.Seq; keep++ {
		st, err := kernel.Prefix(ctxb, tape, map[string]int64{up: keep})
		require.NoError(t, err)
		resumes(t, kernel.New(st, kernel.Options{Now: ticking(), Mint: counting("j")}), up)
	}
}

// resumes takes a session up, if it is there and open, and beats it.
func resumes(t *testing.T, k *kernel.Kernel, id string) {
	t.Helper()
	s, err := k.Resume(ctxb, id, kernel.Resume{Grant: &kernel.Grant{Amount: 9}})
	if kind := kernel.KindOf(err); kind == kernel.Closed || kind == kernel.Validation {
		return
	}
	require.NoError(t, err)
	evs := logOf(t, s)
	requireClosedOnce(t, evs)
	require.Empty(t, unpaired(kernel.FoldEvents(evs, nil)))
	d := device(t, kernel.Config{Tools: toolbox(), LLM: replies(calls(use("a", "look", "")), says("done"))})
	for range 2 {
		out := kernel.Beat(ctxb, s, d, kernel.BeatOptions{})
		require.Equal(t, kernel.StatusOK, out.Status, outcomeText(out))
	}
	requireClosedOnce(t, logOf(t, s))
	tree, err := k.Tree(ctxb, id)
	require.NoError(t, err)
	require.Empty(t, tree[0].OpenBeat)
}
