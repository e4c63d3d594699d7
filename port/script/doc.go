// Package script is the port of a scripted model: it answers what a list or a
// function says, delays and faults included, so that a loop runs without a key,
// without a network, and the same way every time.
//
//	Reply   one answer, or one failure
//	Call    one tool call of a Reply
//	Fail    how a call fails
//	Script  the port
//
// # Contract
//
//  1. The n-th model call of a session gets the n-th reply; failed calls count.
//     The number is the log's (CallOptions.Call), not this process's: a run that
//     was killed and resumed goes on with the reply after the last one recorded.
//  2. So every session starts at the first reply, sessions may share a Script,
//     and a request that was asked again gets the next reply, not the same one.
//     Where two models take turns in one session, both see its one numbering;
//     [Func] answers by whatever else tells them apart.
//  3. Past the last reply a call fails with kind unknown, naming the beat.
//  4. The i-th call of the n-th reply has the id call_<n>_<i>, both from 1, which
//     occurs once in a session. A reply may say another id, or none.
//  5. Usage is estimated from bytes, four to a token, unless the reply states it.
//  6. A reply may be as bad as a provider's: no content, blocks that are none,
//     ids missing or used twice, calls without a name, an unknown stop reason.
//
// In a script:
//
//	{ text = "…" }  { calls = { { "tool", { args } }, … } }  { refuse = "…" }
//	{ fail = { kind = "rate_limited", retry_after = 2 } }    { text = "…", truncated = true }
//
// each with delay (seconds), thinking, usage and stop; { content = { … } } gives
// the blocks themselves, and { name = …, args = …, id = … } is a call in full.
package script
