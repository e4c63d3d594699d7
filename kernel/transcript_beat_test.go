package kernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
)

func TestTranscriptsOfAnswers(t *testing.T) {
	play(t, "plain", func(x *stage) {
		s := x.open(kernel.Open{Owner: "ann", Meta: raw(`{"run":"nightly"}`)}, "hello")
		d := device(t, kernel.Config{LLM: replies(says("hi"), says("again")), System: raw(`"be brief"`)})
		x.beat(s, d)
		out := x.beat(s, d)
		x.request(s, out.Reply.Beat)
		x.folded(s)
	})
	play(t, "refused", func(x *stage) {
		s := x.open(kernel.Open{Grant: &kernel.Grant{Amount: 3, Tag: "beats"}}, "hello")
		a := calls(use("a", "look", "{}"))
		a.Refused, a.RefusalKind, a.RefusalDetail = true, "model", "I would rather not"
		x.beat(s, device(t, kernel.Config{LLM: replies(a), Tools: only("look", "send")}))
		x.folded(s)
	})
	play(t, "unknown stop reason", func(x *stage) {
		s := x.open(kernel.Open{}, "hello")
		a := calls(use("a", "send", "{}"))
		a.StopReason = "tired"
		x.beat(s, device(t, kernel.Config{LLM: replies(a), Tools: only("look", "send")}))
		x.folded(s)
	})
	play(t, "truncated", func(x *stage) {
		s := x.open(kernel.Open{}, "hello")
		cutCalls, cutText := calls(use("a", "send", `{"to":`[:0]), use("b", "look", "{}")), says("to be cont")
		cutCalls.StopReason, cutText.StopReason = "max_tokens", "max_tokens"
		d := device(t, kernel.Config{LLM: replies(cutCalls, cutText), Tools: only("look", "send")})
		x.beat(s, d)
		x.beat(s, d)
		x.folded(s)
	})
	play(t, "broken answers", func(x *stage) {
		s := x.open(kernel.Open{}, "hello")
		list := []any{
			calls(use("a", "look", "{}"), use("b", "", "{}")),
			&kernel.Answer{Content: raw(`{"text":"not a list"}`)},
			&kernel.Answer{Content: raw(`[{"type":"text"},7]`)},
			&kernel.Answer{Content: raw(`[{"type":`)},
			&kernel.Answer{Content: raw(`[]`), Refused: true},
			(*kernel.Answer)(nil),
		}
		d := device(t, kernel.Config{LLM: replies(list...), Tools: only("look", "send")})
		for range list {
			x.beat(s, d)
		}
	})
	play(t, "no content", func(x *stage) {
		s := x.open(kernel.Open{}, "hello")
		d := device(t, kernel.Config{LLM: replies(&kernel.Answer{}, says("back"))})
		x.beat(s, d)
		x.folded(s)
		x.beat(s, d)
	})
	play(t, "mended text", func(x *stage) {
		s := x.open(kernel.Open{})
		_, err := s.Append(ctxb, kernel.Draft{Kind: kernel.MsgUser, Data: raw("{\"content\":\"a\xff\xfeb\"}"), Meta: raw("{\"from\":\"\xc3\"}")})
		require.NoError(t, err)
		x.log(s)
		tool := kernel.Tool{Effects: kernel.Read, Handler: gives("\"bad \xf0\x9f byte\"")}
		d := device(t, kernel.Config{Tools: map[string]kernel.Tool{"look": tool},
			LLM: replies(calls(`{"text":"half \ud83d pair and whole \ud83d\ude00","type":"text"}`, use("a", "look", "{}")))})
		x.beat(s, d)
	})
}

func TestTranscriptsOfFailedCalls(t *testing.T) {
	play(t, "failed calls", func(x *stage) {
		s := x.open(kernel.Open{Grant: &kernel.Grant{Amount: 20}}, "hello")
		var list []any
		for _, kind := range append([]kernel.CallKind{"made_up"}, kernel.CallKinds...) {
			list = append(list, &kernel.CallError{Kind: kind, Message: "because of " + string(kind), Status: 500, RetryAfter: 1.5})
		}
		list = append(list, errors.New("a plain error"), &kernel.CallError{Kind: kernel.Server, Message: "odd", RetryAfter: math.Inf(1), Status: -1},
			callFunc(func(context.Context, *kernel.Request, kernel.CallOptions) (*kernel.Answer, error) {
				panic("in the adapter")
			}))
		d := device(t, kernel.Config{LLM: replies(list...)})
		for range list {
			x.beat(s, d)
		}
		x.folded(s)
	})
	play(t, "cancelled in the call", func(x *stage) {
		s := x.open(kernel.Open{}, "hello")
		ctx, cancel := context.WithCancel(ctxb)
		x.beatWith(ctx, s, device(t, kernel.Config{LLM: replies(callFunc(
			func(ctx context.Context, _ *kernel.Request, _ kernel.CallOptions) (*kernel.Answer, error) {
				cancel()
				<-ctx.Done()
				return nil, ctx.Err()
			}))}), kernel.BeatOptions{})
		x.do("beat again with the ended context")
		x.beatWith(ctx, s, device(t, kernel.Config{LLM: replies()}), kernel.BeatOptions{})
	})
	play(t, "deadline", func(x *stage) {
		s := x.open(kernel.Open{}, "hello")
		wait := callFunc(func(ctx context.Context, _ *kernel.Request, o kernel.CallOptions) (*kernel.Answer, error) {
			require.False(t, o.Deadline.IsZero())
			<-ctx.Done()
			return nil, ctx.Err()
		})
		d := device(t, kernel.Config{LLM: replies(wait)})
		x.beatWith(ctxb, s, d, kernel.BeatOptions{Deadline: time.Now().Add(20 * time.Millisecond)})
		x.do("beat with a deadline that has passed")
		x.beatWith(ctxb, s, d, kernel.BeatOptions{Deadline: time.Now().Add(-time.Second)})
	})
}

