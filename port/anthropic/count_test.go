package anthropic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/wiretest"
)

func TestCount(t *testing.T) {
	r := newRig(t)
	r.server.Counts(123)
	seed := port.Conf{Model: "claude-opus-4-7", MaxTokens: 9, Stop: []string{"x"}, Thinking: port.Thinking{On: true}}
	for range 3 {
		n, err := r.port.Count(context.Background(), hello(), seed)
		require.NoError(t, err)
		require.Equal(t, int64(123), n)
	}
	require.Len(t, r.server.Requests(), 1, "the same prompt is counted once")
	require.Equal(t, `{"messages":[{"content":[{"text":"hello","type":"text"}],"role":"user"}],"model":"claude-opus-4-7","thinking":{"type":"adaptive"}}`, string(r.server.Last().Body))
	other := hello()
	other.System = json.RawMessage(`"x"`)
	_, err := r.port.Count(context.Background(), other, seed)
	require.NoError(t, err)
	require.Len(t, r.server.Requests(), 2)
}

// Counts are remembered up to a bound, the oldest forgotten first.
func TestCountForgets(t *testing.T) {
	r := newRig(t)
	count := func(i int) {
		req := &kernel.Request{Messages: []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"content":"%d","role":"user"}`, i))}}
		_, err := r.port.Count(context.Background(), req, port.Conf{Model: "claude-opus-4-7"})
		require.NoError(t, err)
	}
	for i := range 257 {
		count(i)
	}
	count(1)
	require.Len(t, r.server.Requests(), 257)
	count(0)
	require.Len(t, r.server.Requests(), 258)
}

func TestCountFails(t *testing.T) {
	r := newRig(t)
	_, err := r.port.Count(context.Background(), hello(), port.Conf{})
	require.EqualError(t, err, "conf.model: got nothing, want the name of a model")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer server.Close()
	_, err = r.port.Count(context.Background(), hello(), port.Conf{Model: "m", BaseURL: server.URL})
	require.Equal(t, kernel.Auth, failure(t, err).Kind)
}

// A count that cannot be had now ends no run: the call that it is for may well
// go through.
func TestACountThatFailsIsAnEstimate(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"overloaded":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(529) },
		"too many":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) },
		"down":        func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"no such way": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(405) },
		"not built":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(501) },
		"no count":    func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{}`)) },
		"below zero":  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"input_tokens":-1}`)) },
		"a page":      func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`<p>`)) },
	} {
		server := httptest.NewServer(answer)
		n, err := newRig(t).port.Count(context.Background(), hello(), port.Conf{Model: "m", BaseURL: server.URL})
		require.NoError(t, err, name)
		require.Equal(t, port.Estimate(hello()), n, name)
		server.Close()
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := newRig(t).port.Count(ctx, hello(), port.Conf{Model: "m", BaseURL: "http://127.0.0.1:9"})
	require.Equal(t, kernel.Cancelled, failure(t, err).Kind)
}

// A server that resembles the provider and cannot count gets an estimate.
func TestCountElsewhere(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	n, err := newRig(t).port.Count(context.Background(), hello(), port.Conf{Model: "m", BaseURL: server.URL})
	require.NoError(t, err)
	require.Equal(t, port.Estimate(hello()), n)
}

func TestProfile(t *testing.T) {
	for name, c := range map[string]struct {
		conf  port.Conf
		want  port.Profile
		asked int
	}{
		"known":              {port.Conf{Model: "claude-haiku-4-5-20251001"}, port.Profile{ContextWindow: 200_000, MaxOutput: 64_000, Prefill: true}, 0},
		"known, corrected":   {port.Conf{Model: "claude-opus-4-7", ContextWindow: 9000, MaxTokens: 500}, port.Profile{ContextWindow: 9000, MaxOutput: 500}, 0},
		"newer":              {port.Conf{Model: "claude-opus-9"}, port.Profile{ContextWindow: 2_000_000, MaxOutput: 256_000}, 1},
		"newer, as declared": {port.Conf{Model: "claude-new", ContextWindow: 10, MaxTokens: 5}, port.Profile{ContextWindow: 10, MaxOutput: 5}, 0},
		"unlisted, declared": {port.Conf{Model: "claude-new", ContextWindow: 10}, port.Profile{ContextWindow: 10}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.server.Serves(wiretest.Model{ID: "claude-opus-9", Window: 2_000_000, MaxOutput: 256_000})
			for range 2 {
				p, err := r.port.Profile(context.Background(), c.conf)
				require.NoError(t, err)
				require.Equal(t, c.want, p)
			}
			require.Len(t, r.server.Requests(), c.asked)
		})
	}
	r := newRig(t)
	r.server.Serves(wiretest.Model{ID: "odd"})
	_, err := r.port.Profile(context.Background(), port.Conf{Model: "claude-new"})
	require.Equal(t, 404, failure(t, err).Status)
	_, err = r.port.Profile(context.Background(), port.Conf{Model: "odd"})
	require.ErrorContains(t, err, "does not say how long the context window of odd is, want conf.context_window")
}

func TestHealth(t *testing.T) {
	r := newRig(t)
	r.server.Serves(wiretest.Model{ID: "a/b"})
	require.NoError(t, r.port.Health(context.Background(), port.Conf{}))
	require.Equal(t, "/v1/models", r.server.Last().Path)
	require.NoError(t, r.port.Health(context.Background(), port.Conf{Model: "a/b"}))
	require.EqualError(t, r.port.Health(context.Background(), port.Conf{Model: "b"}), "invalid_request: model: b")
}
