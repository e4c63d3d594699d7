package shapes

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A module opens with what it is; a file that is not embedded is there only for
// whoever works in this folder.
func TestEveryModuleIsEmbeddedAndHasAHeader(t *testing.T) {
	files, err := fs.Glob(os.DirFS("."), "lshape/*")
	require.NoError(t, err)
	for _, name := range files {
		text, err := fs.ReadFile(FS, name)
		require.NoError(t, err)
		assert.True(t, strings.HasPrefix(string(text), "--- lshape"), "%s: opens with something else, want a --- comment", name)
	}
	assert.Greater(t, len(files), 5)
}
