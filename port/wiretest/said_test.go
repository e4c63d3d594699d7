package wiretest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/wiretest"
)

const asked = `{
	"system": "Be brief.",
	"messages": [
		{"role": "user", "content": "Read a."},
		{"role": "user", "content": [{"type": "text", "text": "And b."}]},
		{"role": "assistant", "content": [
			{"type": "text", "text": "Both."},
			{"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}},
			{"type": "tool_use", "id": "c2", "name": "read", "input": {}}]},
		{"role": "user", "content": [
			{"type": "tool_result", "tool_use_id": "c1", "content": "text of a"},
			{"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "no path"}], "is_error": true},
			{"type": "text", "text": "Go on."}]},
		{"role": "assistant", "content": "Done."},
		{"role": "user", "content": "Thanks."}],
	"tools": [{"name": "read", "input_schema": {"type": "object"}}]}`

// A conversation reads the same in every wire form, and before it has one.
func TestSaid(t *testing.T) {
	want := []string{
		"user: Read a.\n\nAnd b.", "assistant: Both.", `call read: {"path":"a"}`, "call read: {}",
		"result: text of a", "result: error: no path", "user: Go on.", "assistant: Done.", "user: Thanks.",
	}
	require.Equal(t, want, wiretest.Request{Body: json.RawMessage(asked)}.Said())
	req, err := kernel.ParseRequest(json.RawMessage(asked))
	require.NoError(t, err)
	for _, dialect := range []port.Dialect{port.Anthropic, port.OpenAI, port.Responses} {
		lowered, err := port.Lower(port.Target{Dialect: dialect}, req, port.Conf{Model: "m", MaxTokens: 9})
		require.NoError(t, err)
		require.Equal(t, want, wiretest.Request{Body: lowered.Body}.Said(), dialect)
	}
}

// Replies may be chosen by what a request holds, and so may counts.
func TestReplyIsChosen(t *testing.T) {
	s := wiretest.New(t).CountsBy(func(r wiretest.Request) int64 { return int64(len(r.Said())) })
	s.By(func(r wiretest.Request) (wiretest.Reply, bool) {
		return wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say("You said: " + r.Said()[0])}}, true
	})
	client := messagesClient(s)
	message, err := client.Messages.New(context.Background(), ask())
	require.NoError(t, err)
	require.Equal(t, "You said: user: hi", message.Content[0].Text)
	count, err := client.Messages.CountTokens(context.Background(), sdk.MessageCountTokensParams{Model: "claude-x", Messages: ask().Messages})
	require.NoError(t, err)
	require.Equal(t, int64(1), count.InputTokens)
}

// A model that declines does so as its provider writes it.
func TestModelDeclines(t *testing.T) {
	no := wiretest.Reply{Refuse: "I would rather not."}
	s := wiretest.New(t).Reply(no, no, no)
	claude, gpt := messagesClient(s), openaiClient(s, "/v1")
	message, err := claude.Messages.New(context.Background(), ask())
	require.NoError(t, err)
	require.Equal(t, []string{"refusal", no.Refuse}, []string{string(message.StopReason), message.StopDetails.Explanation})

	stream := gpt.Chat.Completions.NewStreaming(context.Background(), chatParams)
	sum := openai.ChatCompletionAccumulator{}
	for stream.Next() {
		require.True(t, sum.AddChunk(stream.Current()))
	}
	require.NoError(t, stream.Err())
	require.Equal(t, no.Refuse, sum.Choices[0].Message.Refusal)

	input := responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage("go on", "user")}}
	whole, err := gpt.Responses.New(context.Background(), responses.ResponseNewParams{Model: "gpt-5", Input: input})
	require.NoError(t, err)
	require.Equal(t, no.Refuse, whole.Output[0].Content[0].Refusal)
	require.Len(t, s.Bodies("/v1/messages"), 1)
	require.Equal(t, http.MethodPost, s.Last().Method)
}
