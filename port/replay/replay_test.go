package replay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/store"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/replay"
	"github.com/knl-run/knl/port/script"
)

var ctx = context.Background()

// loop is a run that is recorded and then replayed.
type loop struct {
	t      testing.TB
	kernel *kernel.Kernel
	llm    kernel.LLM
	system string
	ran    *int // handlers
	tools  func(session, callID string) (json.RawMessage, error)
}

func newLoop(t testing.TB, llm kernel.LLM) *loop {
	st := store.NewMem()
	t.Cleanup(func() { _ = st.Close() })
	return &loop{t: t, kernel: kernel.New(st, kernel.Options{}), llm: llm, ran: new(int)}
}

func scripted(t testing.TB, replies string) kernel.LLM {
	t.Helper()
	list, err := script.ParseReplies(json.RawMessage(replies))
	require.NoError(t, err)
	llm, err := script.New(list).Open(port.Conf{})
	require.NoError(t, err)
	return llm
}

func (l *loop) device() *kernel.Device {
	handler := func(_ context.Context, args json.RawMessage, t kernel.ToolContext) (json.RawMessage, error) {
		if l.tools != nil {
			return l.tools(t.Session.ID(), t.CallID)
		}
		*l.ran++
		if string(args) == `{"bad":true}` {
			return nil, fmt.Errorf("no such thing")
		}
		return json.RawMessage(fmt.Sprintf(`{"n":%d}`, *l.ran)), nil
	}
	slow := func(ctx context.Context, args json.RawMessage, t kernel.ToolContext) (json.RawMessage, error) {
		if l.tools != nil {
			return l.tools(t.Session.ID(), t.CallID)
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	d, err := kernel.NewDevice(kernel.Config{LLM: l.llm, System: json.RawMessage(fmt.Sprintf("%q", "Be brief."+l.system)),
		Tools: map[string]kernel.Tool{"look": {Handler: handler, Effects: kernel.Read}, "slow": {Handler: slow, Timeout: time.Millisecond}}})
	require.NoError(l.t, err)
	return d
}

func (l *loop) open(text string) *kernel.Session {
	l.t.Helper()
	s, err := l.kernel.Open(ctx, kernel.Open{})
	require.NoError(l.t, err)
	l.says(s, text)
	return s
}

func (l *loop) says(s *kernel.Session, text string) {
	l.t.Helper()
	_, err := s.Append(ctx, kernel.Draft{Kind: kernel.MsgUser, Data: json.RawMessage(fmt.Sprintf(`{"content":%q}`, text))})
	require.NoError(l.t, err)
}

// run beats a new session n times.
func (l *loop) run(text string, n int) (*kernel.Session, []kernel.Outcome) {
	l.t.Helper()
	s := l.open(text)
	return s, l.beats(s, n)
}

func (l *loop) beats(s *kernel.Session, n int) (out []kernel.Outcome) {
	d := l.device()
	for range n {
		out = append(out, kernel.Beat(ctx, s, d, kernel.BeatOptions{}))
	}
	return out
}

// again answers a loop that replays a session of this one in a store of its own.
func (l *loop) again(s *kernel.Session) (*loop, *replay.Replay) {
	r := replay.New(l.kernel, s.ID())
	llm, err := r.Open(port.Conf{})
	require.NoError(l.t, err)
	next := newLoop(l.t, llm)
	next.tools = r.Tool
	return next, r
}

// told is what a log says besides ids of beats and times.
func told(t testing.TB, s *kernel.Session) (out []string) {
	events, err := s.Events(ctx, 1)
	require.NoError(t, err)
	for _, ev := range events {
		switch ev.Kind {
		case kernel.MsgUser, kernel.LLMResponse, kernel.LLMCallFailed, kernel.ToolCall, kernel.ToolResult:
			out = append(out, ev.Kind+" "+string(ev.Data))
		}
	}
	return out
}

const mixed = `[
	{"text":"<let me> look","thinking":"hm","calls":[["look",{"a":1}],{"name":"look","id":"","args":{"bad":true}},["nosuch",{}],["slow",{}]]},
	{"fail":{"kind":"rate_limited","message":"slow down","retry_after":2,"status":429}},
	{"calls":[{"name":"look","id":"call_1_1"}],"usage":{"input_tokens":3,"output_tokens":2,"cache_read_tokens":1}},
	{"refuse":"no more"},
	{"text":"cu","calls":[["look",{}]],"truncated":true},
	{"text":"x","stop":"weary"}
]`

func TestASessionPlaysWordForWord(t *testing.T) {
	l := newLoop(t, scripted(t, mixed))
	s, was := l.run("go", 6)
	ran := *l.ran
	again, r := l.again(s)
	played, is := again.run("go", 6)
	require.Equal(t, told(t, s), told(t, played))
	for i := range was {
		require.Equal(t, was[i].Status, is[i].Status, i)
		if was[i].Detail != nil {
			is[i].Detail.Err, was[i].Detail.Err = nil, nil
			is[i].Detail.Reply, was[i].Detail.Reply = nil, nil
			require.Equal(t, was[i].Detail, is[i].Detail)
		}
	}
	require.Equal(t, ran, *l.ran)
	require.Zero(t, *again.ran) // no handler ran
	require.Nil(t, r.First())
	n, left, err := r.Left(ctx)
	require.NoError(t, err)
	require.Equal(t, 6, n)
	require.Nil(t, left)
}

func TestAnotherRequestFailsWithWhatChanged(t *testing.T) {
	l := newLoop(t, scripted(t, `[{"text":"a"},{"text":"b"}]`))
	s, _ := l.run("go", 2)
	again, r := l.again(s)
	played, out := again.run("go", 1)
	require.Equal(t, kernel.StatusOK, out[0].Status)
	again.says(played, "and more")
	out = again.beats(played, 1)
	require.Equal(t, string(kernel.InvalidRequest), out[0].Detail.Kind)
	beats, _, err := s.Beats(ctx, 0, false)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf(`replay: call 2 of session %s (beat %s) asks something else: messages[3]: got {"content":"and more","role":"user"}, want nothing`,
		s.ID(), beats[1].ID), out[0].Detail.Message)
	require.Equal(t, &replay.Difference{Session: s.ID(), Call: 2, Beat: beats[1].ID,
		Changes: []string{`messages[3]: got {"content":"and more","role":"user"}, want nothing`}}, r.First())

	again.system = " Or not."
	_, out = again.run("go", 1)
	require.Contains(t, out[0].Detail.Message, `call 1 of session `+s.ID())
	require.Contains(t, out[0].Detail.Message, `system: got "Be brief. Or not.", want "Be brief."`)
	require.Equal(t, 2, r.First().Call) // the first one stays
}

func TestPastTheEndIsSaid(t *testing.T) {
	l := newLoop(t, scripted(t, `[{"text":"a"}]`))
	s, _ := l.run("go", 1)
	again, r := l.again(s)
	_, out := again.run("go", 2)
	require.Equal(t, string(kernel.Unknown), out[1].Detail.Kind)
	require.False(t, out[1].Detail.Retryable)
	require.Equal(t, "replay: session "+s.ID()+": call 2, and 1 are recorded: nothing answers it", out[1].Detail.Message)
	require.Equal(t, 2, r.First().Call)

	_, r = l.again(s)
	_, err := r.Tool("nobody", "call_1_1")
	require.ErrorContains(t, err, `no result of the call "call_1_1" is recorded`)
	_, left, err := r.Left(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"nobody asked it, and 1 were recorded"}, left.Changes)
}

