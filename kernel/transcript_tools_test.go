package kernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
)

// toolScene is a beat with the given calls and one after it.
func toolScene(t *testing.T, name string, c kernel.Config, blocks ...string) {
	play(t, name, func(x *stage) {
		s := x.open(kernel.Open{}, "go")
		if c.Tools == nil {
			c.Tools = named(blocks)
		}
		c.LLM = replies(calls(blocks...), says("done"))
		d := device(t, c)
		x.beat(s, d)
		x.folded(s)
		x.beat(s, d)
	})
}

// named answers the tools of the box that some blocks call.
func named(blocks []string) map[string]kernel.Tool {
	out := map[string]kernel.Tool{}
	for name, tool := range toolbox() {
		if strings.Contains(strings.Join(blocks, ""), string(jsonOf(name))) {
			out[name] = tool
		}
	}
	return out
}

func TestTranscriptsOfTools(t *testing.T) {
	toolScene(t, "read tool", kernel.Config{}, use("a", "look", `{"at":"x"}`))
	toolScene(t, "effectful tool", kernel.Config{}, use("a", "send", `{"to":"bob"}`))
	toolScene(t, "several tools", kernel.Config{}, `{"text":"on it","type":"text"}`,
		use("a", "look", `{}`), use("b", "send", ``), use("c", "put", `null`))
	toolScene(t, "parallel tools", kernel.Config{Parallel: 2}, use("a", "par", `{"n":1}`), use("b", "par", `{"n":2}`),
		use("c", "par", `{"n":3}`), use("d", "look", `{}`), use("e", "par", `{"n":5}`))
	toolScene(t, "failing tools", kernel.Config{}, use("a", "fail", `{}`), use("b", "panic", `{}`), use("c", "nothing", `{}`), use("d", "nil", `{}`))
	toolScene(t, "no tools at all", kernel.Config{Tools: map[string]kernel.Tool{}}, use("a", "look", `{}`))
	toolScene(t, "strict arguments", kernel.Config{}, use("a", "strict", `{"n":1}`), use("b", "strict", `{"n":"one"}`), use("c", "strict", ``))
	toolScene(t, "malformed arguments", kernel.Config{}, `{"id":"a","input":"{\"to\":","name":"send","type":"tool_use"}`,
		use("b", "send", `"bob"`), use("c", "send", `[1]`), use("d", "look", `{}`))
	toolScene(t, "call ids", kernel.Config{}, use("", "look", `{}`), use("a", "look", `{}`), use("a", "look", `{}`),
		use("i3/5", "look", `{}`), use("", "look", `{}`), use(strings.Repeat("x", 5000), "look", `{}`), `{"id":7,"input":{},"name":"look","type":"tool_use"}`)
	play(t, "call ids of another beat", func(x *stage) {
		s := x.open(kernel.Open{}, "go")
		d := device(t, kernel.Config{Tools: only("look"), LLM: replies(calls(use("call_0", "look", `{}`)), calls(use("call_0", "look", `{}`)), says("done"))})
		for range 3 {
			x.beat(s, d)
		}
		x.folded(s)
	})
	toolScene(t, "odd results", kernel.Config{Tools: map[string]kernel.Tool{
		"json":  {Handler: gives(`{"a":[1,null]}`)},
		"image": {Handler: gives(`[{"source":{"data":"aGk=","media_type":"image/png","type":"base64"},"type":"image"},{"text":"a picture","type":"text"}]`)},
		"empty": {Handler: gives(`[]`)},
		"false": {Handler: gives(`false`)},
		"bad":   {Handler: gives(`{"a":`)},
		"dup":   {Handler: gives(`{"a":1,"a":2}`)},
		"deep":  {Handler: gives(strings.Repeat("[", 128) + strings.Repeat("]", 128))},
	}}, use("a", "json", ``), use("b", "image", ``), use("c", "empty", ``), use("d", "false", ``), use("e", "bad", ``), use("f", "dup", ``), use("g", "deep", ``))
}

func TestTranscriptsOfToolPolicy(t *testing.T) {
	policy := func(_ context.Context, c *kernel.Call, a *kernel.Answer) (kernel.Decision, string, error) {
		switch c.ID {
		case "a":
			return kernel.Deny, "", nil
		case "b":
			return kernel.Deny, "not on a Sunday", nil
		case "c":
			return kernel.Run, "ignored", errors.New("policy lost its list")
		case "d":
			panic("policy fell over")
		case "e":
			return kernel.Run, "", nil
		case "skip":
			return "skip", "", nil
		}
		return "", "", nil
	}
	toolScene(t, "tool policy", kernel.Config{Policy: policy}, use("a", "look", `{}`), use("b", "send", `{}`), use("c", "look", `{}`),
		use("d", "look", `{}`), use("e", "look", `{}`), use("f", "look", `{}`))
	toolScene(t, "tool policy broken", kernel.Config{Policy: policy}, use("e", "send", `{}`), use("skip", "send", `{}`), use("b", "send", `{}`))
}

func TestTranscriptsOfEndsInTools(t *testing.T) {
	play(t, "cancelled in tools", func(x *stage) {
		s := x.open(kernel.Open{}, "go")
		ctx, cancel := context.WithCancelCause(ctxb)
		tools := only("look", "send")
		tools["stop"] = kernel.Tool{Handler: func(ctx context.Context, _ json.RawMessage, _ kernel.ToolContext) (json.RawMessage, error) {
			cancel(errors.New("the user pressed Ctrl-C"))
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		d := device(t, kernel.Config{Tools: tools, LLM: replies(calls(use("a", "look", ``), use("b", "stop", ``), use("c", "send", ``)), says("done"))})
		x.beatWith(ctx, s, d, kernel.BeatOptions{})
		x.folded(s)
		x.beat(s, d)
	})
	play(t, "cancelled before tools", func(x *stage) {
		s := x.open(kernel.Open{}, "go")
		ctx, cancel := context.WithCancel(ctxb)
		d := device(t, kernel.Config{Tools: only("send", "par"), LLM: replies(callFunc(
			func(context.Context, *kernel.Request, kernel.CallOptions) (*kernel.Answer, error) {
				cancel() // and answers all the same
				return calls(use("a", "send", ``), use("b", "par", ``), use("c", "par", ``)), nil
			}))})
		x.beatWith(ctx, s, d, kernel.BeatOptions{})
	})
	play(t, "tool timeout", func(x *stage) {
		s := x.open(kernel.Open{}, "go")
		slow := kernel.Tool{Timeout: time.Millisecond, Handler: func(ctx context.Context, _ json.RawMessage, tc kernel.ToolContext) (json.RawMessage, error) {
			require.False(t, tc.Deadline.IsZero())
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		d := device(t, kernel.Config{Tools: map[string]kernel.Tool{"slow": slow}, LLM: replies(calls(use("a", "slow", ``)))})
		x.beat(s, d)
	})
	play(t, "deadline in tools", func(x *stage) {
		s := x.open(kernel.Open{}, "go")
		slow := kernel.Tool{Effects: kernel.Read, Handler: func(ctx context.Context, _ json.RawMessage, tc kernel.ToolContext) (json.RawMessage, error) {
			<-ctx.Done()
			return jsonOf("looked in time"), nil
		}}
		tools := only("send")
		tools["slow"] = slow
		d := device(t, kernel.Config{Tools: tools, LLM: replies(calls(use("a", "slow", ``), use("b", "send", ``)))})
		x.beatWith(ctxb, s, d, kernel.BeatOptions{Deadline: time.Now().Add(20 * time.Millisecond)})
	})
}
