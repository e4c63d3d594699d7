package cassette_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/port/cassette"
)

// A run that was killed leaves at most one line without its end, wherever it is
// cut.
func TestATornEndIsLeftOut(t *testing.T) {
	s := newShelf(t)
	record := s.open(cassette.Options{Port: &echo{}})
	for _, text := range []string{"one", "two"} {
		_, _, err := call(t, record, asks(t, text))
		require.NoError(t, err)
	}
	whole := s.text()
	lines := strings.SplitAfter(whole, "\n")
	for at := 1; at < len(whole); at++ {
		s.write(whole[:at])
		var notes []string
		c := s.open(cassette.Options{Note: func(text string) { notes = append(notes, text) }})
		torn := at != len(lines[0]) && at != len(lines[0])+len(lines[1])
		require.Equal(t, torn, len(notes) == 1, "cut at %d: %v", at, notes)
		_, _, err := call(t, c, asks(t, "one"))
		require.Equal(t, at >= len(lines[0])+len(lines[1]), err == nil, "cut at %d", at)
	}
}

func TestADamagedFileIsRefused(t *testing.T) {
	const head = "{\"knl_cassette\":1}\n"
	for text, want := range map[string]string{
		"":                                     "the file is empty",
		"hello\n":                              "line 1: got something else",
		"hello":                                "line 1: got something else",
		"{}\n":                                 "line 1: got something else",
		"{\"knl_cassette\":2}\n":               "line 1: written in form 2, this knl reads form 1: use a newer knl",
		head + "nonsense\n":                    "line 2: got nonsense, want an object",
		head + "{}\n":                          "line 2: got nothing, want one of call, count, profile",
		head + "{\"cal\":1}\n":                 `line 2: unknown key "cal" (did you mean "call"?)`,
		head + "{\"call\":{}}\n":               "line 2.call.request: got nothing, want an object",
		head + "{\"call\":{\"request\":{}}}\n": "request.messages: got nothing, want an array",
		head + "{\"call\":{\"request\":{\"messages\":[]}}}\n":                                                    "both or neither of answer and error",
		head + "{\"call\":{\"answer\":{\"usage\":{\"input_tokens\":-1}},\"request\":{\"messages\":[]}}}\n":       "line 2.call.answer.usage.input_tokens: got -1",
		head + "{\"call\":{\"answer\":{},\"deltas\":[[1]],\"request\":{\"messages\":[]}}}\n":                     "want a list of pairs of text",
		head + "{\"call\":{\"answer\":{},\"like\":{\"call\":1,\"messages\":0},\"request\":{\"messages\":[]}}}\n": "names call 1 and 0 of its messages, which are not above",
		head + "{\"count\":{\"tokens\":\"x\"}}\n":                                                                "line 2.count.tokens: got a string",
	} {
		s := newShelf(t)
		s.write(text)
		_, err := cassette.New(cassette.Options{Dir: s.dir, Path: "tapes/a.ndjson", Port: &echo{}})
		require.ErrorContains(t, err, `cassette "tapes/a.ndjson": `, text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestThePathStaysInItsFolder(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(dir, "out")))
	for _, path := range []string{"../x", "out/x", "/etc/knl-cassette"} {
		c, err := cassette.New(cassette.Options{Dir: dir, Path: path, Port: &echo{}})
		if err == nil {
			_, _, err = call(t, c, asks(t, "one"))
		}
		require.ErrorContains(t, err, "cassette", path)
	}
}

// A file grows with the conversation, not with its square.
func TestARequestIsWrittenOnce(t *testing.T) {
	s := newShelf(t)
	record := s.open(cassette.Options{Port: &echo{}})
	size := func(n int) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = fmt.Sprintf(`{"content":"message %d %s","role":"user"}`, i, strings.Repeat("x", 500))
		}
		return `{"messages":[` + strings.Join(parts, ",") + `],"system":"` + strings.Repeat("s", 500) + `"}`
	}
	for n := 1; n <= 50; n++ {
		_, _, err := call(t, record, request(t, size(n)))
		require.NoError(t, err)
	}
	require.Less(t, len(s.text()), 2*len(size(50)))
	played := s.open(cassette.Options{})
	for n := 50; n >= 1; n-- {
		a, _, err := call(t, played, request(t, size(n)))
		require.NoError(t, err)
		require.Contains(t, string(a.Content), fmt.Sprintf(`"yes %d"`, n))
	}
}
