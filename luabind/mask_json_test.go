package luabind

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestMaskJSON(t *testing.T) {
	m := &Masker{}
	same := json.RawMessage(`{"a":"hunter-22"}`)
	got, changed := m.MaskJSON(same)
	assert.False(t, changed)
	assert.Equal(t, string(same), string(got))
	for _, secret := range []string{"hunter-22", "short", "thinking", "tool_use", "1234567890", `q"uo\te/é`} {
		m.Add(secret)
	}
	for raw, want := range map[string]string{
		`{"a":"hunter-22"}`:                   `{"a":"***"}`,
		`{"a":["x hunter-22 y",1,null]}`:      `{"a":["x *** y",1,null]}`,
		`{"hunter-22":1,"a":"b"}`:             `{"***":1,"a":"b"}`,
		`{"hunter-22":1,"x-hunter-22" : 2}`:   `{"***":1,"x-***2" : 2}`,
		`{"a":"\u0068unter-22","b":"\u00e9"}`: `{"a":"***","b":"\u00e9"}`,
		`{"a":"q\"uo\\te/é"}`:                 `{"a":"***"}`,
		`{"a":"q\"uo\\te\/\u00e9"}`:           `{"a":"***"}`,
		`{"a":"{\"b\":\"q\\\"uo\\\\te/é\"}"}`: `{"a":"{\"b\":\"***\"}"}`,
		`{"type":"thinking","a":"tool_use"}`:  `{"type":"thinking","a":"tool_use"}`,
		`{"a":"short"}`:                       `{"a":"short"}`,
		`{"a":1234567890}`:                    `{"a":1234567890}`,
		`{"a":"1234567890"}`:                  `{"a":"***"}`,
		`{}`:                                  `{}`,
		`null`:                                `null`,
		``:                                    ``,
	} {
		before := strings.Clone(raw)
		got, changed := m.MaskJSON(json.RawMessage(raw))
		assert.Equal(t, want, string(got), raw)
		assert.Equal(t, raw != want, changed, raw)
		assert.Equal(t, before, raw, "the text that was given is not changed")
	}
}

// Law: what MaskJSON answers is valid JSON when it was, holds no secret at any
// place, and is its own mask.
func TestMaskJSONLaw(t *testing.T) {
	secrets := []string{"hunter-22", `q"uo\te/é`, longSecret}
	m := &Masker{}
	for _, s := range secrets {
		m.Add(s)
	}
	text := rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(secrets), rapid.String(), rapid.SampledFrom([]string{`"`, `\`, "…", "\n[... 3 bytes cut ...]\n", longSecret[:20]})), 0, 4).Draw(t, "parts")
		return strings.Join(parts, "")
	})
	rapid.Check(t, func(t *rapid.T) {
		nested, err := json.Marshal(rapid.SliceOfN(text, 0, 3).Draw(t, "nested"))
		require.NoError(t, err)
		raw, err := json.Marshal(map[string]any{text.Draw(t, "key"): text.Draw(t, "value"), "list": []string{string(nested)}})
		require.NoError(t, err)
		got, _ := m.MaskJSON(raw)
		require.True(t, json.Valid(got), "%s", got)
		var back map[string]any
		require.NoError(t, json.Unmarshal(got, &back))
		for _, s := range secrets {
			inJSON, _ := json.Marshal(s)
			require.NotContains(t, string(got), strings.Trim(string(inJSON), `"`))
			for k, v := range back {
				require.NotContains(t, k, s)
				if v, ok := v.(string); ok {
					require.NotContains(t, v, s)
				}
			}
		}
		again, changed := m.MaskJSON(got)
		require.False(t, changed, "%s → %s", got, again)
	})
}

// Law: however a text is split into writes, its secrets are hidden, and nothing
// else is lost or moved.
func TestMaskWriterLaw(t *testing.T) {
	m := &Masker{}
	for _, s := range []string{"hunter-22", "hunter-22-more", "one-x\ntwo-y", "abab"} {
		m.Add(s)
	}
	piece := rapid.OneOf(rapid.SampledFrom([]string{"hunter-22", "hunter-22-more", "one-x", "two-y", "hunt", "er-22", "\n", " ", "h", "ab", "abab"}), rapid.StringN(0, 5, -1))
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "pieces"), "")
		var out bytes.Buffer
		w := m.Writer(&out)
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			wrote, err := w.Write([]byte(rest[:n]))
			require.NoError(t, err)
			require.Equal(t, n, wrote)
			rest = rest[n:]
		}
		require.NoError(t, w.Flush())
		require.NotContains(t, out.String(), "hunter-22")
		require.NotContains(t, out.String(), "one-x")
		require.Equal(t, m.Mask(text), out.String())
	})
}

// Law: no whole key shows, whatever the two or three writes that share it and
// whatever stands in front of it.
func TestMaskWriterHoldsEveryBeginning(t *testing.T) {
	const key = "sk-verysecretkey123"
	m := &Masker{}
	m.Add(key)
	for before := range 10 {
		text := strings.Repeat("x", before) + key + "yz"
		for first := range len(text) {
			for second := first; second < len(text); second++ {
				var out bytes.Buffer
				w := m.Writer(&out)
				for _, part := range []string{text[:first], text[first:second], text[second:]} {
					_, err := w.Write([]byte(part))
					require.NoError(t, err)
				}
				require.NoError(t, w.Flush())
				require.Equal(t, m.Mask(text), out.String(), "%q %q %q", text[:first], text[first:second], text[second:])
			}
		}
	}
}

func TestMaskWriterHoldsOnlyWhatMayBeASecret(t *testing.T) {
	m := &Masker{}
	var out bytes.Buffer
	w := m.Writer(&out)
	say := func(text, want string) {
		t.Helper()
		_, err := w.Write([]byte(text))
		require.NoError(t, err)
		assert.Equal(t, want, out.String())
	}
	say("sk-1", "sk-1")
	m.Add("sk-12345")
	say(" name? ", "sk-1 name? ")
	say("s", "sk-1 name? ")
	say("k-12345\n", "sk-1 name? ***\n")
	say("sk-", "sk-1 name? ***\n")
	require.NoError(t, w.Flush())
	assert.Equal(t, "sk-1 name? ***\nsk-", out.String())
	out.Reset()
	m.Add(longSecret)
	say("x\nx "+longSecret[:10], "x\nx ")
	say(longSecret[10:12]+"\n[... 9 bytes cut ...]\n", "x\nx ***\n[... 9 bytes cut ...]\n")
	say(longSecret[30:]+"\ny", "x\nx ***\n[... 9 bytes cut ...]\n***\ny")
	say(longSecret[30:], "x\nx ***\n[... 9 bytes cut ...]\n***\ny"+longSecret[30:])
	out.Reset()
	out.WriteString("sk-1 name? ***\nsk-")
	assert.Equal(t, "sk-1 name? ***\nsk-", out.String())
	_, err := m.Writer(brokenWriter{}).Write([]byte("x"))
	assert.ErrorContains(t, err, "the pipe is gone")
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("the pipe is gone") }
