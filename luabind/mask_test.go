package luabind

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestMask(t *testing.T) {
	m := &Masker{}
	assert.Equal(t, "sk-12345", m.Mask("sk-12345"))
	for _, secret := range []string{"sk-12345", "sk-12345-long", "abc", "", "line one\nline two\n", `quo"te`, "sk-12345"} {
		m.Add(secret)
	}
	for text, want := range map[string]string{
		"key=sk-12345!":          "key=***!",
		"sk-12345-long sk-12345": "*** ***",
		"abc":                    "abc",
		"saw line two there":     "saw *** there",
		"line one\nline two":     "***",
		`{"k":"quo\"te"}`:        `{"k":"***"}`,
		`line one\nline two`:     `***`,
		"":                       "",
	} {
		assert.Equal(t, want, m.Mask(text), text)
	}
}

func TestMaskIsSafeForManyGoroutines(t *testing.T) {
	m := &Masker{}
	var wg sync.WaitGroup
	for _, secret := range []string{"alpha-secret", "beta-secret", "gamma-secret"} {
		wg.Go(func() {
			m.Add(secret)
			assert.Equal(t, "***", m.Mask(secret))
		})
	}
	wg.Wait()
	assert.Equal(t, "*** *** ***", m.Mask("alpha-secret beta-secret gamma-secret"))
}

const longSecret = "sk-0123456789-LONG-SECRET-abcdefghijklmnopqrstuv"

func TestMaskHidesSpellingsAndPieces(t *testing.T) {
	m := &Masker{}
	m.Add(longSecret)
	m.Add(`a"b\c/<é>&% d`)
	for text, want := range map[string]string{
		`x a"b\c/<é>&% d y`:                                                      "x *** y",
		`{"k":"a\"b\\c/<é>&% d"}`:                                                `{"k":"***"}`,
		`"a\"b\\c/\u003cé\u003e\u0026% d"`:                                       `"***"`,
		`"{\"k\":\"a\\\"b\\\\c/<é>&% d\"}"`:                                      `"{\"k\":\"***\"}"`,
		`?q=a%22b%5Cc%2F%3C%C3%A9%3E%26%25+d`:                                    `?q=***`,
		`/a%22b%5Cc%2F%3C%C3%A9%3E&%25%20d`:                                      `/***`,
		`got "` + longSecret[:40] + `"…, want`:                                   `got "***"…, want`,
		longSecret[:20] + "…":                                                    "***…",
		"head " + longSecret[:9] + "\n[... 9 bytes cut ...]\n" + longSecret[30:]: "head ***\n[... 9 bytes cut ...]\n***",
		"ends in " + longSecret[:8]:                                              "ends in ***",
		longSecret[len(longSecret)-8:] + " begins":                               "*** begins",
		"ends in " + longSecret[:7]:                                              "ends in " + longSecret[:7],
		longSecret[:12] + " in the middle":                                       longSecret[:12] + " in the middle",

		// the mark as a quoted text, and as JSON in JSON, has it
		`{"out":"x` + longSecret[:9] + `\n[... 9 bytes cut ...]\n` + longSecret[30:] + `y"}`: `{"out":"x***\n[... 9 bytes cut ...]\n***y"}`,
		`"x` + longSecret[:9] + `\\n[... 9 bytes cut ...]\\n` + longSecret[30:] + `y"`:       `"x***\\n[... 9 bytes cut ...]\\n***y"`,
		`…"` + longSecret[30:] + ` y`: `…"*** y`,

		// as providers cut and star a key
		"the key " + longSecret[:12] + "********" + longSecret[40:] + " is wrong": "the key ***" + "********" + "*** is wrong",
		longSecret[:12] + "..." + longSecret[40:] + "!":                           "***...***!",
		"**" + longSecret[:12] + "**":                                             "**" + longSecret[:12] + "**",

		// a piece beside a masked secret, and one beside that
		"x" + longSecret[:9] + longSecret[:8] + longSecret + longSecret[40:] + "y": "x************y",

		// a line, a column and a quoted text have ends of their own
		"one " + longSecret[:9] + "\ntwo":        "one ***\ntwo",
		"one\n" + longSecret[40:] + "\t" + "two": "one\n***\ttwo",
		`got "` + longSecret[:9] + `", want "x"`: `got "***", want "x"`,
	} {
		assert.Equal(t, want, m.Mask(text), text)
	}
}

