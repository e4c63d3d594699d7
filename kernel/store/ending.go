package store

import "context"

type runKey struct{}

// Within answers ctx with run known as the run that it serves. What is recorded
// behind the end of a run is recorded under a context that does not end; by
// [RunOf] a store learns all the same that somebody waits for the process to end.
func Within(ctx, run context.Context) context.Context {
	return context.WithValue(ctx, runKey{}, run)
}

// RunOf answers the run that ctx serves, nil when it serves none. It outlasts
// [context.WithoutCancel].
func RunOf(ctx context.Context) context.Context {
	run, _ := ctx.Value(runKey{}).(context.Context)
	return run
}
