//go:build !linux

package main

// closeOnExecFrom marks all descriptors from first on, where a system can.
func closeOnExecFrom(uint) bool { return false }
