package luabind

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
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
