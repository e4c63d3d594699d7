// Package sockstore shares a store between processes: the one that holds it
// serves a Unix socket, the others speak the whole [store.Store] interface over
// it.
//
//	st, held, err := sockstore.Open(ctx, ".knl", pebblestore.Options{})
//
// # The wire
//
// Both sides open with a hello: the eight bytes "knl-sock", the version (u16)
// and the process id (u32), big-endian. A side that meets another version says
// so and hangs up. Then frames go both ways:
//
//	length u32 · call u64 · kind u8 · payload            length covers what follows
//
// The client numbers its calls. Payloads are built of uvarints, of byte strings
// behind their uvarint length, and of 32-byte hashes; wire.go has one pair of
// functions for each.
//
//	call                                   answers
//	apply   flush, batch                   answer; for Now also durable, later
//	wait                                   answer, when all that this connection
//	                                       applied is durable
//	page    stream, from, to               answer: end, records; 1 MB at a time
//	head groups findGroup marked blob      answer
//	streams children
//	watch   stream                         answer when it watches, token …, end
//	cancel                                 nothing; ends the call of that number
//
// Any call may be answered by a fault: a code for the errors of package store,
// and the text.
//
// # What holds
//
//	W1 whole     a frame that did not arrive whole has no effect
//	W2 apart     a client that does not read blocks its own connection, nobody else
//	W3 ordered   applies of one connection are ordered, so wait covers them (S4)
//	W4 gone      when the connection ends, every open call answers [Gone]; so it does
//	             when the holder has not answered one for 20 seconds, or for 2 of
//	             a run that has ended
//	W5 answered  a holder that closes answers every call that it has read
//	W6 complete  a [Through] goes on only in a store that has all it applied
//
// An Apply whose connection ended may have been applied or not. Its expectation
// makes asking again safe: a Through sends the batch again, and answers Gone when
// that conflicts.
package sockstore
