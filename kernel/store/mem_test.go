package store_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/knl-run/knl/kernel/store"
	"github.com/knl-run/knl/kernel/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemIsAStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return store.NewMem() })
}
