package luabind

import (
	"context"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// stdTime is std.time. All times and spans are seconds, with a fraction.
func stdTime() *Module {
	return &Module{
		Name: "std.time",
		Doc:  "Clocks and waiting, in seconds.",
		Funcs: []Func{{
			Name:    "now",
			Returns: "number",
			Doc:     "Seconds since 1970 UTC, to the microsecond. May jump when the clock of the machine is set.",
			Fn: func(c *Call) (int, error) {
				return c.Return(lua.LNumber(float64(time.Now().UnixMicro()) / 1e6))
			},
		}, {
			Name:    "monotonic",
			Returns: "number",
			Doc:     "Seconds since the script started. Never jumps: for measuring spans.",
			Fn: func(c *Call) (int, error) {
				return c.Return(lua.LNumber(time.Since(c.State().(time.Time)).Seconds()))
			},
		}, {
			Name: "sleep",
			Args: []Arg{{Name: "seconds", Kind: Seconds, Doc: "with a fraction"}},
			Doc:  "Waits. Other tasks run meanwhile; cancelling the task ends it.",
			Fn:   sleepSeconds,
		}},
		Open: func(*VM) (any, error) { return time.Now(), nil },
	}
}

func sleepSeconds(c *Call) (int, error) {
	if !Seconds.accepts(c.L, c.Arg(1)) {
		return 0, c.ArgMistake(1, "seconds, 0 or more")
	}
	span := Span(c.Number(1), time.Second)
	return 0, c.Block(func(ctx context.Context) error {
		timer := time.NewTimer(span)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}