// Whatever a writer of URLs spells as %XX, in capitals or not: each leaves other
// bytes as they are.
func TestMaskHidesBytesSpelledAsInAURL(t *testing.T) {
	m := &Masker{}
	for _, s := range []string{`Zq"7/\é-Xv2:L m9Rt4Wp1`, "abcd1234", "50%abcd!"} {
		m.Add(s)
	}
	for text, want := range map[string]string{
		`/Zq%227/%5C%C3%A9-Xv2:L%20m9Rt4Wp1/x`:                    `/***/x`,
		`/Zq%227%2F%5c%c3%a9-Xv2%3aL%20m9Rt4Wp1/x`:                `/***/x`,
		`?k=Zq%227%2F%5C%C3%A9%2DXv2%3AL+m9Rt4Wp1&y`:              `?k=***&y`,
		`k%3DZq%25227%252F%255C%25C3%25A9-Xv2%253AL`:              `k%3D***`,   // spelled so twice
		`k%253dZq%252522%2537/%255c%25c3%25a9%252DXv2:L+m9Rt4Wp1`: `k%253d***`, // some bytes once, twice and three times
		`x%252561bcd1234 %2561%2562cd1234 5%25 50%2525abcd%2521`:  `x*** *** 5%25 ***`,
		`Zq%227/%5C%C3%A9-X… cut`:                                 `***… cut`,
		`cut …2:L%20m9Rt4Wp1 and`:                                 `cut …*** and`,
		`%61%62cd1234 and abcd%31234`:                             `*** and ***`,
		`100%abcd1234, %%abcd1234%`:                               `100%***, %%***%`,
		`50%abcd! 50%25abcd%21`:                                   `*** ***`,
		`a 5% rise of %zz and 100%`:                               `a 5% rise of %zz and 100%`,
		`abcd1234%61bcd1234abcd1234`:                              `*********`,
	} {
		assert.Equal(t, want, m.Mask(text), text)
		assert.Equal(t, want, m.Mask(want), text)
		raw, err := json.Marshal([]string{text})
		require.NoError(t, err)
		var got []string
		require.NoError(t, json.Unmarshal(m.MaskResult(raw), &got))
		assert.Equal(t, want, got[0])
		for at := range text { // in two writes, which may part a piece
			if strings.Contains(text, "…") {
				break
			}
			var out strings.Builder
			w := m.Writer(&out)
			w.Write([]byte(text[:at]))
			w.Write([]byte(text[at:]))
			require.NoError(t, w.Flush())
			assert.NotContains(t, out.String(), "1234", "%s | %s", text[:at], text[at:])
			assert.NotContains(t, out.String(), "Wp1", "%s | %s", text[:at], text[at:])
		}
	}
}

// A value begins and ends as ordinary text does: a piece is one when it has
// enough of what is the value's own.
func TestMaskLeavesOrdinaryText(t *testing.T) {
	for secret, c := range map[string]struct{ shown, hidden []string }{
		"postgres://app:pw@db/app": {
			[]string{"postgres", "postgres://", "postgres://app:", "postgres://ap…", "@db/app"},
			[]string{"postgres://app:pw", "postgres://app:pw@db/ap", "://app:pw@db/app"},
		},
		"postgres://app:Zq7Xv2Lm9R@db-01.example.org:5432/production": {
			[]string{"postgres://app:Zq7", "production", "@db-01.example.org:5432/production", "9R@db-01.example.org:5432/production"},
			[]string{"postgres://app:Zq7X", "Lm9R@db-01.example.org:5432/production"},
		},
		"redis://:hunter/hunter@cache/0": {[]string{"redis://"}, []string{"redis://:hunter"}},
		"https://ghp_0123456789abcdef@git.example.org": {
			[]string{"https://", "git.example.org", "@git.example.org"},
			[]string{"https://ghp_", "https://ghp_0123", "cdef@git.example.org"},
		},
		"https://hooks.example.org/services/T0AB/B0CD/Zq7Xv2Lm9Rt4": {
			[]string{"https://", "https://hooks.example.org", "https://hooks.example.org/services/"},
			[]string{"https://hooks.example.org/services/T0AB", "Xv2Lm9Rt4"},
		},
		"https://app@h.example.org/db?password=Zq7Xv2Lm": {[]string{"https://ap"}, []string{"https://app@h.example", "Zq7Xv2Lm"}},
		"sk-ant-api03-Zq7Xv2Lm9Rt4Wp1Ks8": {
			[]string{"sk-ant-api03-", "sk-ant-api03-Zq7"},
			[]string{"sk-ant-api03-Zq7X", "Rt4Wp1Ks8"},
		},
		"sk-verysecretkey123":          {[]string{"sk-very"}, []string{"sk-veryse", "etkey123"}},
		"github_pat_11ABCDEFG0zyxwvut": {[]string{"github_pat_"}, []string{"github_pat_11AB"}},
		"abcdefghijklmnopqrstuvwxyz":   {[]string{"abcdefg"}, []string{"abcdefgh", "stuvwxyz"}},
		"correct-horse-battery-staple": {[]string{"correct-horse", "staple"}, []string{"correct-horse-batt", "battery-staple"}},
		"admin:hunterhunter":           {[]string{"admin:hun"}, []string{"admin:hunt", "terhunter"}},
	} {
		m := &Masker{}
		m.Add(secret)
		assert.Equal(t, "x *** y", m.Mask("x "+secret+" y"))
		for _, s := range c.shown {
			for _, text := range []string{"the driver is " + s, s + " is it", s + "\n\t" + s + "...", `{"driver":"` + s + `"}`} {
				assert.Equal(t, text, m.Mask(text), secret)
			}
		}
		for _, s := range c.hidden {
			for text, want := range map[string]string{s: "***", "one\n" + s + "\ntwo": "one\n***\ntwo", "…" + s + "…": "…***…"} {
				assert.Equal(t, want, m.Mask(text), secret)
			}
		}
	}
}

