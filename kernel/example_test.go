package kernel_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/store"
)

// An embedding program beats a session without Lua.
func Example() {
	ctx := context.Background()
	st := store.NewMem()
	defer st.Close()
	k := kernel.New(st, kernel.Options{})

	s, err := k.Open(ctx, kernel.Open{Grant: &kernel.Grant{Amount: 10, Tag: "beats"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	add := kernel.Tool{
		Description: "Adds two numbers.",
		Effects:     kernel.Read,
		Handler: func(_ context.Context, args json.RawMessage, _ kernel.ToolContext) (json.RawMessage, error) {
			var n struct{ A, B int }
			if err := json.Unmarshal(args, &n); err != nil {
				return nil, err
			}
			return json.Marshal(n.A + n.B)
		},
	}
	model := kernel.LLMFunc(func(_ context.Context, req *kernel.Request, _ kernel.CallOptions) (*kernel.Answer, error) {
		if len(req.Messages) == 1 {
			return &kernel.Answer{
				Content:    json.RawMessage(`[{"id":"a1","input":{"a":19,"b":23},"name":"add","type":"tool_use"}]`),
				StopReason: "tool_use",
			}, nil
		}
		return &kernel.Answer{Content: json.RawMessage(`[{"text":"It is 42.","type":"text"}]`), StopReason: "end_turn"}, nil
	})
	d, err := kernel.NewDevice(kernel.Config{LLM: model, Tools: map[string]kernel.Tool{"add": add}})
	if err != nil {
		fmt.Println(err)
		return
	}

	if _, err := s.Append(ctx, kernel.Draft{Kind: kernel.MsgUser, Data: json.RawMessage(`{"content":"What is 19+23?"}`)}); err != nil {
		fmt.Println(err)
		return
	}
	for {
		out := kernel.Beat(ctx, s, d, kernel.BeatOptions{})
		if out.Status != kernel.StatusOK {
			fmt.Println(out.Status, out.Detail)
			return
		}
		if len(out.Reply.Tools) == 0 {
			fmt.Println(string(out.Reply.Content))
			break
		}
		fmt.Println("ran", out.Reply.Tools[0].Name)
	}
	left, _, _ := s.Remaining(ctx)
	fmt.Println("left:", left)
	fmt.Println(s.Close(ctx, "", ""))
	// Output:
	// ran add
	// [{"text":"It is 42.","type":"text"}]
	// left: 8
	// <nil>
}
