package kernel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/store"
)

// hider masks one word as a host masks secrets.
func hider(raw json.RawMessage) (json.RawMessage, bool) {
	out := bytes.ReplaceAll(raw, []byte("canary"), []byte("***"))
	return out, !bytes.Equal(out, raw)
}

// What a mask hides is neither recorded nor sent, and what was sent can be
// rebuilt from what was recorded: the fold, the hash and the records agree.
func TestMaskedLog(t *testing.T) {
	ctx := context.Background()
	st := store.NewMem()
	k := kernel.New(st, kernel.Options{Mask: hider})
	s, err := k.Open(ctx, kernel.Open{Owner: "o canary", Grant: &kernel.Grant{Amount: 9, Tag: "canary"}, Meta: json.RawMessage(`{"by":"canary"}`)})
	require.NoError(t, err)
	_, err = s.Append(ctx, kernel.Draft{Kind: kernel.MsgUser, Data: json.RawMessage(`{"content":"hello canary"}`)})
	require.NoError(t, err)
	var sent []*kernel.Request
	d, err := kernel.NewDevice(kernel.Config{
		LLM: kernel.LLMFunc(func(_ context.Context, req *kernel.Request, o kernel.CallOptions) (*kernel.Answer, error) {
			sent = append(sent, req)
			return &kernel.Answer{StopReason: "tool_use", Content: json.RawMessage(`[{"text":"said canary","type":"text"},
				{"id":"c` + o.Beat + `","input":{"a":"canary"},"name":"echo","type":"tool_use"}]`)}, nil
		}),
		System: json.RawMessage(`"system canary"`),
		Filters: []kernel.Filter{func(_ context.Context, req *kernel.Request) (*kernel.Request, error) {
			own := *req
			own.Messages = append(slices.Clip(own.Messages), json.RawMessage(`{"content":"filter canary","role":"user"}`))
			return &own, nil
		}},
		Tools: map[string]kernel.Tool{"echo": {Description: "canary", Handler: func(_ context.Context, args json.RawMessage, _ kernel.ToolContext) (json.RawMessage, error) {
			assert.Equal(t, `{"a":"canary"}`, string(args), "the tool gets what the model said")
			return json.RawMessage(`{"canary":"canary"}`), nil
		}}},
	})
	require.NoError(t, err)
	for range 3 {
		out := kernel.Beat(ctx, s, d, kernel.BeatOptions{})
		require.Equal(t, kernel.StatusOK, out.Status, outcomeText(out))
	}
	groups, err := st.Groups(ctx, s.ID(), 0)
	require.NoError(t, err)
	require.Len(t, groups, 3)
	for i, req := range sent {
		assert.NotContains(t, string(req.Canonical()), "canary")
		rebuilt, err := s.Request(ctx, groups[i].ID)
		require.NoError(t, err)
		assert.Equal(t, string(req.Canonical()), string(rebuilt.Canonical()))
	}
	_, _, err = k.Check(ctx, func(p kernel.Problem) { t.Errorf("%+v", p) })
	require.NoError(t, err)
	for r, err := range st.Records(ctx, s.ID(), 1, 0) {
		require.NoError(t, err)
		assert.NotContains(t, string(r.Body), "canary")
	}
	head, err := st.Head(ctx, s.ID())
	require.NoError(t, err)
	assert.NotContains(t, string(head.State), "canary")
}

// A kind and a beat are words of a caller's too; the kernel's own stay, whatever
// the mask hides.
func TestMaskedKind(t *testing.T) {
	ctx := context.Background()
	st := store.NewMem()
	hide := func(raw json.RawMessage) (json.RawMessage, bool) {
		out := regexp.MustCompile(`canary|msg_user|session`).ReplaceAll(raw, []byte("***"))
		return out, !bytes.Equal(out, raw)
	}
	s, err := kernel.New(st, kernel.Options{Mask: hide}).Open(ctx, kernel.Open{})
	require.NoError(t, err)
	for _, d := range []kernel.Draft{{Kind: "note_canary", Beat: "b canary"}, {Kind: kernel.MsgUser, Data: json.RawMessage(`{"content":"x"}`)}} {
		_, err = s.Append(ctx, d)
		require.NoError(t, err)
	}
	events, err := s.Events(ctx, 1)
	require.NoError(t, err)
	var kinds []string
	for _, ev := range events {
		kinds = append(kinds, ev.Kind)
	}
	assert.Equal(t, []string{kernel.SessionOpened, "note_***", kernel.MsgUser}, kinds)
	assert.Equal(t, "b ***", events[1].Beat)
	for r, err := range st.Records(ctx, s.ID(), 1, 0) {
		require.NoError(t, err)
		assert.NotContains(t, string(r.Body), "canary")
	}
}