// However long its words are, a value is learned at once.
func TestMaskLearnsProseAtOnce(t *testing.T) {
	m := &Masker{}
	began := time.Now()
	m.Add(strings.Repeat("an ordinary word ", 100<<10/17))
	assert.Less(t, time.Since(began), 5*time.Second)
}

// In a log only the whole text has ends: its lines and quotes are the script's
// own words.
func TestMaskJSONHidesPieces(t *testing.T) {
	m := &Masker{}
	m.Add(longSecret)
	for raw, want := range map[string]string{
		`["x ` + longSecret[:9] + `"]`:                                       `["x ***"]`,
		`["` + longSecret[40:] + ` x"]`:                                      `["*** x"]`,
		`["x` + longSecret[:9] + `\n[... 9 bytes cut ...]\ny"]`:              `["x***\n[... 9 bytes cut ...]\ny"]`,
		`["x` + longSecret[:9] + `****y"]`:                                   `["x*******y"]`,
		`["x ` + longSecret[:9] + `\ny", "\"` + longSecret[:9] + `\" said"]`: `["x ` + longSecret[:9] + `\ny", "\"` + longSecret[:9] + `\" said"]`,
	} {
		got, _ := m.MaskJSON(json.RawMessage(raw))
		assert.Equal(t, want, string(got), raw)
	}
}

// Of values that overlap nothing shows, not even what only one of them has.
func TestMaskHidesValuesThatOverlap(t *testing.T) {
	m := &Masker{}
	for _, s := range []string{"abcdefgh", "efghijkl", "xyxy"} {
		m.Add(s)
	}
	assert.Equal(t, "-***-", m.Mask("-abcdefghijkl-"))
	assert.Equal(t, "-***-", m.Mask("-xyxyxyxy-"))
	assert.Equal(t, "******", m.Mask("abcdefghabcdefgh"))
}

// Law: a masked text holds no value, and is its own mask.
func TestMaskLaw(t *testing.T) {
	m := &Masker{}
	for _, s := range []string{"hunter-22", longSecret, `a"b\c/<é>&% d-and-more`, "line-one-xxxxxxxx\nline-two-yyyyyyyy", strings.Repeat("ab", 20), "abab"} {
		m.Add(s)
	}
	values := m.table.Load().values
	part := rapid.Custom(func(t *rapid.T) string {
		v := rapid.SampledFrom(values).Draw(t, "value").text
		from := rapid.OneOf(rapid.Just(0), rapid.IntRange(0, len(v))).Draw(t, "from")
		return v[from:rapid.OneOf(rapid.Just(len(v)), rapid.IntRange(from, len(v))).Draw(t, "to")]
	})
	between := rapid.SampledFrom([]string{"", "%", "%61%62", "%6", "%2d22", " ", "x", "…", "\"…", "\n", "\n[... 3 bytes cut ...]\n", `\n[... 3 bytes cut ...]\n`, "...", "***", `"`})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.OneOf(part, between), 0, 6).Draw(t, "parts"), "")
		for _, view := range []maskView{loggedText, resultText, shownText} {
			got := m.table.Load().mask(text, view)
			for _, v := range values {
				if view.level == allValues || !unfitForLog(v.text) {
					require.NotContains(t, got, v.text)
				}
			}
			require.Equal(t, got, m.table.Load().mask(got, view))
		}
	})
}

