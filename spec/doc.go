// Package spec holds the proofs that see the whole tree: the Lua specs of
// everything a script can reach (*_spec.lua, run by knl spec), and the tests
// that hold the tree against its own rules.
//
//	file             holds
//	spec_test.go     the run of every spec in both modes, and that no function is without
//	embed.go         the specs as files, for knl vendor
//	layout_test.go   what stands where, and what may import what
//	house_test.go    the rules of style that a machine can see
package spec
