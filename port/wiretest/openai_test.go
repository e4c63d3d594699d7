package wiretest_test

import (
	"context"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/port/wiretest"
)

func openaiClient(s *wiretest.Server, path string) openai.Client {
	return openai.NewClient(option.WithBaseURL(s.URL+path), option.WithAPIKey("k"), option.WithMaxRetries(0))
}

var (
	openaiReply = wiretest.Reply{
		Blocks: []wiretest.Block{wiretest.Think("hm", "c2ln"), wiretest.Say("reading both"), wiretest.Use("call_1", "read", `{"path":"a"}`), wiretest.Use("call_2", "read", `{}`)},
		Usage:  wiretest.Usage{Input: 3, CacheRead: 4, Output: 9, Thinking: 7},
	}
	chatParams = openai.ChatCompletionNewParams{
		Model:         "gpt-4o",
		Messages:      []openai.ChatCompletionMessageParamUnion{openai.UserMessage("go on")},
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	}
)

// The official client reads what the server writes, streamed and whole.
func TestOpenAIClientReadsChat(t *testing.T) {
	for _, path := range []string{"/v1", "/vllm/v1", "/llamacpp/v1", "/ollama/v1", "/openrouter/v1"} {
		s := wiretest.New(t).Reply(openaiReply, openaiReply)
		client := openaiClient(s, path)
		stream := client.Chat.Completions.NewStreaming(context.Background(), chatParams)
		sum := openai.ChatCompletionAccumulator{}
		for stream.Next() {
			require.True(t, sum.AddChunk(stream.Current()))
		}
		require.NoError(t, stream.Err())
		whole, err := client.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{Model: chatParams.Model, Messages: chatParams.Messages})
		require.NoError(t, err)
		for _, got := range []openai.ChatCompletion{sum.ChatCompletion, *whole} {
			require.Equal(t, "tool_calls", got.Choices[0].FinishReason, path)
			message := got.Choices[0].Message
			require.Equal(t, "reading both", message.Content)
			require.Len(t, message.ToolCalls, 2)
			require.Equal(t, `{"path":"a"}`, message.ToolCalls[0].Function.Arguments)
			require.Equal(t, "call_2", message.ToolCalls[1].ID)
			require.Equal(t, []int64{7, 9, 4}, []int64{got.Usage.PromptTokens, got.Usage.CompletionTokens, got.Usage.PromptTokensDetails.CachedTokens})
		}
	}
}

func TestOpenAIClientReadsResponses(t *testing.T) {
	s := wiretest.New(t).Reply(openaiReply, openaiReply)
	client := openaiClient(s, "/v1")
	input := responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage("go on", "user")}}
	stream := client.Responses.NewStreaming(context.Background(), responses.ResponseNewParams{Model: "gpt-5", Input: input})
	var last responses.Response
	text := ""
	for stream.Next() {
		switch e := stream.Current().AsAny().(type) {
		case responses.ResponseTextDeltaEvent:
			text += e.Delta
		case responses.ResponseCompletedEvent:
			last = e.Response
		}
	}
	require.NoError(t, stream.Err())
	require.Equal(t, "reading both", text)
	whole, err := client.Responses.New(context.Background(), responses.ResponseNewParams{Model: "gpt-5", Input: input})
	require.NoError(t, err)
	for _, got := range []responses.Response{last, *whole} {
		require.Equal(t, "reading both", got.OutputText())
		require.Len(t, got.Output, 4)
		require.Equal(t, "c2ln", got.Output[0].AsReasoning().EncryptedContent)
		require.Equal(t, `{"path":"a"}`, got.Output[2].AsFunctionCall().Arguments)
		require.Equal(t, int64(7), got.Usage.OutputTokensDetails.ReasoningTokens)
	}
}

func TestOpenAIClientReadsFailures(t *testing.T) {
	s := wiretest.New(t).Lenient().Reply(wiretest.Reply{Status: 429, Error: "rate_limit_exceeded", Say: "slow down", Header: map[string]string{"retry-after": "7"}})
	client := openaiClient(s, "/v1")
	_, err := client.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{Model: chatParams.Model, Messages: chatParams.Messages})
	var failed *openai.Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, 429, failed.StatusCode)
	require.Equal(t, "slow down", failed.Message)
	require.Equal(t, "7", failed.Response.Header.Get("retry-after"))

	_, err = client.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{Model: "m", Messages: chatParams.Messages}, option.WithJSONSet("top_k", 5))
	require.ErrorAs(t, err, &failed)
	require.Equal(t, 400, failed.StatusCode)
	require.ErrorContains(t, s.Last().Fault, "top_k: extra inputs are not permitted")
	_, err = client.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{Model: "m", Messages: chatParams.Messages}, option.WithJSONSet("reasoning_effort", "max"))
	require.ErrorAs(t, err, &failed)
	require.ErrorContains(t, s.Last().Fault, `reasoning effort: got "max", which openai does not take`)
	_, err = client.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.ToolMessage("x", "call_1")}})
	require.Error(t, err)
	require.ErrorContains(t, s.Last().Fault, "rule pairs")
}