// A call that its driver did not live to end has no number.
func TestAnInterruptedSessionPlaysOn(t *testing.T) {
	l := newLoop(t, scripted(t, `[{"calls":[["look",{}]]},{"text":"done"}]`))
	s, _ := l.run("go", 1)
	killed, stop := context.WithCancel(ctx)
	l.llm = kernel.LLMFunc(func(c context.Context, _ *kernel.Request, _ kernel.CallOptions) (*kernel.Answer, error) {
		stop() // the log is resumed while this call is under way
		_, err := l.kernel.Resume(ctx, s.ID(), kernel.Resume{})
		require.NoError(t, err)
		return nil, c.Err()
	})
	require.Equal(t, kernel.StatusError, kernel.Beat(killed, s, l.device(), kernel.BeatOptions{}).Status)
	resumed, err := l.kernel.Resume(ctx, s.ID(), kernel.Resume{})
	require.NoError(t, err)
	l.llm = scripted(t, `[{"calls":[["look",{}]]},{"text":"done"}]`)
	require.Equal(t, kernel.StatusOK, l.beats(resumed, 1)[0].Status)

	again, r := l.again(s)
	_, out := again.run("go", 2)
	require.Equal(t, kernel.StatusOK, out[1].Status)
	require.Nil(t, r.First())
}