func TestTranscriptsOfPolicyFaults(t *testing.T) {
	play(t, "fold filter cost", func(x *stage) {
		s := x.open(kernel.Open{Grant: &kernel.Grant{Amount: 9, Tag: "beats"}}, "hello")
		ok := replies(says("never"))
		fold := func(fn kernel.Fold) kernel.Config { return kernel.Config{LLM: ok, Fold: fn} }
		filter := func(fn kernel.Filter) kernel.Config { return kernel.Config{LLM: ok, Filters: []kernel.Filter{fn}} }
		cost := func(n int64, err error) kernel.Config {
			return kernel.Config{LLM: ok, Cost: func(context.Context, *kernel.Request) (int64, error) { return n, err }}
		}
		request := func(r *kernel.Request) kernel.Fold {
			return func(context.Context, kernel.Log, *kernel.Device) (*kernel.Request, error) { return r, nil }
		}
		for _, c := range []kernel.Config{
			fold(func(context.Context, kernel.Log, *kernel.Device) (*kernel.Request, error) {
				return nil, errors.New("no idea")
			}),
			fold(func(context.Context, kernel.Log, *kernel.Device) (*kernel.Request, error) { panic("in the fold") }),
			fold(request(nil)),
			fold(request(&kernel.Request{Messages: []json.RawMessage{raw(`{"role":`)}})),
			fold(request(&kernel.Request{Messages: []json.RawMessage{raw(`"hello"`)}})),
			fold(request(&kernel.Request{Messages: []json.RawMessage{nil}})),
			fold(request(&kernel.Request{System: raw(`{"a":1,"a":2}`)})),
			fold(request(&kernel.Request{Params: raw(`[1]`)})),
			fold(request(&kernel.Request{Extra: map[string]json.RawMessage{"messages": raw(`[]`)}})),
			fold(request(&kernel.Request{Extra: map[string]json.RawMessage{"x": nil}})),
			filter(func(context.Context, *kernel.Request) (*kernel.Request, error) { return nil, errors.New("refuses") }),
			filter(func(context.Context, *kernel.Request) (*kernel.Request, error) { panic(errors.New("in the filter")) }),
			filter(func(context.Context, *kernel.Request) (*kernel.Request, error) { return nil, nil }),
			filter(func(_ context.Context, r *kernel.Request) (*kernel.Request, error) {
				own := *r
				own.Messages = []json.RawMessage{raw(`[]`)}
				return &own, nil
			}),
			cost(0, nil), cost(-3, nil), cost(0, errors.New("cannot count")),
			{},
		} {
			x.beat(s, device(t, c))
		}
		require.Empty(t, ok.asked)
	})
	play(t, "filters", func(x *stage) {
		s := x.open(kernel.Open{}, "hello")
		tag := func(name, v string) kernel.Filter {
			return func(_ context.Context, r *kernel.Request) (*kernel.Request, error) {
				own := *r
				own.Extra = map[string]json.RawMessage{name: raw(v)}
				for n, v := range r.Extra {
					own.Extra[n] = v
				}
				return &own, nil
			}
		}
		model := replies(says("one"), says("two"), says("three"))
		d := device(t, kernel.Config{LLM: model, Tools: map[string]kernel.Tool{}, Filters: []kernel.Filter{tag("b", `[2]`), tag("a", ` {"x":1} `)}})
		x.beat(s, d)
		o := kernel.BeatOptions{ToolChoice: raw(`"none"`), Params: raw(`{"temperature":0}`)}
		out := x.beatWith(ctxb, s, d, o)
		x.request(s, out.Reply.Beat)
		x.beatWith(ctxb, s, d, o)
	})
	play(t, "request delta", func(x *stage) {
		s := x.open(kernel.Open{}, "one", "two")
		note := raw(`{"content":"a note","role":"user"}`)
		shapes := [][]int{{0, 1}, {0, 1, 2}, {1, 2, 3}, {3, -1, 0}, {-1, 3, 3}, {}, {0}}
		at := 0
		fold := func(_ context.Context, log kernel.Log, d *kernel.Device) (*kernel.Request, error) {
			evs, err := log.Events(ctxb, 1)
			req := kernel.FoldEvents(evs, d)
			var own []json.RawMessage
			for _, i := range shapes[at] {
				if i < 0 {
					own = append(own, note)
				} else {
					own = append(own, req.Messages[i])
				}
			}
			req.Messages = own
			return req, err
		}
		model := replies()
		for range shapes {
			model.list = append(model.list, says("three"))
		}
		d := device(t, kernel.Config{LLM: model, Fold: fold})
		for ; at < len(shapes); at++ {
			x.do("messages %v", shapes[at])
			out := x.beat(s, d)
			req, err := s.Request(ctxb, out.Reply.Beat)
			require.NoError(t, err)
			require.Equal(t, string(model.asked[at].Canonical()), string(req.Canonical()))
		}
	})
}
