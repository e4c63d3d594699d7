package cassette_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/cassette"
	"github.com/knl-run/knl/port/script"
)

func request(t testing.TB, raw string) *kernel.Request {
	t.Helper()
	r, err := kernel.ParseRequest(json.RawMessage(raw))
	require.NoError(t, err)
	return r
}

// asks is a request that says text.
func asks(t testing.TB, text string) *kernel.Request {
	return request(t, fmt.Sprintf(`{"messages":[{"content":%q,"role":"user"}],"system":"Be brief."}`, text))
}

// echo answers what it is asked, and counts how often it is.
type echo struct {
	mu    sync.Mutex
	calls int
	reply func(req *kernel.Request, n int, show func(kernel.Delta)) (*kernel.Answer, error)
}

func (e *echo) Open(port.Conf) (kernel.LLM, error) {
	return kernel.LLMFunc(func(_ context.Context, req *kernel.Request, o kernel.CallOptions) (*kernel.Answer, error) {
		e.mu.Lock()
		e.calls++
		n := e.calls
		e.mu.Unlock()
		if e.reply != nil {
			return e.reply(req, n, o.OnDelta)
		}
		o.OnDelta(kernel.Delta{Kind: "text", Text: "yes"})
		return &kernel.Answer{Content: json.RawMessage(fmt.Sprintf(`[{"text":"yes %d","type":"text"}]`, n)), StopReason: "end_turn", Usage: kernel.Usage{Input: 3, Output: 2, CacheRead: 1}}, nil
	}), nil
}

func (e *echo) Count(context.Context, *kernel.Request, port.Conf) (int64, error) {
	e.calls++
	return 42, nil
}

func (e *echo) Profile(_ context.Context, conf port.Conf) (port.Profile, error) {
	e.calls++
	return port.Profile{ContextWindow: 1000 + conf.ContextWindow, MaxOutput: 100, Prefill: true}, nil
}

func (e *echo) Health(context.Context, port.Conf) error { return errors.New("no key") }

// shelf is a folder with a cassette in it.
type shelf struct {
	t   testing.TB
	dir string
}

func newShelf(t testing.TB) *shelf { return &shelf{t, t.TempDir()} }

func (s *shelf) open(o cassette.Options) *cassette.Cassette {
	s.t.Helper()
	o.Dir, o.Path = s.dir, "tapes/a.ndjson"
	c, err := cassette.New(o)
	require.NoError(s.t, err)
	return c
}

func (s *shelf) text() string {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, "tapes/a.ndjson"))
	require.NoError(s.t, err)
	return string(b)
}

func (s *shelf) write(text string) {
	s.t.Helper()
	require.NoError(s.t, os.MkdirAll(filepath.Join(s.dir, "tapes"), 0o755))
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, "tapes/a.ndjson"), []byte(text), 0o644))
}

func call(t testing.TB, c *cassette.Cassette, req *kernel.Request) (*kernel.Answer, []kernel.Delta, error) {
	t.Helper()
	llm, err := c.Open(port.Conf{Model: "m"})
	require.NoError(t, err)
	var deltas []kernel.Delta
	a, err := llm.Call(context.Background(), req, kernel.CallOptions{Beat: "B", OnDelta: func(d kernel.Delta) { deltas = append(deltas, d) }})
	return a, deltas, err
}

func TestPlaysWhatWasRecorded(t *testing.T) {
	s, inner := newShelf(t), &echo{}
	c := s.open(cassette.Options{Port: inner})
	require.True(t, c.Recording())
	first, deltas, err := call(t, c, asks(t, "one"))
	require.NoError(t, err)
	second, _, err := call(t, c, asks(t, "two"))
	require.NoError(t, err)
	again, _, err := call(t, c, asks(t, "one"))
	require.NoError(t, err)
	require.Error(t, c.Health(context.Background(), port.Conf{}))

	played := s.open(cassette.Options{Port: inner})
	require.False(t, played.Recording())
	require.NoError(t, played.Health(context.Background(), port.Conf{}))
	for _, want := range []struct {
		text   string
		answer *kernel.Answer
	}{{"two", second}, {"one", first}, {"one", again}} { // the order among different requests is free
		got, shown, err := call(t, played, asks(t, want.text))
		require.NoError(t, err)
		require.Equal(t, want.answer, got)
		require.Equal(t, deltas, shown)
	}
	require.Equal(t, 3, inner.calls)
}

