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

// What a run would refuse as a key is not called one.
func TestADoctorLooksAtTheKey(t *testing.T) {
	for key, unfit := range map[string]bool{"": false, "sk-0123456789": false, "sk a key": true, "sk-abc\xe9": true, "sk-\n": false} {
		for name, variable := range map[string]string{"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"} {
			d := portFacts(name, func(asked string) (string, bool) {
				if asked == variable {
					return key, true
				}
				return "", false
			})
			require.Equal(t, unfit, d.KeyProblem != "", "%s %q: %s", name, key, d.KeyProblem)
			if unfit {
				require.Contains(t, d.line(), variable+": holds a line break, a space or a letter that no key has")
				require.NotContains(t, d.line(), key)
			}
		}
	}
}
