package main

import (
	"math"

	"golang.org/x/sys/unix"
)

// closeOnExecFrom marks all descriptors from first on at one blow, which systems
// before Linux 5.11 cannot.
func closeOnExecFrom(first uint) bool {
	return unix.CloseRange(first, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil
}