// The time is that of the text, not of the value: four megabytes with a piece of
// a long key once took half a minute.
func TestMaskTakesTheTimeOfTheText(t *testing.T) {
	key := make([]byte, 2000)
	for i := range key {
		key[i] = "abcdefghijklmnopqrstuvwxyz0123456789"[(i*i+i/7)%36]
	}
	for name, c := range map[string]struct{ secret, text string }{
		"a piece":          {string(key), strings.Repeat("lorem ipsum dolor sit ", 4<<20/22) + string(key[:1000])},
		"nothing but keys": {string(key), strings.Repeat(string(key), 4<<20/len(key))},
		"one letter":       {strings.Repeat("a", 2000), strings.Repeat("a", 4<<20)},
	} {
		t.Run(name, func(t *testing.T) {
			m := &Masker{}
			m.Add(c.secret)
			began := time.Now()
			assert.NotContains(t, m.Mask(c.text), c.secret[:1000])
			assert.Less(t, time.Since(began), 8*time.Second)
		})
	}
}

func TestMaskWarnsOfAnOrdinaryWord(t *testing.T) {
	var warned []string
	m := &Masker{Warn: func(text string) { warned = append(warned, text) }}
	for _, s := range []string{"short", "sk-0123456789", "assistant", "Password", "correcthorsebatterystaple"} {
		m.Add(s)
	}
	assert.Empty(t, warned)
	m.Add("password")
	m.Add("password")
	require.Len(t, warned, 1)
	assert.Contains(t, warned[0], "a secret is an ordinary word")
	assert.NotContains(t, warned[0], "password")
	assert.Equal(t, "the ***_hash", m.Mask("the password_hash"))
}

func TestMaskResult(t *testing.T) {
	m := &Masker{}
	for _, s := range []string{"hunter-22", "1000", "-5.25e10"} {
		m.Add(s)
	}
	for raw, want := range map[string]string{
		`{"a":"x hunter-22","hunter-22":1}`:                      `{"a":"x ***","***":1}`,
		`[1000,10005,21000.5,-1000,"a 1000"]`:                    `["***",10005,21000.5,-1000,"a ***"]`,
		`{"1000":1000,"n":[-5.25e10, 1000 ]}`:                    `{"***":"***","n":["***", "***" ]}`,
		`1000`:                                                   `"***"`,
		`{"xhunter-22":1,"yhunter-22":2,"hunter-22":3,"***3":4}`: `{"x***":1,"y***2":2,"***4":3,"***3":4}`,
		`{"hunter-22":1,"***":2}`:                                `{"***2":1,"***":2}`,
		`{"n":10005,"t":"x"}`:                                    `{"n":10005,"t":"x"}`,
	} {
		assert.Equal(t, want, string(m.MaskResult(json.RawMessage(raw))), raw)
	}
	assert.Nil(t, m.MaskResult(nil))
	assert.Equal(t, `[1]`, string((&Masker{}).MaskResult(json.RawMessage(`[1]`))))
}

func TestLogMasksPieces(t *testing.T) {
	var log bytes.Buffer
	m := &Masker{}
	m.Add(longSecret)
	vm, err := New(Config{Project: t.TempDir(), Modules: Std(StdOptions{Log: &log, Mask: m})})
	require.NoError(t, err)
	cut := longSecret[:20] + `\n[... 9 bytes cut ...]\n` + longSecret[30:]
	_, err = vm.RunString(context.Background(), "chunk", `std.log.info("`+cut+`", { out = "x`+cut+`x", tail = "`+longSecret[30:]+`" })`)
	require.NoError(t, err)
	require.NoError(t, vm.Close())
	assert.Contains(t, log.String(), ` info  ***\n[... 9 bytes cut ...]\n*** {"out":"x***\n[... 9 bytes cut ...]\n***x","tail":"***"}`)
}

func BenchmarkMask(b *testing.B) {
	text := strings.Repeat("lorem ipsum dolor sit amet, a password for https://x/y ", 1<<20/55)
	raw := json.RawMessage(`{"a":"` + text + `"}`)
	for _, n := range []int{16, 256, 4096} {
		m := &Masker{}
		key := "sk-" + strings.Repeat("0123456789abcdef", n/16)
		m.Add(key)
		for name, text := range map[string]string{"without": text, "with a piece": text + key[:12]} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					m.Mask(text)
				}
			})
		}
		b.Run(fmt.Sprintf("json/%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				m.MaskJSON(raw)
			}
		})
	}
}
