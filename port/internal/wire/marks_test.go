package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/port/internal/wire"
)

func TestEnds(t *testing.T) {
	for roles, want := range map[string][]int{
		"":       nil,
		"u":      {0},
		"uau":    {2, 0},
		"uauau":  {4, 2},
		"uauua":  {3, 0},
		"uuauuu": {5, 1},
		"aa":     nil,
	} {
		require.Equal(t, want, wire.Ends(len(roles), 2, func(i int) bool { return roles[i] == 'u' }), roles)
	}
}
