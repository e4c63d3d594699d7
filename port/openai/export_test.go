package openai

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
)

// BodyFor answers the body of a call that is not made.
func BodyFor(t *testing.T, env map[string]string, conf port.Conf, req *kernel.Request) json.RawMessage {
	t.Helper()
	m, err := New(port.Host{Env: func(name string) (string, bool) { v, set := env[name]; return v, set }}).open(conf)
	require.NoError(t, err)
	a, err := m.asked(req)
	require.NoError(t, err)
	return a.body
}
