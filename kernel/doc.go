// Package kernel makes the beats of agent loops durable, budgeted, fenced and
// checkable. A session is a log; a beat appends to it; everything else is a
// fold of the log.
//
//	noun     file         is
//	event    event.go     one entry of a log; record.go is how it is stored
//	session  session.go   a log with its owner, ledger and driver; read.go reads it, close.go ends it
//	ledger   ledger.go    what was granted, reserved, spent, and the state beside the head
//	device   device.go    a frozen bundle of policy: model, tools, fold, filters, cost
//	turn     turn.go      one model call: Request, Answer, LLM; recipe.go stores it, request.go rebuilds it
//	tools    tools.go     the calls of one reply, decided, run, recorded; answer.go reads the reply
//	beat     beat.go      one turn and its tools; enter.go lets it take its turn
//	fold     fold.go      the conversation made of a log
//	outcome  outcome.go   what a beat came to
//
// recovery.go takes a session up after its driver died, views.go and check.go
// read without writing. The kernel does no I/O of its own: it writes to a
// [store.Store] and calls what a [Device] holds.
//
// # How it is driven
//
//  1. Make a [Kernel] on a store with [New].
//  2. [Kernel.Open] a session, or [Kernel.Resume] one: the handle is its driver.
//     [Kernel.Attach] gives a handle that reads and appends beside the driver.
//  3. Append what starts the conversation: [MsgUser].
//  4. Call [Beat] until the Outcome says that the loop is done. The loop is
//     yours.
//  5. [Session.Close]. A session that is not closed can be resumed.
//
// # What holds
//
//	I1 the state beside a head is the fold of the log up to it
//	I2 a balance never falls below zero, and over a tree of sessions the sum of
//	   balances rises only by a grant
//	I3 a handle's tail ends at the head it knows
//	I4 a handle's group index is a suffix of the store's
//	I5 a request rebuilt from its record has the recorded hash
//	I6 what a child was granted, its parent has reserved
//	F1–F3 what a fold answers is pair-closed; see [FoldEvents]
//
// # What is on disk when
//
// Everything recorded so far is on disk before the model is called, before the
// handler of a tool whose effects are not "read" runs, and before Open,
// Resume, Append, Reserve, Spend, Settle and Close answer. What nothing
// outside depends on yet (a reply before its read tools, the result of a tool) is
// written at once and synced with the next of these, or by the store's own
// timer. [Options].Strict waits at every record.
package kernel
