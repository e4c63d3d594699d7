package pebblestore

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/knl-run/knl/kernel/store"
	"github.com/knl-run/knl/kernel/store/storetest"
)

// noLeaks holds a test to ending what it began.
func noLeaks(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

func TestPebbleIsAStoreInMemory(t *testing.T) {
	noLeaks(t)
	storetest.Run(t, func(t *testing.T) store.Store {
		st, err := Open("db", Options{FS: vfs.NewMem()})
		require.NoError(t, err)
		return st
	})
}
