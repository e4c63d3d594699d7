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
	m, err := New(hostOf(env)).open(conf)
	require.NoError(t, err)
	a, err := m.asked(req)
	require.NoError(t, err)
	return a.body
}

// DialectIn answers the name of the dialect that a conf gets.
func DialectIn(env map[string]string, conf port.Conf) (string, error) {
	m, err := New(hostOf(env)).open(conf)
	if err != nil {
		return "", err
	}
	return m.server.dialect.name, nil
}

func hostOf(env map[string]string) port.Host {
	return port.Host{Env: func(name string) (string, bool) { v, set := env[name]; return v, set }}
}
