package change_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port/internal/change"
)

func request(t *testing.T, raw string) *kernel.Request {
	t.Helper()
	r, err := kernel.ParseRequest(json.RawMessage(raw))
	require.NoError(t, err)
	return r
}

func TestRequests(t *testing.T) {
	long := strings.Repeat("é", 50)
	for _, c := range []struct {
		name, got, want string
		lines           []string
	}{
		{"the same", `{"messages":[]}`, `{"messages":[]}`, nil},
		{"a text", `{"messages":[{"content":"one","role":"user"}]}`, `{"messages":[{"content":"two","role":"user"}]}`,
			[]string{`messages[1].content: got "one", want "two"`}},
		{"a long text", `{"messages":[{"content":"` + long + `a","role":"user"}]}`, `{"messages":[{"content":"` + long + `b","role":"user"}]}`,
			[]string{`messages[1].content: got "…ééééééééééa", want "…ééééééééééb" (from byte 101)`}},
		{"a message more", `{"messages":[{"role":"user"}]}`, `{"messages":[]}`, []string{`messages[1]: got {"role":"user"}, want nothing`}},
		{"a message less", `{"messages":[]}`, `{"messages":[{"role":"user"}]}`, []string{`messages[1]: got nothing, want {"role":"user"}`}},
		{"a tool between", `{"messages":[],"tools":[{"name":"a"},{"name":"b"},{"name":"c"}]}`, `{"messages":[],"tools":[{"name":"a"},{"name":"c","description":"d"}]}`,
			[]string{`tools.b: got {"name":"b"}, want nothing`, `tools.c.description: got nothing, want "d"`}},
		{"system and number", `{"messages":[],"system":"x","params":{"n":1}}`, `{"messages":[],"params":{"n":1.0}}`,
			[]string{`params.n: got 1, want 1.0`, `system: got "x", want nothing`}},
		{"a type", `{"messages":[{"content":[],"role":"user"}]}`, `{"messages":[{"content":"","role":"user"}]}`,
			[]string{`messages[1].content: got [], want ""`}},
		{"bytes alone", `{"messages":[{"role":"user","content":"x"}]}`, `{"messages":[{"content":"x","role":"user"}]}`,
			[]string{"the same values, written with other bytes"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, want := request(t, c.got), request(t, c.want)
			lines := change.Requests(got, want)
			require.Equal(t, c.lines, lines)
			require.Equal(t, len(c.lines) == 0 || c.name == "bytes alone", change.Between(got, want) == 0)
		})
	}
}

func TestManyAreCounted(t *testing.T) {
	got := request(t, `{"messages":[`+strings.Repeat(`{"role":"user"},`, 6)+`{}]}`)
	lines := change.Requests(got, request(t, `{"messages":[]}`))
	require.Len(t, lines, 6)
	require.Equal(t, "2 more", lines[5])
}

func TestLongValuesAreCut(t *testing.T) {
	lines := change.Requests(request(t, `{"messages":[],"system":[`+strings.Repeat(`"ü",`, 60)+`1]}`), request(t, `{"messages":[]}`))
	require.Len(t, lines, 1)
	require.Contains(t, lines[0], "…, want nothing")
	require.Less(t, len(lines[0]), 130)
}
