package field_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/port/internal/field"
)

func TestNear(t *testing.T) {
	words := []string{"text", "truncated", "max"}
	for got, want := range map[string]string{
		"txt":       ` (did you mean "text"?)`,
		"truncatd":  ` (did you mean "truncated"?)`,
		"turncated": ` (did you mean "truncated"?)`,
		"x":         ``,
		"":          ``,
		"zebra":     ``,
	} {
		require.Equal(t, want, field.Near(got, words), got)
	}
	require.Equal(t, " (known: text, truncated, max)", field.Hint("zebra", words))
}

func TestGot(t *testing.T) {
	for raw, want := range map[string]string{
		`{"a":1}`: "an object", `[]`: "a list", `"x"`: "a string", `1.50`: "1.50", `true`: "true", `null`: "null", ``: "nothing", `x`: "bytes that are not JSON",
	} {
		require.Equal(t, want, field.Got([]byte(raw)))
	}
}

// The first fault stays, and nothing is read behind it.
func TestFirstFaultStays(t *testing.T) {
	o := field.Open("o", []byte(`{"a":1,"b":2,"c":"x"}`), []string{"a", "b", "c"})
	var text string
	o.Text("a", &text)
	o.Text("c", &text)
	o.Take(errors.New("later"))
	require.EqualError(t, o.Err(), "o.a: got 1, want a string")
	require.Empty(t, text)
}

func TestOpenRefuses(t *testing.T) {
	require.ErrorContains(t, field.Open("o", []byte(`{"a":1,"a":2}`), []string{"a"}).Err(), "o: not JSON")
	require.ErrorContains(t, field.Open("o", []byte(`{"a":`), []string{"a"}).Err(), "o: not JSON")
	require.EqualError(t, field.Open("o", []byte(`{"b":1,"c":2}`), []string{"a"}).Err(), `o: unknown key "b" (known: a)`)
}

func TestWrite(t *testing.T) {
	m := field.Map{"b": field.Whole(-3), "a": field.Texts([]string{"<x>", "\xff", "\n"}), "c": field.Number(1e21), "d": field.Array(nil)}
	require.Equal(t, `{"a":["<x>","`+"\uFFFD"+`","\n"],"b":-3,"c":1e+21,"d":[]}`, string(m.JSON()))
	require.True(t, json.Valid(m.JSON()))
	require.Equal(t, `{}`, string(field.Map{}.JSON()))
}

func TestSound(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for raw, want := range map[string]bool{
		`{"a":1}`: true, ` [1, "x"] `: true, `null`: true, deep(100): true, `"\ud83d\ude00"`: true,
		`{"a":1,"a":2}`: false, `{"a":"\ud83d"}`: false, "\"\xff\"": false, deep(101): false, `{"a":`: false, `{} {}`: false, `{}x`: false,
	} {
		require.Equal(t, want, field.Sound([]byte(raw)), raw)
	}
}
