package port_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/port"
)

// What a conf does not say stays as the one below has it.
func TestConfOver(t *testing.T) {
	base, err := port.ParseConf(json.RawMessage(`{"model":"m","base_url":"http://x","stream":false,"cache":false,"max_tokens":9,"headers":{"a":"1","b":"2"}}`))
	require.NoError(t, err)
	for over, want := range map[string]func(*port.Conf){
		`{}`:                             func(*port.Conf) {},
		`{"model":"n"}`:                  func(c *port.Conf) { c.Model = "n" },
		`{"stream":true}`:                func(c *port.Conf) { c.NoStream = false },
		`{"cache":true,"max_tokens":5}`:  func(c *port.Conf) { c.NoCache, c.MaxTokens = false, 5 },
		`{"headers":{"b":"3","c":"4"}}`:  func(c *port.Conf) { c.Headers = map[string]string{"a": "1", "b": "3", "c": "4"} },
		`{"thinking":{"effort":"high"}}`: func(c *port.Conf) { c.Thinking = port.Thinking{On: true, Effort: "high"} },
		`{"thinking":false}`:             func(c *port.Conf) { c.Thinking = port.Thinking{Off: true} },
	} {
		got, err := base.Over(json.RawMessage(over))
		require.NoError(t, err)
		expected := base
		want(&expected)
		require.Equal(t, expected, got, over)
	}
	require.Equal(t, map[string]string{"a": "1", "b": "2"}, base.Headers, "the one below stays as it is")
	_, err = base.Over(json.RawMessage(`{"strem":true}`))
	require.EqualError(t, err, `conf: unknown key "strem" (did you mean "stream"?)`)
}

// A request says more than the conf, and a filter more than the request; the last
// word about thinking is the whole of it.
func TestConfForARequest(t *testing.T) {
	on, off := json.RawMessage(`{"thinking":true}`), json.RawMessage(`{"thinking":false}`)
	for _, c := range []struct {
		params json.RawMessage
		extra  string
		want   port.Thinking
	}{
		{nil, "", port.Thinking{On: true, Effort: "high"}},
		{off, "", port.Thinking{Off: true}},
		{off, "true", port.Thinking{On: true}},
		{on, "false", port.Thinking{Off: true}},
		{on, "", port.Thinking{On: true, Effort: "high"}},
	} {
		req := requestOf(ask)
		req.Params = c.params
		if c.extra != "" {
			req.Extra = map[string]json.RawMessage{"thinking": json.RawMessage(c.extra), "metadata": json.RawMessage(`{}`)}
		}
		got, err := port.Conf{Model: "m", Thinking: port.Thinking{On: true, Effort: "high"}}.For(req)
		require.NoError(t, err)
		require.Equal(t, c.want, got.Thinking)
	}
	req := requestOf(ask)
	req.Params = json.RawMessage(`{"thinking":7}`)
	_, err := port.Conf{}.For(req)
	require.EqualError(t, err, "params.thinking: got 7, want true, false or { effort?, budget_tokens? }")
}
