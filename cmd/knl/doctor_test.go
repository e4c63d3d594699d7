package main

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/luabind"
	"github.com/knl-run/knl/port"
)

func TestShownURL(t *testing.T) {
	for raw, want := range map[string]string{
		"https://host/v1":                 "https://host/v1",
		"http://me:secret@host:1/a?k=s#f": "http://host:1/a",
		"secret":                          "(not a URL)",
		"http://ho st":                    "(not a URL)",
	} {
		require.Equal(t, want, shownURL(raw), raw)
	}
}

// sick is a provider whose health is an error that repeats a key.
type sick struct{ err error }

func (s sick) Open(port.Conf) (kernel.LLM, error)                               { return nil, s.err }
func (s sick) Count(context.Context, *kernel.Request, port.Conf) (int64, error) { return 0, s.err }
func (s sick) Profile(context.Context, port.Conf) (p port.Profile, err error)   { return p, s.err }
func (s sick) Health(context.Context, port.Conf) error                          { return s.err }

func TestADoctorTellsNoKey(t *testing.T) {
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"OPENAI_API_KEY": "sk-0123456789"}[name]
		return v, ok
	}
	for _, c := range []struct {
		name, online, problem string
		err                   error
	}{
		{"openai", "failed", "the key *** is unknown", errors.New("the key sk-0123456789 is unknown")},
		{"openai", "reached", "", nil},
		{"anthropic", "not asked", "", errors.New("asked without a key")},
		{"ollama", "failed", "refused", errors.New("refused")},
	} {
		d := portFacts(c.name, env)
		require.Equal(t, c.name == "openai", d.KeySet)
		d.ask(context.Background(), sick{c.err}, keyMask(env, nil))
		require.Equal(t, c.online, d.Online, c.name)
		require.Equal(t, c.problem, d.Problem, c.name)
		require.NotContains(t, d.line(), "0123456789")
	}
}

func TestADoctorDoesNotWaitForever(t *testing.T) {
	ctx, stop := context.WithTimeout(context.Background(), 0)
	defer stop()
	d := portFacts("ollama", func(string) (string, bool) { return "", false })
	d.ask(ctx, sick{errors.New("transport: context deadline exceeded")}, &luabind.Masker{})
	require.Equal(t, "failed", d.Online)
	require.Equal(t, "no answer in 10 s", d.Problem)
}
