package luabind

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPathsAreNotTooDeep(t *testing.T) {
	p := newProject(t, nil)
	deep := strings.Repeat("d/", 2000) + "f"
	for _, err := range []error{p.mkdir(deep), p.write(t.Context(), deep, content{})} {
		require.ErrorContains(t, err, `/d/d/"…: leads through 2000 folders, want at most 100`)
		fault, _ := stdFault(err)
		assert.Equal(t, "too_large", fault.Kind)
	}
	at := p.dir
	for range 300 { // as a command may make them
		at = filepath.Join(at, "d")
		require.NoError(t, os.Mkdir(at, 0o755))
	}
	found, err := p.glob(context.Background(), "**")
	require.NoError(t, err)
	assert.Len(t, found, depthLimit+1)
	removed, err := p.remove(t.Context(), "d", true)
	require.NoError(t, err)
	assert.True(t, removed)
}

func TestGlobTakesTimeInProportion(t *testing.T) {
	segments := strings.Split(strings.Repeat("a/", 90)+"b", "/")
	began := time.Now()
	assert.False(t, matchPath(globSegments(strings.Repeat("**/a/", 40)+"c"), segments))
	assert.True(t, matchPath(globSegments(strings.Repeat("**/a/", 40)+"b"), segments))
	assert.True(t, matchPath(globSegments(strings.Repeat("**/", 40)+"b"), segments))
	assert.Less(t, time.Since(began), time.Second)
}

func TestGrepEndsWithItsContext(t *testing.T) {
	p := newProject(t, map[string]string{"f": strings.Repeat("x", 4<<20)})
	s := &lineSearch{projectFiles: p, max: 10}
	require.NoError(t, s.compile(`(?:x|xx){400}y`, false))
	ctx, stop := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer stop()
	began := time.Now()
	assert.ErrorIs(t, s.run(ctx, "."), context.DeadlineExceeded)
	assert.Less(t, time.Since(began), 2*time.Second)
}

func TestGrepReadsALongLineWhole(t *testing.T) {
	p := newProject(t, map[string]string{"f": strings.Repeat("é", 40<<10) + "end\nend\r\n" + "\xffend"})
	s := &lineSearch{projectFiles: p, max: 10}
	require.NoError(t, s.compile(`\bend$|^\W+$|(é|e){3,300}n`, false))
	require.NoError(t, s.run(context.Background(), "f"))
	lines := []int{}
	for _, m := range s.found {
		lines = append(lines, m.line)
	}
	assert.Equal(t, []int{1, 2, 3}, lines)
}

func TestGrepRefusesAPatternThatIsTooLarge(t *testing.T) {
	s := &lineSearch{}
	for pattern, want := range map[string]string{
		strings.Repeat("x", 8193):     "pattern: got 8193 bytes, want at most 8192",
		strings.Repeat("x{1000}", 20): "pattern: its repeats make 20002 steps of it, want at most 10000: repeat less",
		"(?:(?:x{100}){100}){100}":    "pattern: invalid repeat count",
		"(x":                          "pattern: missing closing )",
	} {
		err := s.compile(pattern, false)
		assert.ErrorContains(t, err, want)
		fault, _ := stdFault(err)
		assert.Equal(t, "validation", fault.Kind)
	}
}
