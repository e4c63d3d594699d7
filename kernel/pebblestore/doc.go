// Package pebblestore keeps streams in a Pebble database, in one folder held by
// one process. It is the only importer of Pebble.
//
// # What is on the disk
//
// All numbers are big-endian and unsigned. A str is a two-byte length and that
// many bytes. The first byte of a key says what it is:
//
//	key                                   value
//	'!' "format"                          version u16
//	'!' "closes"                          times closed u64
//	'h' stream                            seq u64 · parent str · state…
//	'r' stream str · seq u64              group str · body…
//	'g' stream str · first u64            group…
//	'i' stream str · group…               first u64
//	'm' stream str · mark…                (empty)
//	'c' parent str · stream…              (empty)
//	'b' SHA-256 [32]byte                  payload…
//
// "…" runs to the end. Heads ('h') carry the bare name, so a listing is in order
// of name; everywhere else a name stands behind its length, so no key of one
// stream is a prefix of another's. For the stream "ab", whose third record is in
// group "b1" and reads "hi":
//
//	'r' 00 02 'a' 'b' 00 00 00 00 00 00 00 03   →   00 02 'b' '1' 'h' 'i'
//
// Records carry no checksum of their own: every block of a table and every
// chunk of the write-ahead log has one, checked at each read from the disk.
// Blobs are checked against their hash.
//
// Beside Pebble's files the folder has
//
//	holder       its lock (flock) is the store's; its text is the holder's pid
//	unfinished   there while the store is being made; what a cut short making
//	             left is swept by the next Open, and only then
//	sock         the socket of package sockstore
//	closes       the "closes" that the store had when it was closed last
//
// # Invariants
//
// They hold in every snapshot, and so after every crash. [Store.Check] walks
// them under these names.
//
//	P1 dense    'r' of s are 1…n           ⇔  'h' of s exists, seq = n ≥ 1
//	P2 owned    'r' 'g' 'i' 'm' of s       ⇒  'h' of s exists
//	P3 groups   'g' (s, k) = G  ⇔  'i' (s, G) = k  ⇔  record k is the first of G in s
//	P4 family   'c' (p, s)  ⇔  'h' of s has parent p ≠ ""
//	P5 blobs    'b' h = d                  ⇒  SHA-256(d) = h
//	P6 form     every key and value reads as drawn above
//	P7 whole    '!' "closes" ≥ the number in the file closes
//
// # Writing
//
// A batch takes the stripes of its streams: under them it is checked against
// the heads, staged and handed to Pebble, which makes it visible and puts it
// into the write-ahead log. Batches of other streams go on meanwhile, and
// waiting for the disk is outside, so committers share syncs.
//
//	Flush   at Apply                            Wait
//	Now     log write and sync start            for that sync
//	Lazy    log write only                      for the next sync of anybody; a timer
//	                                            starts one after 2 ms, Wait at once
//
// The log is one sequence, so a sync that covers a batch covers every batch
// before it (S4), and a Now behind a Lazy costs one sync for both.
//
// # Faults
//
// The first write that the disk refuses is the end of writing: from then on the
// folder is left as it is, the way a power cut would leave it, and every Apply
// and every Wait still open answers that fault ([Store.Fault]). Pebble goes on
// over memory, so that what was applied can still be read, and the next Open
// recovers the folder as after a crash: what a Wait acknowledged is there, each
// batch is whole or absent.
//
// The same overlay opens a folder that must not be written ([Options].ReadOnly).
//
//	st, err := pebblestore.Open(".knl", pebblestore.Options{})
package pebblestore
