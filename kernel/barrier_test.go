package kernel_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
)

// TestBarriers: nothing leaves before what it depends on is on disk, and no
// beat waits for the disk more often than it must.
func TestBarriers(t *testing.T) {
	tests := map[string]struct {
		calls  []string
		strict bool
		want   int // waits for the disk
	}{
		"no tool":                     {nil, false, 1},
		"a read tool":                 {[]string{use("", "look", "")}, false, 1},
		"three read tools":            {[]string{use("", "look", ""), use("", "look", ""), use("", "par", "")}, false, 1},
		"an effectful tool":           {[]string{use("", "send", "")}, false, 2},
		"a tool that writes":          {[]string{use("", "put", "")}, false, 2},
		"a read and an effectful one": {[]string{use("", "look", ""), use("", "send", "")}, false, 2},
		"two effectful tools":         {[]string{use("", "send", ""), use("", "put", "")}, false, 3},
		"an effectful one, denied":    {[]string{use("", "nothing", "")}, false, 1},
		"a read tool, strictly":       {[]string{use("", "look", "")}, true, 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tape := newTape()
			k := kernel.New(tape, kernel.Options{Now: ticking(), Mint: counting("i"), Strict: tt.strict})
			s, err := k.Open(ctxb, kernel.Open{Grant: &kernel.Grant{Amount: 50}})
			require.NoError(t, err)
			onDisk(t, tape, "open")
			_, err = s.Append(ctxb, userSays("go"))
			require.NoError(t, err)
			onDisk(t, tape, "append")
			d := device(t, kernel.Config{Tools: watched(t, tape), LLM: kernel.LLMFunc(
				func(context.Context, *kernel.Request, kernel.CallOptions) (*kernel.Answer, error) {
					onDisk(t, tape, "the model call")
					return calls(tt.calls...), nil
				})})
			for range 3 {
				_, _, before := tape.state()
				require.Equal(t, kernel.StatusOK, kernel.Beat(ctxb, s, d, kernel.BeatOptions{}).Status)
				_, _, after := tape.state()
				require.Equal(t, tt.want, after-before)
			}
			require.NoError(t, s.Spend(ctxb, 1))
			onDisk(t, tape, "spend")
			_, _, err = s.Reserve(ctxb, 1)
			require.NoError(t, err)
			onDisk(t, tape, "reserve")
			require.NoError(t, s.Settle(ctxb, 1))
			onDisk(t, tape, "settle")
			s, err = k.Resume(ctxb, s.ID(), kernel.Resume{})
			require.NoError(t, err)
			onDisk(t, tape, "resume")
			require.NoError(t, s.Close(ctxb, "", ""))
			onDisk(t, tape, "close")
		})
	}
}

func onDisk(t *testing.T, p *tape, what string) {
	t.Helper()
	applied, durable, _ := p.state()
	require.Equal(t, applied, durable, "%s came before all that was recorded was on disk", what)
}

// watched is the box with effectful handlers that look at the disk.
func watched(t *testing.T, p *tape) map[string]kernel.Tool {
	box := toolbox()
	for name, tool := range box {
		inner := tool.Handler
		if tool.Effects != kernel.Read {
			tool.Handler = func(ctx context.Context, args json.RawMessage, tc kernel.ToolContext) (json.RawMessage, error) {
				onDisk(t, p, "the handler of "+name)
				return inner(ctx, args, tc)
			}
		}
		box[name] = tool
	}
	return box
}

// TestRerunIsOnDiskFirst: a call that is run again has its tool_call on disk.
func TestRerunIsOnDiskFirst(t *testing.T) {
	tape := newTape()
	k := newKernel(tape)
	s, err := k.Open(ctxb, kernel.Open{})
	require.NoError(t, err)
	d := device(t, kernel.Config{Tools: watched(t, tape), LLM: replies(calls(use("a", "put", "")))})
	require.Equal(t, kernel.StatusOK, kernel.Beat(ctxb, s, d, kernel.BeatOptions{}).Status)
	tape = tape.crashed(len(tape.batches) - 1)
	k = kernel.New(tape, kernel.Options{Now: ticking(), Mint: counting("j")})
	s, err = k.Resume(ctxb, s.ID(), kernel.Resume{})
	require.NoError(t, err)
	d = device(t, kernel.Config{Tools: watched(t, tape)})
	out := kernel.Rerun(ctxb, s, d, "a")
	require.Equal(t, kernel.StatusOK, out.Status, outcomeText(out))
	require.Equal(t, "a", out.Reply.Tools[0].CallID)
}
