package wiretest_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/port/wiretest"
)

func messagesClient(s *wiretest.Server) sdk.Client {
	return sdk.NewClient(option.WithoutEnvironmentDefaults(), option.WithBaseURL(s.URL), option.WithAPIKey("k"), option.WithMaxRetries(0))
}

func ask() sdk.MessageNewParams {
	return sdk.MessageNewParams{Model: "claude-x", MaxTokens: 9, Messages: []sdk.MessageParam{sdk.NewUserMessage(sdk.NewTextBlock("hi"))}}
}

var answer = wiretest.Reply{
	Blocks: []wiretest.Block{wiretest.Think("hm", "c2ln"), wiretest.Say("Grüße <b>"), wiretest.Use("toolu_1", "read", `{"path":"a"}`)},
	Usage:  wiretest.Usage{Input: 1, Output: 9, Thinking: 4, CacheRead: 2, CacheWrite: 3},
}

// The official client reads what the server writes, in one piece and in many.
func TestOfficialMessagesClient(t *testing.T) {
	s := wiretest.New(t).Reply(answer, answer)
	client := messagesClient(s)
	whole, err := client.Messages.New(context.Background(), ask())
	require.NoError(t, err)
	var streamed sdk.Message
	stream := client.Messages.NewStreaming(context.Background(), ask())
	for stream.Next() {
		require.NoError(t, streamed.Accumulate(stream.Current()))
	}
	require.NoError(t, stream.Err())
	for _, m := range []*sdk.Message{whole, &streamed} {
		require.Len(t, m.Content, 3)
		require.Equal(t, []string{"hm", "c2ln", "Grüße <b>", "read", `{"path":"a"}`},
			[]string{m.Content[0].Thinking, m.Content[0].Signature, m.Content[1].Text, m.Content[2].Name, string(m.Content[2].Input)})
		require.Equal(t, sdk.StopReasonToolUse, m.StopReason)
		require.Equal(t, []int64{1, 9, 4, 2, 3}, []int64{m.Usage.InputTokens, m.Usage.OutputTokens, m.Usage.OutputTokensDetails.ThinkingTokens, m.Usage.CacheReadInputTokens, m.Usage.CacheCreationInputTokens})
	}
	require.Len(t, s.Bodies("/v1/messages"), 2)
	require.Nil(t, s.Last().Fault)
}

func TestOfficialClientsOtherCalls(t *testing.T) {
	s := wiretest.New(t).Counts(7).Serves(wiretest.Model{ID: "claude-x", Window: 100, MaxOutput: 10})
	client := messagesClient(s)
	count, err := client.Messages.CountTokens(context.Background(), sdk.MessageCountTokensParams{Model: "claude-x", Messages: ask().Messages})
	require.NoError(t, err)
	require.Equal(t, int64(7), count.InputTokens)
	model, err := client.Models.Get(context.Background(), "claude-x", sdk.ModelGetParams{})
	require.NoError(t, err)
	require.Equal(t, []int64{100, 10}, []int64{model.MaxInputTokens, model.MaxTokens})
	list, err := client.Models.List(context.Background(), sdk.ModelListParams{})
	require.NoError(t, err)
	require.Len(t, list.Data, 1)
	_, err = client.Models.Get(context.Background(), "none", sdk.ModelGetParams{})
	require.Equal(t, http.StatusNotFound, status(t, err))
}

func status(t *testing.T, err error) int {
	t.Helper()
	var api *sdk.Error
	require.True(t, errors.As(err, &api), "%v", err)
	return api.StatusCode
}

// Failures are what the official client takes for failures.
func TestOfficialClientFails(t *testing.T) {
	s := wiretest.New(t).Reply(
		wiretest.Reply{Status: 529, Error: "overloaded_error", Say: "busy", Header: map[string]string{"retry-after": "3"}},
		wiretest.Reply{Blocks: answer.Blocks, Error: "overloaded_error", Say: "busy"},
		wiretest.Reply{Blocks: answer.Blocks, Cut: 4},
	)
	client := messagesClient(s)
	_, err := client.Messages.New(context.Background(), ask())
	require.Equal(t, 529, status(t, err))
	for range 2 {
		stream := client.Messages.NewStreaming(context.Background(), ask())
		for stream.Next() {
			continue
		}
		require.Error(t, stream.Err())
	}
}

// Bodies that the provider would refuse are refused, and take no reply.
func TestRefusedBodies(t *testing.T) {
	two := ask()
	two.Messages = append(two.Messages, sdk.NewAssistantMessage(sdk.NewTextBlock("x")))
	for name, opts := range map[string][]option.RequestOption{
		"max_tokens: got -1, want at least 1":             {option.WithJSONSet("max_tokens", -1)},
		"temperature: extra inputs are not permitted":     {option.WithJSONSet("temperature", 0.5)},
		"messages[0]: got assistant first, want user":     {option.WithJSONSet("messages.0.role", "assistant")},
		"messages[0].content[0]: got \" \", want text":    {option.WithJSONSet("messages.0.content.0.text", " ")},
		"body: got 5 cache_control marks, want at most 4": {option.WithJSONSet("messages.0.content", five())},
	} {
		s := wiretest.New(t).Lenient().Reply(wiretest.Reply{})
		client := messagesClient(s)
		_, err := client.Messages.New(context.Background(), ask(), opts...)
		require.Equal(t, http.StatusBadRequest, status(t, err))
		require.ErrorContains(t, s.Last().Fault, name)
		_, err = client.Messages.New(context.Background(), ask())
		require.NoError(t, err, "the reply is still there")
	}
	s := wiretest.New(t).Lenient().Prefill(true).Reply(wiretest.Reply{})
	client := messagesClient(s)
	_, err := client.Messages.New(context.Background(), two)
	require.NoError(t, err)
	stranger := sdk.NewClient(option.WithoutEnvironmentDefaults(), option.WithBaseURL(s.URL), option.WithMaxRetries(0))
	_, err = stranger.Messages.New(context.Background(), ask())
	require.Equal(t, http.StatusUnauthorized, status(t, err))
}

func five() json.RawMessage {
	block := `{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}`
	return json.RawMessage("[" + block + "," + block + "," + block + "," + block + "," + block + "]")
}
