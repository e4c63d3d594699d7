// Package luabind is the Lua host: a VM that runs one script, and the modules
// that the script sees. It is the only importer of gopher-lua.
//
//	VM        one script or spec file: globals, limits, tasks, modules     vm.go
//	Module    a host module: functions, types and their documentation      module.go
//	Call      one call of a host function: arguments, waits, callbacks     call.go
//	Task      a line of Lua on a goroutine of its own                      task.go
//	thread    one Lua stack; a protected call gets a fresh one             thread.go
//	strand    a line of execution: a task, an entry from Go, a coroutine   thread.go
//	baton     the right to run Lua; one a VM                               baton.go
//	meter     counts instructions, and ends what is over a limit           meter.go
//
// # The contract of a host function
//
//  1. It is one entry of a [Module]: name, arguments, what it returns, one
//     sentence. The entry is what `knl types` and `knl help` print.
//  2. It unpacks its arguments by the accessors of [Call] before anything else.
//     They raise at the line of the caller: got, want, the nearest name.
//  3. It holds the baton. Whatever may wait does so inside [Call.Block], with the
//     context it is given, and touches no Lua value there.
//  4. It calls Lua by [Call.Invoke]; code inside a Block comes back by
//     [VM.Enter]. Nobody calls PCall, NewThread, SetContext or SetMx of the library.
//  5. Its error is raised: text of [Call.Mistake] at the caller's line, any other
//     error as a value with kind, method, retryable and message. An error that
//     Lua raised passes through Go as the very value.
//  6. It may be unwound by a Go panic at any call into Lua; what it holds it
//     releases in a defer.
//
// # Invariants
//
//	I1 baton      at most one goroutine of a VM runs Lua or touches its values
//	I2 frames     an error closes or keeps the upvalues of its own frames only: a
//	              thread whose function raised is never run again
//	I3 uncaught   no construct of Lua and no host function swallows a limit or an
//	              abort: after it the next instruction raises it again
//	I4 count      instructions run = the sum of the grants − what is left of the last,
//	              over all threads; the budget is exact
//	I5 nursery    when a scope, task or run has ended, every task it spawned has
//	I6 collected  a suspended coroutine without a handle has no goroutine for long
//	I7 stitched   a traceback reaches from the error to the main chunk across pcall,
//	              coroutines, tasks and entries from Go
//	I8 alive      no script ends the process: stack overflow, a Go panic and a huge
//	              string are errors with file:line
//
// # The language
//
// Lua 5.1 with goto. What differs from the reference, and from gopher-lua:
//
//   - pcall, xpcall, error, assert and coroutine are the host's. A coroutine may
//     yield anywhere. coroutine.wrap raises the very value; xpcall passes
//     arguments on. 200 protected calls or resumes may nest, 4096 calls in one.
//   - The string library is the host's: patterns know %f, can be interrupted, and
//     their work counts as instructions; lower and upper change ASCII only;
//     string.format("%d", 3.7) raises (use math.floor), %s takes any value.
//   - math.huge is infinite, and prints as inf (joined by .. it is +Inf);
//     tonumber("1e3") is 1000; "\x41" is no escape: Lua 5.1 has none.
//   - Arithmetic on strings reads them as Go does: "010" + 1 is 9. Use tonumber.
//   - # counts to a border of the array part, as in Lua: of a list with holes it
//     may be any. Indices above 16 million are not part of the array.
//   - io, dofile, loadfile, module, newproxy, package.loadlib, string.dump, and of
//     os all but clock, date, difftime, getenv and time are not there; of debug
//     there are traceback and getinfo. load and loadstring take source, not bytecode.
//   - A source has at most 1 MiB, 200 levels of nesting and 1000 operators in one
//     expression.
//
// # Limits
//
// [Limits] bounds instructions, wall time, memory and the length of a string.
// Instructions and time are unbounded by default, memory is 1 GiB of the
// process, a string 256 MiB. The context of a run ends its waits and then its
// Lua, so an interrupt always works.
package luabind
