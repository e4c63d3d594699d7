package kernel_test

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
)

// A request is made again from few records however long its session is: of a
// window one is written against none at least every 64 beats. A request that
// grows with its session is written against the one before it throughout.
func TestRequestsAreMadeFromFewRecords(t *testing.T) {
	window := func(ctx context.Context, log kernel.Log, d *kernel.Device) (*kernel.Request, error) {
		beats, events, err := log.Beats(ctx, 4, true)
		for _, r := range beats {
			events = append(events, r.Events...)
		}
		return kernel.FoldEvents(events, d), err
	}
	const beats = 200
	for name, c := range map[string]struct {
		fold kernel.Fold
		own  int // requests that are written against none
	}{"window": {window, 4}, "all": {kernel.DefaultFold, 1}} {
		t.Run(name, func(t *testing.T) {
			k, _ := newMem(t)
			s := opened(t, k)
			n := 0
			d := device(t, kernel.Config{Fold: c.fold, Tools: only("look"), LLM: kernel.LLMFunc(func(context.Context, *kernel.Request, kernel.CallOptions) (*kernel.Answer, error) {
				n++
				return calls(use("", "look", `{"n":`+string(jsonOf(n))+`}`)), nil
			})})
			for range beats {
				require.Equal(t, kernel.StatusOK, kernel.Beat(ctxb, s, d, kernel.BeatOptions{}).Status)
			}
			own, inline := 0, 0
			for _, ev := range logOf(t, s) {
				if ev.Kind != kernel.LLMRequest {
					continue
				}
				var recipe struct{ Base int64 }
				require.NoError(t, json.Unmarshal(ev.Data, &recipe))
				if recipe.Base == 0 {
					own++
				}
				inline += strings.Count(string(ev.Data), `{"message":`)
				_, err := s.Request(ctxb, ev.Beat)
				require.NoError(t, err)
			}
			require.Equal(t, c.own, own)
			require.Zero(t, inline, "messages stand in the log already")
			requireSound(t, k)
		})
	}
}

// A handler that ends its goroutine has answered nothing, and that is recorded.
func TestAHandlerThatEndsItsGoroutine(t *testing.T) {
	k, _ := newMem(t)
	s := opened(t, k)
	tools := map[string]kernel.Tool{
		"gone": {Parallel: true, Effects: kernel.Read, Handler: func(context.Context, json.RawMessage, kernel.ToolContext) (json.RawMessage, error) {
			runtime.Goexit()
			return nil, nil
		}},
		"fine": {Parallel: true, Effects: kernel.Read, Handler: gives(`"fine"`)},
	}
	d := device(t, kernel.Config{Tools: tools, LLM: replies(calls(use("a", "gone", ""), use("b", "fine", "")), says("so"))})
	out := kernel.Beat(ctxb, s, d, kernel.BeatOptions{})
	require.Equal(t, kernel.StatusOK, out.Status)
	require.Equal(t, []kernel.ToolRun{{CallID: "a", Name: "gone"}, {CallID: "b", Name: "fine", OK: true}}, out.Reply.Tools)
	results := []string{}
	for _, ev := range logOf(t, s) {
		if ev.Kind == kernel.ToolResult {
			results = append(results, field(ev, "call_id")+" "+field(ev, "result"))
		}
	}
	require.Len(t, results, 2)
	require.Contains(t, results[0], "the handler ended its goroutine and answered nothing")
	requireSound(t, k)
}
