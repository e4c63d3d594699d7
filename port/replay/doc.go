// Package replay is a port that plays a recorded session: the n-th model call of
// a new session gets what the n-th call of the recorded one got, as long as it
// asks the same.
//
//	Replay      the port
//	Difference  where a new session first asked something else
//
// # Contract
//
//  1. A session of the new run plays one session of the recorded tree: the first
//     one, parents before children, that none plays yet and whose call of the same
//     number asked the same. So children that run beside each other may be opened
//     in any order. When all are taken, one may be played again.
//  2. Calls are numbered as the log does it (CallOptions.Call): answered and failed
//     ones. A call that its driver did not live to end has no number, and a
//     session that was interrupted and resumed plays like one that was not.
//  3. The hash of a request must be the recorded one (kernel.Request.Hash). Another
//     request fails with kind invalid_request and the places where it differs.
//  4. Recorded answers are answered byte for byte, with the call ids that the
//     recorded session gave them; recorded failures fail again, with their kind.
//  5. A call past the last recorded one, and one outside of a session, fails with
//     kind unknown.
//  6. [Replay.Tool] answers what a recorded tool call came to, so that nothing of
//     a replay reaches the world.
//
// The recorded session is read when the first call comes.
//
// # Counts
//
// A log holds no count and no profile, but what came of them: each llm_request
// with the report of a fold that counted (window.after, .before, .limit, .dropped),
// what beats reserved, what was refused, and the provider's usage. [Replay.Count]
// and [Replay.Profile] answer so that it comes to the same: windows are cut where
// they were, budgets in tokens run out where they did. What no log says is
// estimated: counts of requests that were never sent and are no cut of one that
// was, and the longest reply where the conf is silent. Where a fold's own counting
// may be why a request differs, the difference says so.
package replay
