package luabind

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestHeadTail(t *testing.T) {
	for _, c := range []struct {
		limit  int
		writes []string
		want   string
	}{
		{10, nil, ""},
		{10, []string{"0123456789"}, "0123456789"},
		{10, []string{"01234", "56789"}, "0123456789"},
		{10, []string{"0123456789a"}, "01234\n[... 1 bytes cut ...]\n6789a"},
		{10, []string{"0", "123456789a", "b", "cdefgh"}, "01234\n[... 8 bytes cut ...]\ndefgh"},
		{3, []string{"abcdef"}, "ab\n[... 3 bytes cut ...]\nf"},
		{1, []string{"ab", "c"}, "a\n[... 2 bytes cut ...]\n"},
		{6, []string{"aéé€€z"}, "aé\n[... 8 bytes cut ...]\nz"},
		{4, []string{"aéxyz€"}, "a\n[... 8 bytes cut ...]\n"},
		{10, []string{"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"}, "\x80\x80\x80\x80\x80\n[... 2 bytes cut ...]\n\x80\x80\x80\x80\x80"},
		{6, []string{"\xff\xff\xff\xff\xff\xff\xff"}, "\xff\xff\xff\n[... 1 bytes cut ...]\n\xff\xff\xff"},
	} {
		out := headTail{limit: c.limit}
		for _, w := range c.writes {
			n, err := out.Write([]byte(w))
			assert.NoError(t, err)
			assert.Equal(t, len(w), n)
		}
		assert.Equal(t, c.want, out.String(), "limit %d, %q", c.limit, c.writes)
	}
}

// TestLawHeadTail: whatever the writes, head and tail are those of the whole,
// and nothing is said to be cut when all of it fits.
func TestLawHeadTail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 40).Draw(t, "limit")
		whole, out := "", headTail{limit: limit}
		for _, w := range rapid.SliceOfN(rapid.StringMatching(`[a-z]{0,30}`), 0, 8).Draw(t, "writes") {
			whole += w
			out.Write([]byte(w))
		}
		if len(whole) <= limit {
			assert.Equal(t, whole, out.String())
			return
		}
		head, tail, cut := strings.Cut(out.String(), "\n[... ")
		_, tail, _ = strings.Cut(tail, "]\n")
		assert.True(t, cut)
		assert.Equal(t, whole[:limit-limit/2], head)
		assert.Equal(t, whole[len(whole)-limit/2:], tail)
	})
}
