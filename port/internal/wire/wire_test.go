package wire_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/internal/wire"
)

func TestBase(t *testing.T) {
	for raw, want := range map[string]string{
		"https://x.y/v1/": "https://x.y/v1", "http://127.0.0.1:8000": "http://127.0.0.1:8000", "http://[::1]:80/a//": "http://[::1]:80/a",
	} {
		u, err := wire.Base(raw)
		require.NoError(t, err)
		require.Equal(t, want, u.String())
	}
	for _, raw := range []string{"", "x", "//x", "ftp://x", "http://", "http://:80", "http://x y", "http://x\n", "http://x\x7f", "http://x?a", "http://x?", "http://x#a", "http://u@x", "http://%zz"} {
		_, err := wire.Base(raw)
		require.Error(t, err, raw)
	}
	for raw, want := range map[string]string{
		"https://name:canary@x":        "got a URL with a name or password in it",
		"https://name:canary word@x":   `got "x", want a URL without space`,
		"https://name:canary%zz@x":     "got a URL with a name or password in it",
		"name:canary@x":                `got "x", want http://host`,
		"https://x/v1?key=canary":      `got "https://x/v1" with more behind it, want a URL without ? and #`,
		"https://x/v1?key=canary word": `got "https://x/v1", want a URL without space`,
		"https://x/v1#canary":          `got "https://x/v1" with more behind it`,
		"127.0.0.1:8000":               `got "127.0.0.1:8000", want http://host or https://host`,
		"127.0.0.1:8000/v1?key=canary": `got "127.0.0.1:8000/v1", want http://host`,
		"https://x/a%zz?canary":        `got "https://x/a%zz", want http://host`,
	} {
		_, err := wire.Base(raw)
		require.ErrorContains(t, err, want, raw)
		require.NotContains(t, err.Error(), "canary")
	}
	u, err := wire.Base("https://x/a%2Fb/v1/")
	require.NoError(t, err)
	require.Equal(t, "https://x/a%2Fb/v1", u.String())
}

func TestHeaders(t *testing.T) {
	secrets, err := wire.Headers(map[string]string{"X-Api-Key": "canary-1234", "x-title": "knl is good", "Cookie": "short"})
	require.NoError(t, err)
	require.Equal(t, []string{"canary-1234"}, secrets)
	for name, value := range map[string]string{"a": "x\r\ny: z", "b": "\x00", "": "x", "c d": "x", "e:": "x", "content-length": "1", "X-Stainless-Lang": "x"} {
		_, err := wire.Headers(map[string]string{name: value})
		require.Error(t, err, name)
	}
}

func TestAKeyInPlaceOfItsVariableIsNotRepeated(t *testing.T) {
	_, err := wire.NewLine(port.Host{}, port.Conf{APIKeyEnv: "sk-canary"})
	require.EqualError(t, err, "conf.api_key_env: got what no variable is called, want the name of the variable that holds the key")
}

// The masker hears of a secret before anything is sent, and no error repeats it.
func TestLine(t *testing.T) {
	var told []string
	host := port.Host{
		Env:    func(name string) (string, bool) { return " canary-5678\n", name == "K" },
		Secret: func(v string) { told = append(told, v) },
	}
	l, err := wire.NewLine(host, port.Conf{APIKeyEnv: "K", Headers: map[string]string{"X-Api-Key": "canary-1234"}}, "x-api-key")
	require.NoError(t, err)
	require.Equal(t, []string{"canary-1234"}, told)
	l.Announce()
	require.Equal(t, []string{"canary-1234", "canary-5678"}, told)
	told = told[:1]
	key, err := l.Key()
	require.NoError(t, err)
	require.Equal(t, "canary-5678", key)
	require.Equal(t, []string{"canary-1234", "canary-5678"}, told)
	require.True(t, l.Signed())
	ctx := context.Background()
	require.EqualError(t, l.Ended(ctx, ctx, errors.New("got canary-1234 and canary-5678")), "transport: got *** and ***")
	refused := l.Ended(ctx, ctx, &wire.Refusal{Detail: "not canary-1234"})
	a, err := wire.Declined(refused)
	require.NoError(t, err)
	require.Equal(t, []any{true, "content_filter", "not ***"}, []any{a.Refused, a.RefusalKind, a.RefusalDetail})
	_, err = wire.Declined(errors.New("reset"))
	require.EqualError(t, err, "reset")

	l, err = wire.NewLine(port.Host{}, port.Conf{APIKeyEnv: "K"}, "x-api-key")
	require.NoError(t, err)
	l.Needs = true
	_, err = l.Key()
	require.EqualError(t, err, "auth: K: not set, want the key of the provider there, or in a variable that conf.api_key_env names")
}

