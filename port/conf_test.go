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
