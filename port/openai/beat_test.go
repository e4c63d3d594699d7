package openai_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/store"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/wiretest"
)

// A session outlives whatever a server answers: each beat ends as it should, and
// the request of the next one is accepted.
func TestBeats(t *testing.T) {
	use := func(id, input string) wiretest.Block { return wiretest.Use(id, "fs_read", input) }
	steps := []struct {
		reply  wiretest.Reply
		status string
		ran    int
	}{
		{say(wiretest.Think("hm", "c2ln"), use("call_1", `{"path":"a"}`)), kernel.StatusOK, 1},
		{say(use("call_1", "{}"), use("call_1", ""), use("", "{}")), kernel.StatusOK, 3},
		{say(use("call_2", `{"path":`)), kernel.StatusOK, 0},
		{wiretest.Reply{Blocks: []wiretest.Block{use("call_3", "{}")}, Stop: "length"}, kernel.StatusOK, 0},
		{wiretest.Reply{Blocks: []wiretest.Block{use("call_4", "{}")}, Stop: "content_filter"}, kernel.StatusRefused, 0},
		{wiretest.Reply{Blocks: []wiretest.Block{use("call_5", "{}")}, Stop: "bored"}, kernel.StatusError, 0},
		{wiretest.Reply{Blocks: []wiretest.Block{use("call_6", "{}")}, Quiet: true}, kernel.StatusError, 0},
		{wiretest.Reply{Blocks: []wiretest.Block{use("call_7", "{}")}, Error: "server_error"}, kernel.StatusError, 0},
		{say(wiretest.Say("done")), kernel.StatusOK, 0},
	}
	eachWay(t, func(t *testing.T, dialect string, more ...func(*port.Conf)) {
		ctx := context.Background()
		s := wiretest.New(t)
		p, conf := at(s, dialect)
		conf.Model = "gpt-5"
		for _, change := range more {
			change(&conf)
		}
		llm, err := p.Open(conf)
		require.NoError(t, err)
		ran := 0
		d, err := kernel.NewDevice(kernel.Config{LLM: llm, Tools: map[string]kernel.Tool{"fs.read": {
			Effects: kernel.Read,
			Handler: func(context.Context, json.RawMessage, kernel.ToolContext) (json.RawMessage, error) {
				ran++
				return json.RawMessage(`""`), nil
			},
		}}})
		require.NoError(t, err)
		st := store.NewMem()
		defer st.Close()
		session, err := kernel.New(st, kernel.Options{}).Open(ctx, kernel.Open{})
		require.NoError(t, err)
		_, err = session.Append(ctx, kernel.Draft{Kind: kernel.MsgUser, Data: json.RawMessage(`{"content":"go on"}`)})
		require.NoError(t, err)
		for i, step := range steps {
			if conf.NoStream && step.reply.Quiet {
				continue // a whole answer has no events to lose
			}
			if step.reply.Stop == "length" && conf.API == "responses" {
				step.reply.Stop = "max_output_tokens"
			}
			ran = 0
			s.Reply(step.reply)
			out := kernel.Beat(ctx, session, d, kernel.BeatOptions{})
			require.Equal(t, step.status, out.Status, "step %d: %+v", i, out.Detail)
			require.Equal(t, step.ran, ran, "step %d", i)
		}
		require.NoError(t, session.Close(ctx, "", ""))
	})
}