func TestAKeyOfALetterIsNotHidden(t *testing.T) {
	require.Equal(t, "the key e is wrong", wire.Hide(&kernel.CallError{Message: "the key e is wrong"}, []string{"e", "", "key"}).Message)
}

func TestAWarnerSaysAThingOnce(t *testing.T) {
	var w wire.Warner
	var said []string
	host := port.Host{Warn: func(text string) { said = append(said, text) }}
	w.Warn(host, "%s takes no %s", "m", "seed")
	w.Warn(host, "%s takes no %s", "m", "seed")
	w.Warn(host, "%s takes no %s", "m", "stop")
	w.Warn(port.Host{}, "nobody listens")
	require.Equal(t, []string{"m takes no seed", "m takes no stop"}, said)
}

func TestKey(t *testing.T) {
	require.NoError(t, wire.Key("K", "sk-abc_123"))
	for _, key := range []string{"a\nb", "a b", "schlüssel", "a\x7f"} {
		err := wire.Key("K", key)
		require.ErrorContains(t, err, "K: ")
		require.NotContains(t, err.Error(), key)
	}
}

// A body that has no end is left behind its limit.
func TestCap(t *testing.T) {
	n, err := io.Copy(io.Discard, wire.Cap(io.NopCloser(endless{})))
	require.ErrorIs(t, err, wire.ErrTooLong)
	require.Equal(t, int64(wire.MaxBody), n)
	got := wire.Ended(context.Background(), context.Background(), err)
	require.Equal(t, kernel.Server, got.Kind)
	require.False(t, got.Retryable())
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestEnded(t *testing.T) {
	ctx, own := context.Background(), &kernel.CallError{Kind: kernel.Auth, Message: "no key"}
	require.Same(t, own, wire.Ended(ctx, ctx, own))
	require.Equal(t, &kernel.CallError{Kind: kernel.Transport, Message: "reset"}, wire.Ended(ctx, ctx, errors.New("reset")))

	late, cancel := wire.Within(ctx, 0.001, time.Time{})
	defer cancel()
	<-late.Done()
	require.Equal(t, "no whole answer within 0.001 seconds: conf.timeout sets how long a call may take", wire.Ended(ctx, late, errors.New("reset")).Message)

	beat, cancel := wire.Within(ctx, 0, time.Now().Add(time.Millisecond))
	defer cancel()
	<-beat.Done()
	require.Equal(t, context.DeadlineExceeded.Error(), wire.Ended(ctx, beat, errors.New("reset")).Message)

	gone, cancel := context.WithCancel(ctx)
	cancel()
	require.Equal(t, kernel.Cancelled, wire.Ended(gone, gone, own).Kind)
}

func TestWords(t *testing.T) {
	require.Equal(t, "a b", wire.FirstWords(" a\n\tb "))
	require.Equal(t, strings.Repeat("é", 200)+"…", wire.FirstWords(strings.Repeat("é", 5000)))
	require.Equal(t, "2.5", wire.Waiting(http.Header{"Retry-After-Ms": {"2500"}, "Retry-After": {"3"}}))
	require.Equal(t, "3", wire.Waiting(http.Header{"Retry-After-Ms": {"soon"}, "Retry-After": {"3"}}))
	require.Equal(t, "*** and ***", wire.Hide(&kernel.CallError{Message: "canary and canary"}, []string{"", "canary"}).Message)
}
