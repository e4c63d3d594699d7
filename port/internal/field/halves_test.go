package field_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/port/internal/field"
)

func TestHalves(t *testing.T) {
	for name, c := range map[string]struct {
		pieces, want []string
	}{
		"in two":            {[]string{`"a\ud83d"`, `"\ude00b"`}, []string{"a", "😀b"}},
		"large letters":     {[]string{`"\uD83D"`, `"\uDE00"`}, []string{"", "😀"}},
		"nothing between":   {[]string{`"\ud83d"`, `""`, `"\ude00"`}, []string{"", "", "😀"}},
		"two of them":       {[]string{`"\ud83d"`, `"\ude00\ud83d"`, `"\ude01"`}, []string{"", "😀", "😁"}},
		"whole":             {[]string{`"\ud83d\ude00"`, `"x"`}, []string{"😀", "x"}},
		"no other half":     {[]string{`"\ud83d"`, `"x"`}, []string{"", "\uFFFDx"}},
		"never one":         {[]string{`"x"`, `"y\ud83d"`}, []string{"x", "y", "\uFFFD"}},
		"the second alone":  {[]string{`"\ude00"`}, []string{"\uFFFD"}},
		"a slash before":    {[]string{`"\\ud83d"`, `"\\ude00"`}, []string{`\ud83d`, `\ude00`}},
		"slashes before":    {[]string{`"\\\ud83d"`, `"\ude00"`}, []string{`\`, "😀"}},
		"of no half":        {[]string{`"\u00e9"`, `"\ud7ff"`}, []string{"é", "\uD7FF"}},
		"what is no string": {[]string{`7`, `null`, `{}`}, []string{"7", "", ""}},
	} {
		var h field.Halves
		var got []string
		for _, p := range c.pieces {
			got = append(got, h.Text(json.RawMessage(p)))
		}
		if rest := h.Rest(); rest != "" {
			got = append(got, rest)
		}
		require.Equal(t, c.want, got, name)
	}
}