func TestFailuresAndRefusalsPlay(t *testing.T) {
	no := false
	replies := []struct {
		answer *kernel.Answer
		err    error
	}{
		{err: &kernel.CallError{Kind: kernel.RateLimited, Message: "slow down", RetryAfter: 2.5, Status: 429}},
		{err: &kernel.CallError{Kind: kernel.Server, Message: "never", Status: 500, Retry: &no}},
		{err: errors.New("odd")},
		{answer: &kernel.Answer{Refused: true, RefusalKind: "model", RefusalDetail: "no", Content: json.RawMessage(`[]`), StopReason: "refusal"}},
		{answer: &kernel.Answer{Content: json.RawMessage(`[{"signature":"a<&>b","thinking":"hm","type":"thinking", "provider":{"port":"p"}}]`)}},
		{answer: &kernel.Answer{Content: json.RawMessage("[{\"text\":\"bad \xff\",\"text\":\"twice\"}]")}},
	}
	s := newShelf(t)
	record := s.open(cassette.Options{Port: &echo{reply: func(_ *kernel.Request, n int, _ func(kernel.Delta)) (*kernel.Answer, error) {
		return replies[n-1].answer, replies[n-1].err
	}}})
	for range replies {
		_, _, _ = call(t, record, asks(t, "x"))
	}
	played := s.open(cassette.Options{})
	for i, want := range replies {
		got, _, err := call(t, played, asks(t, "x"))
		switch {
		case i == 2:
			require.Equal(t, &kernel.CallError{Kind: kernel.Unknown, Message: "odd"}, err)
		case i == 5:
			require.Equal(t, "[{\"text\":\"bad \uFFFD\",\"text\":\"twice\"}]", string(got.Content))
		default:
			require.Equal(t, want.err, err)
			require.Equal(t, want.answer, got)
		}
	}
}

func TestAnotherRequestSaysWhatChanged(t *testing.T) {
	s := newShelf(t)
	record := s.open(cassette.Options{Port: &echo{}})
	for _, text := range []string{"one", "two"} {
		_, _, err := call(t, record, asks(t, text))
		require.NoError(t, err)
	}
	played := s.open(cassette.Options{})
	for _, c := range []struct{ asked, want string }{
		{`{"messages":[{"content":"two","role":"user"}],"system":"Be long."}`, `this call was not recorded; against call 2: system: got "Be long.", want "Be brief."`},
		{`{"messages":[{"content":"two","role":"user"}]}`, `against call 2: system: got nothing, want "Be brief."`},
	} {
		_, _, err := call(t, played, request(t, c.asked))
		var ce *kernel.CallError
		require.ErrorAs(t, err, &ce)
		require.Equal(t, kernel.InvalidRequest, ce.Kind)
		require.Contains(t, ce.Message, `cassette "tapes/a.ndjson": this call was not recorded`)
		require.Contains(t, ce.Message, c.want)
	}
	llm, err := played.Open(port.Conf{Model: "other"})
	require.NoError(t, err)
	_, err = llm.Call(context.Background(), asks(t, "one"), kernel.CallOptions{})
	require.ErrorContains(t, err, `against call 1: model: got "other", want "m"`)

	for range 2 { // a call that failed has taken nothing
		_, _, err = call(t, played, asks(t, "one"))
	}
	require.ErrorContains(t, err, "this call was recorded, and all of its answers are played")
	_, _, err = call(t, played, asks(t, "two"))
	require.NoError(t, err)
	_, _, err = call(t, played, asks(t, "three"))
	require.ErrorContains(t, err, "all of its 2 calls are played, this call is not among them")
}

func TestMintedIDsAreNotCompared(t *testing.T) {
	const form = `{"messages":[{"content":[{"id":"%[1]s/1","input":{},"name":"t","type":"tool_use"}],"role":"assistant"},{"content":[{"content":"r","tool_use_id":"%[1]s/1","type":"tool_result"}],"role":"user"}]}`
	s := newShelf(t)
	_, _, err := call(t, s.open(cassette.Options{Port: &echo{}}), request(t, fmt.Sprintf(form, "01KBA0000000000000000000AA")))
	require.NoError(t, err)
	_, _, err = call(t, s.open(cassette.Options{}), request(t, fmt.Sprintf(form, "01KBB1111111111111111111BB")))
	require.NoError(t, err)
	_, _, err = call(t, s.open(cassette.Options{}), request(t, fmt.Sprintf(form, "toolu_1")))
	require.ErrorContains(t, err, `.id: got "toolu_1/1", want "minted/1"`)
}

func TestCountsAndProfiles(t *testing.T) {
	ctx, s, inner := context.Background(), newShelf(t), &echo{}
	record := s.open(cassette.Options{Port: inner})
	for range 2 {
		n, err := record.Count(ctx, asks(t, "one"), port.Conf{Model: "m"})
		require.NoError(t, err)
		require.EqualValues(t, 42, n)
		_, err = record.Profile(ctx, port.Conf{Model: "m", ContextWindow: 7})
		require.NoError(t, err)
	}
	require.Equal(t, 2, inner.calls)
	played := s.open(cassette.Options{})
	n, err := played.Count(ctx, asks(t, "one"), port.Conf{Model: "m"})
	require.NoError(t, err)
	require.EqualValues(t, 42, n)
	p, err := played.Profile(ctx, port.Conf{Model: "m", ContextWindow: 7})
	require.NoError(t, err)
	require.Equal(t, port.Profile{ContextWindow: 1007, MaxOutput: 100, Prefill: true}, p)
	_, err = played.Count(ctx, asks(t, "two"), port.Conf{Model: "m"})
	require.ErrorContains(t, err, "this count is not among them")
	_, err = played.Profile(ctx, port.Conf{Model: "n"})
	require.ErrorContains(t, err, `no profile is recorded of model "n" with context_window 0`)
}

