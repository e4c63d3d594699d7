package luabind

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMessagesIn(t *testing.T) {
	const (
		note   = `{"jsonrpc":"2.0","method":"notifications/x"}`
		answer = `{"jsonrpc":"2.0","id":3,"result":{"a":"b"}}`
	)
	for line, want := range map[string][2]string{
		"":                              {"", ""},
		" \t\r\n":                       {"", ""},
		answer:                          {answer + "\n", ""},
		answer + "\r\n":                 {answer + "\n", ""},
		"\ufeff" + answer:               {answer + "\n", ""},
		note + answer:                   {note + "\n" + answer + "\n", ""},
		note + " " + answer + " done":   {note + "\n" + answer + "\n", " done"},
		"[" + note + "," + answer + "]": {note + "\n" + answer + "\n", ""},
		"[]":                            {"", ""},
		"DEBUG " + answer:               {"", "DEBUG " + answer},
		`{"level":"info"}`:              {"", `{"level":"info"}` + "\n"},
		`{"level":"info"}` + answer:     {answer + "\n", `{"level":"info"}` + "\n"},
		`[1,` + answer + `]`:            {answer + "\n", "1\n"},

		// no answers, though they have an id
		`{"level":50,"id":3,"error":"x"}`:                {"", `{"level":50,"id":3,"error":"x"}` + "\n"},
		`{"jsonrpc":"2.0","id":3,"method":5}`:            {"", `{"jsonrpc":"2.0","id":3,"method":5}` + "\n"},
		`{"jsonrpc":"2.0","id":3,"method":"a","params":`: {"", `{"jsonrpc":"2.0","id":3,"method":"a","params":`},
		`{"jsonrpc":"2.0","id":null,"error":"x"}`:        {"", `{"jsonrpc":"2.0","id":null,"error":"x"}` + "\n"},
		`{"jsonrpc":"2.0","id":3.5,"error":"x"}`:         {"", `{"jsonrpc":"2.0","id":3.5,"error":"x"}` + "\n"},
		`{"id":3`:                                        {"", `{"id":3`},
		`{`:                                              {"", `{`},
	} {
		messages, noise := messagesIn([]byte(line))
		assert.Equal(t, want, [2]string{string(messages), string(noise)}, line)
	}
}

// An answer that cannot be read is the failure of the request that it is for.
func TestBrokenAnswers(t *testing.T) {
	for line, why := range map[string]string{
		`{"jsonrpc":"2.0","id":3,"error":{"code":-32000.5,"message":"m"}}`:                                  "cannot unmarshal",
		`{"jsonrpc":"2.0","id":3,"error":{"code":"E1","message":"m"}}`:                                      "cannot unmarshal",
		`{"jsonrpc":"2.0","id":3,"result":{"a":NaN}}`:                                                       "invalid character 'N'",
		`{"jsonrpc":"2.0","id":3,"result":{"a":`:                                                            "unexpected EOF",
		`{"jsonrpc":"2.0","id":3,"result":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + "}": "depth",
		`[{"jsonrpc":"2.0","id":3,"error":"m"}]`:                                                            "cannot unmarshal",
	} {
		messages, noise := messagesIn([]byte(line))
		assert.Empty(t, noise, "%.80s", line)
		assert.True(t, strings.HasPrefix(string(messages), `{"jsonrpc":"2.0","id":3,"error":{"code":0,"message":"the answer cannot be used: `), "%s", messages)
		assert.Contains(t, string(messages), why)
		assert.Equal(t, 1, strings.Count(string(messages), "\n"))
	}
	messages, _ := messagesIn([]byte(`{"jsonrpc":"2.0","id":"a\"b","error":"m"}`))
	assert.Contains(t, string(messages), `"id":"a\"b",`)

	for _, line := range []string{ // its result is not lost over what is around it
		`{"id":3,"result":{"a":1}}`,
		`{"jsonrpc":"1.0","id":3,"result":{"a":1}}`,
		`{"jsonrpc":"2.0","id":3,"method":null,"params":null,"result":{"a":1},"error":null}`,
		`[{"id":3,"error":null,"result":{"a":1}}]`,
	} {
		messages, noise := messagesIn([]byte(line))
		assert.Empty(t, noise, line)
		assert.Equal(t, `{"jsonrpc":"2.0","id":3,"result":{"a":1}}`+"\n", string(messages), line)
	}
}