// Children may be opened in any order: each plays the one that asked the same.
func TestChildrenPlayTheirOwn(t *testing.T) {
	run := func(l *loop, texts ...string) (*kernel.Session, []string) {
		parent, err := l.kernel.Open(ctx, kernel.Open{Grant: &kernel.Grant{Amount: 10}})
		require.NoError(t, err)
		l.says(parent, "all")
		l.beats(parent, 1)
		var said []string
		for _, text := range texts {
			child, err := l.kernel.Open(ctx, kernel.Open{Parent: parent, Take: &kernel.Take{Amount: 2}})
			require.NoError(t, err)
			l.says(child, text)
			o := l.beats(child, 1)[0]
			require.Equal(t, kernel.StatusOK, o.Status, o.Detail)
			said = append(said, string(o.Reply.Content))
		}
		return parent, said
	}
	n := 0
	l := newLoop(t, kernel.LLMFunc(func(context.Context, *kernel.Request, kernel.CallOptions) (*kernel.Answer, error) {
		n++
		return &kernel.Answer{Content: json.RawMessage(fmt.Sprintf(`[{"text":"%d","type":"text"}]`, n))}, nil
	}))
	parent, was := run(l, "a", "b", "b")
	again, r := l.again(parent)
	_, is := run(again, "b", "a", "b")
	require.Equal(t, []string{was[1], was[0], was[2]}, is)
	require.Nil(t, r.First())
	played, left, err := r.Left(ctx)
	require.NoError(t, err)
	require.Equal(t, 4, played)
	require.Nil(t, left)
}

func TestWhatCannotBePlayed(t *testing.T) {
	l := newLoop(t, scripted(t, `[]`))
	r := replay.New(l.kernel, "nosuch")
	require.ErrorContains(t, r.Health(ctx, port.Conf{}), "nosuch")
	llm, err := r.Open(port.Conf{})
	require.NoError(t, err)
	req := &kernel.Request{}
	_, err = llm.Call(ctx, req, kernel.CallOptions{Session: "s"})
	require.ErrorContains(t, err, "nosuch")
	s := l.open("go")
	r = replay.New(l.kernel, s.ID())
	require.NoError(t, r.Health(ctx, port.Conf{}))
	llm, err = r.Open(port.Conf{})
	require.NoError(t, err)
	_, err = llm.Call(ctx, req, kernel.CallOptions{})
	require.ErrorContains(t, err, "outside of a session")
	_, err = llm.Call(ctx, req, kernel.CallOptions{Session: "new"})
	require.ErrorContains(t, err, "call 1, and 0 are recorded")

	_, err = s.Append(ctx, kernel.Draft{Kind: kernel.LLMResponse, Data: json.RawMessage(`{"content":[]}`)})
	require.NoError(t, err)
	llm, err = replay.New(l.kernel, s.ID()).Open(port.Conf{})
	require.NoError(t, err)
	_, err = llm.Call(ctx, req, kernel.CallOptions{Session: "new"})
	require.ErrorContains(t, err, "a caller recorded this answer itself")
}

func TestSizes(t *testing.T) {
	r := replay.New(nil, "")
	p, err := r.Profile(ctx, port.Conf{ContextWindow: 1000})
	require.NoError(t, err)
	require.Equal(t, port.Profile{ContextWindow: 1000, MaxOutput: 250}, p)
	req := &kernel.Request{Messages: []json.RawMessage{json.RawMessage(`{"content":"x","role":"user"}`)}}
	n, err := r.Count(ctx, req, port.Conf{})
	require.NoError(t, err)
	require.Equal(t, port.Estimate(req), n)
}