func TestNothingSecretIsWritten(t *testing.T) {
	const secret = "sk-secret<1>"
	mask := func(raw json.RawMessage) (json.RawMessage, bool) {
		hidden := strings.ReplaceAll(string(raw), secret, "***")
		return json.RawMessage(hidden), hidden != string(raw)
	}
	s := newShelf(t)
	record := s.open(cassette.Options{Mask: mask, Port: &echo{reply: func(_ *kernel.Request, n int, show func(kernel.Delta)) (*kernel.Answer, error) {
		show(kernel.Delta{Kind: "text", Text: "it is sk-sec"})
		show(kernel.Delta{Kind: "text", Text: "ret<1>"})
		if n == 2 {
			return nil, &kernel.CallError{Kind: kernel.Auth, Message: "bad key " + secret}
		}
		return &kernel.Answer{Content: json.RawMessage(`[{"text":"it is sk-secret<1>","type":"text"}]`)}, nil
	}}})
	const system = `{"messages":[{"content":"my key is sk-secret<1>","role":"user"}],"system":"sk-secret<1>","tools":[{"name":"t"}],"x":{"sk-secret<1>":"sk-secret<1>"}}`
	a, _, err := call(t, record, request(t, system))
	require.NoError(t, err)
	require.Contains(t, string(a.Content), secret) // who asked gets it as it is
	_, _, err = call(t, record, request(t, system))
	require.Error(t, err)
	text := s.text()
	require.NotContains(t, text, "sk-sec")
	require.NotContains(t, text, "ret<1>")
	played, _, err := call(t, s.open(cassette.Options{Mask: mask}), request(t, system))
	require.NoError(t, err)
	require.Equal(t, `[{"text":"it is ***","type":"text"}]`, string(played.Content))
}

func TestAModeCanBeForced(t *testing.T) {
	yes, no := true, false
	s, inner := newShelf(t), &echo{}
	_, err := cassette.New(cassette.Options{Dir: s.dir, Path: "x", Port: inner, Record: &no})
	require.EqualError(t, err, `cassette "x": not there, and record = false: record it first`)
	_, err = cassette.New(cassette.Options{Dir: s.dir, Path: "x"})
	require.EqualError(t, err, `cassette "x": not there, and no port is given to record it from`)

	_, _, err = call(t, s.open(cassette.Options{Port: inner}), asks(t, "one"))
	require.NoError(t, err)
	before := s.text()
	anew := s.open(cassette.Options{Port: inner, Record: &yes})
	require.Equal(t, before, s.text()) // until the first answer is there
	_, _, err = call(t, anew, asks(t, "two"))
	require.NoError(t, err)
	require.NotContains(t, s.text(), `"one"`)
	_, _, err = call(t, s.open(cassette.Options{Record: &no}), asks(t, "two"))
	require.NoError(t, err)
	left, err := os.ReadDir(filepath.Join(s.dir, "tapes"))
	require.NoError(t, err)
	require.Len(t, left, 1)
}

func TestTwoRecordersDoNotMix(t *testing.T) {
	s := newShelf(t)
	a, b := s.open(cassette.Options{Port: &echo{}}), s.open(cassette.Options{Port: &echo{}})
	_, _, err := call(t, a, asks(t, "one"))
	require.NoError(t, err)
	_, _, err = call(t, b, asks(t, "one"))
	require.ErrorContains(t, err, "somebody else has recorded it since: run again to play it")
	require.Equal(t, 2, strings.Count(s.text(), "\n"))
}

func TestCallsBesideEachOther(t *testing.T) {
	s := newShelf(t)
	for _, c := range []*cassette.Cassette{s.open(cassette.Options{Port: &echo{}}), nil} {
		if c == nil {
			c = s.open(cassette.Options{})
		}
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Go(func() {
				_, _, err := call(t, c, asks(t, fmt.Sprint(i%8)))
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}

func TestACancelledCallIsNotRecorded(t *testing.T) {
	s := newShelf(t)
	record := s.open(cassette.Options{Port: script.New(nil)})
	llm, err := record.Open(port.Conf{})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	_, err = llm.Call(ctx, asks(t, "one"), kernel.CallOptions{})
	var ce *kernel.CallError
	require.ErrorAs(t, err, &ce)
	require.Equal(t, kernel.Cancelled, ce.Kind)
	require.NoDirExists(t, filepath.Join(s.dir, "tapes"))
}
