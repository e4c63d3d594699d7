package openai_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/openai"
	"github.com/knl-run/knl/port/wiretest"
)

// The counters do not overlap, whatever a server counts into what.
func TestUsage(t *testing.T) {
	for name, c := range map[string]struct {
		usage string
		want  kernel.Usage
	}{
		"plain":            {`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}`, kernel.Usage{Input: 10, Output: 5}},
		"cached":           {`{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":8}}`, kernel.Usage{Input: 2, CacheRead: 8, Output: 5}},
		"written":          {`{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":3,"cache_write_tokens":4}}`, kernel.Usage{Input: 3, CacheRead: 3, CacheWrite: 4, Output: 5}},
		"hits":             {`{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":6,"prompt_cache_miss_tokens":4}`, kernel.Usage{Input: 4, CacheRead: 6, Output: 5}},
		"thinking":         {`{"prompt_tokens":10,"completion_tokens":50,"total_tokens":60,"completion_tokens_details":{"reasoning_tokens":40}}`, kernel.Usage{Input: 10, Output: 50, Thinking: 40}},
		"thinking beside":  {`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":55,"completion_tokens_details":{"reasoning_tokens":40}}`, kernel.Usage{Input: 10, Output: 45, Thinking: 40}},
		"more than all":    {`{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":80},"completion_tokens_details":{"reasoning_tokens":9}}`, kernel.Usage{CacheRead: 10, Output: 5, Thinking: 5}},
		"in the total":     {`{"prompt_tokens":10,"completion_tokens":20,"total_tokens":530}`, kernel.Usage{Input: 10, Output: 520, Thinking: 500}},
		"there, cached":    {`{"prompt_tokens":10,"completion_tokens":20,"total_tokens":530,"prompt_tokens_details":{"cached_tokens":8}}`, kernel.Usage{Input: 2, CacheRead: 8, Output: 520, Thinking: 500}},
		"cached beside":    {`{"prompt_tokens":10,"completion_tokens":20,"total_tokens":38,"prompt_tokens_details":{"cached_tokens":8}}`, kernel.Usage{Input: 10, CacheRead: 8, Output: 20}},
		"cached, Claude's": {`{"prompt_tokens":3,"completion_tokens":5,"total_tokens":2008,"cache_read_input_tokens":2000,"cache_creation_input_tokens":0}`, kernel.Usage{Input: 3, CacheRead: 2000, Output: 5}},
		"both, Claude's":   {`{"prompt_tokens":3,"completion_tokens":5,"total_tokens":2308,"cache_read_input_tokens":2000,"cache_creation_input_tokens":300}`, kernel.Usage{Input: 3, CacheRead: 2000, CacheWrite: 300, Output: 5}},
		"within, Claude's": {`{"prompt_tokens":2003,"completion_tokens":5,"total_tokens":2008,"prompt_tokens_details":{"cached_tokens":2000},"cache_read_input_tokens":2000}`, kernel.Usage{Input: 3, CacheRead: 2000, Output: 5}},
		"something else":   {`{"prompt_tokens":3,"completion_tokens":5,"total_tokens":5008,"citation_tokens":5000}`, kernel.Usage{Input: 3, Output: 5}},
		"nothing else":     {`{"prompt_tokens":3,"completion_tokens":5,"total_tokens":5008,"citation_tokens":0,"num_search_queries":3}`, kernel.Usage{Input: 3, Output: 5005, Thinking: 5000}},
		"a small total":    {`{"prompt_tokens":10,"completion_tokens":20,"total_tokens":5}`, kernel.Usage{Input: 10, Output: 20}},
		"nulls":            {`{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":null,"completion_tokens_details":null}`, kernel.Usage{Input: 10, Output: 5}},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := answered(t, "vllm", wiretest.Reply{Raw: `{"choices":[{"index":0,"finish_reason":"stop","message":{"content":"x"}}],"usage":` + c.usage + `}`})
			require.Equal(t, c.want, a.Usage)
		})
	}
	all := wiretest.Usage{Input: 3, CacheRead: 4, CacheWrite: 2, Output: 9, Thinking: 7}
	eachWay(t, func(t *testing.T, dialect string, more ...func(*port.Conf)) {
		a, _ := answered(t, dialect, wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say("x")}, Usage: all}, more...)
		require.Equal(t, kernel.Usage{Input: 3, CacheRead: 4, CacheWrite: 2, Output: 9, Thinking: 7}, a.Usage)
	})
}

// An answer that nobody counted is estimated: it must not look free.
func TestUsageMissing(t *testing.T) {
	prompt, output := port.Estimate(withTool(requestOf(ask))), int64(len(`[{"text":"some text","type":"text"}]`)+3)/4
	for name, c := range map[string]struct {
		usage string
		want  kernel.Usage
	}{
		"none":          {`null`, kernel.Usage{Input: prompt, Output: output}},
		"zeros":         {`{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`, kernel.Usage{Input: prompt, Output: output}},
		"below zero":    {`{"prompt_tokens":-1,"completion_tokens":-5}`, kernel.Usage{Input: prompt, Output: output}},
		"of the prompt": {`{"prompt_tokens":7,"completion_tokens":0}`, kernel.Usage{Input: 7, Output: output}},
		"of the answer": {`{"completion_tokens":7}`, kernel.Usage{Input: prompt, Output: 7}},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := answered(t, "vllm", wiretest.Reply{Raw: `{"choices":[{"index":0,"finish_reason":"stop","message":{"content":"some text"}}],"usage":` + c.usage + `}`})
			require.Equal(t, c.want, a.Usage)
		})
	}
	a, _ := answered(t, "vllm", wiretest.Reply{Raw: `{"choices":[{"index":0,"finish_reason":"stop","message":{"content":""}}],"usage":{"prompt_tokens":7,"completion_tokens":0}}`})
	require.Equal(t, kernel.Usage{Input: 7}, a.Usage, "an answer of nothing")
}

func count(t *testing.T, p *openai.Port, conf port.Conf, req *kernel.Request) int64 {
	t.Helper()
	n, err := p.Count(context.Background(), req, conf)
	require.NoError(t, err)
	return n
}

func TestCountVocabulary(t *testing.T) {
	p := openai.New(environment(nil))
	user := func(text string) *kernel.Request {
		return requestOf(`{"content":` + quote(text) + `,"role":"user"}`)
	}
	const words = "The quick brown fox jumps over the lazy dog."
	require.Equal(t, int64(10+4+3), count(t, p, port.Conf{Model: "gpt-4o"}, user(words)))
	require.Equal(t, int64(10+4+3), count(t, p, port.Conf{Model: "gpt-4"}, user(words)))
	require.NotEqual(t, count(t, p, port.Conf{Model: "gpt-4o"}, user("こんにちは世界、元気ですか")), count(t, p, port.Conf{Model: "gpt-4-0613"}, user("こんにちは世界、元気ですか")))
	long := strings.Repeat(words+" ", 2000)
	got := count(t, p, port.Conf{Model: "gpt-4o"}, user(long))
	require.InDelta(t, 2000*10+1, got, 2000*10*0.001)

	one := count(t, p, port.Conf{Model: "gpt-5"}, requestOf(ask))
	require.Greater(t, count(t, p, port.Conf{Model: "gpt-5"}, withTool(requestOf(ask))), one+12+8)
	picture := requestOf(`{"content":[{"source":{"data":"` + strings.Repeat("aGlh", 100000) + `","media_type":"image/png","type":"base64"},"type":"image"}],"role":"user"}`)
	require.Equal(t, int64(port.ImageTokens+4+3), count(t, p, port.Conf{Model: "gpt-5"}, picture))
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func TestCountStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := openai.New(environment(nil)).Count(ctx, requestOf(ask), port.Conf{Model: "gpt-4o"})
	require.Equal(t, kernel.Cancelled, port.ClassifyError(err).Kind)
}

// An estimate is bytes by four until the server has counted a prompt; then it
// follows the server, and a longer prompt is never said to take less.
func TestCountCalibrated(t *testing.T) {
	s := wiretest.New(t)
	p, conf := at(s, "vllm")
	req := requestOf(`{"content":"` + strings.Repeat("word ", 100) + `","role":"user"}`)
	require.Equal(t, port.Estimate(req), count(t, p, conf, req))
	for _, usage := range []wiretest.Usage{{Input: 300, CacheRead: 100, Output: 5}, {Input: 90, Output: 5}} {
		s.Reply(wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say("x")}, Usage: usage})
		_, _, err := call(t, p, conf, req)
		require.NoError(t, err)
		counted := usage.Input + usage.CacheRead
		require.Equal(t, counted, count(t, p, conf, req))
		grown := requestOf(string(req.Messages[0]), `{"content":"`+strings.Repeat("word ", 50)+`","role":"assistant"}`, ask)
		require.GreaterOrEqual(t, count(t, p, conf, grown), counted+int64(grown.Size()-req.Size())/4)
		require.Less(t, count(t, p, conf, requestOf(ask)), counted)
	}
	other := conf
	other.Model = "another"
	require.Equal(t, port.Estimate(req), count(t, p, other, req))
	require.Len(t, s.Requests(), 2, "counting makes no call")
}

// textOf and imageOf are requests of that many bytes of text, and of an image.
func textOf(bytes int) *kernel.Request {
	return requestOf(`{"content":"` + strings.Repeat("word ", bytes/5) + `","role":"user"}`)
}

func imageOf(bytes int) *kernel.Request {
	return requestOf(`{"content":[{"text":"see","type":"text"},{"source":{"data":"` + strings.Repeat("A", bytes) + `","media_type":"image/png","type":"base64"},"type":"image"}],"role":"user"}`)
}

// An image weighs the same whatever its bytes are, on every server.
func TestCountOfAnImage(t *testing.T) {
	s := wiretest.New(t)
	for _, dialect := range openai.Dialects {
		p, conf := at(s, dialect)
		small, large := count(t, p, conf, imageOf(400)), count(t, p, conf, imageOf(800_000))
		require.Equal(t, small, large, dialect)
		require.Greater(t, small, int64(port.ImageTokens))
		require.Less(t, small, int64(port.ImageTokens+100))
	}
}

// What a server counted corrects the estimate of its model: never below what it
// counted, never below half of the estimate that nobody corrected, and what an
// image took says nothing about text.
func TestCountCorrected(t *testing.T) {
	for name, c := range map[string]struct {
		called *kernel.Request
		took   int64
		next   *kernel.Request
		low    int64
		high   int64
	}{
		"the same image":                {imageOf(800_000), 1000, imageOf(800_000), 1000, 1050},
		"text after an image":           {imageOf(800_000), 1000, textOf(200_000), 49_900, 52_000},
		"text after a dear image":       {imageOf(800_000), 16_000, textOf(200_000), 50_000, 150_000},
		"a dear image":                  {imageOf(800_000), 16_000, imageOf(400), 15_900, 16_000},
		"two images after one":          {imageOf(400), 1000, both(imageOf(400), imageOf(400)), 2500, 2750},
		"two dear images after one":     {imageOf(400), 16_000, both(imageOf(400), imageOf(400)), 20_000, 33_000},
		"an image after text":           {textOf(100_000), 25_000, both(textOf(100_000), imageOf(400)), 26_600, 26_700},
		"the same text, dear":           {textOf(100_000), 60_000, textOf(100_000), 60_000, 60_000},
		"half of it":                    {textOf(100_000), 60_000, textOf(50_000), 30_000, 30_100},
		"twice of it":                   {textOf(100_000), 60_000, textOf(200_000), 119_900, 120_000},
		"text after very cheap text":    {textOf(1_000_000), 1000, textOf(200_000), 25_000, 25_100},
		"more after very cheap text":    {textOf(1_000_000), 1000, textOf(1_100_000), 150_000, 150_100},
		"long text after a dear prompt": {textOf(20), 500, textOf(100_000), 25_400, 25_600},
		"long text after a short one":   {requestOf(ask), 75, textOf(200_000), 50_000, 50_200},
		"short text after a dear one":   {textOf(20), 500, textOf(100), 500, 530},
		"text after a long dear one":    {textOf(20_000), 10_000, textOf(40_000), 19_900, 20_000},
	} {
		t.Run(name, func(t *testing.T) {
			s := wiretest.New(t).Reply(wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say("x")}, Usage: wiretest.Usage{Input: c.took, Output: 5}})
			p, conf := at(s, "vllm")
			_, _, err := call(t, p, conf, c.called)
			require.NoError(t, err)
			got := count(t, p, conf, c.next)
			require.GreaterOrEqual(t, got, c.low)
			require.LessOrEqual(t, got, c.high)
			other := conf
			other.BaseURL = s.URL + "/llamacpp/v1"
			require.Equal(t, port.Estimate(c.next), count(t, p, other, c.next), "each server has its own")
		})
	}
}

// What no prompt of its size can take is not believed, and what was believed before
// stays.
func TestCountOfNonsense(t *testing.T) {
	s := wiretest.New(t)
	p, conf := at(s, "vllm")
	used := func(req *kernel.Request, tokens int64) {
		s.Reply(wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say("x")}, Usage: wiretest.Usage{Input: tokens, Output: 5}})
		a, _, err := call(t, p, conf, req)
		require.NoError(t, err)
		require.Equal(t, tokens, a.Usage.Input, "the answer says what the server said")
	}
	text, image := textOf(100_000), imageOf(400)
	for _, nonsense := range []int64{9e15, int64(text.Size()) + 20_000} {
		used(text, nonsense)
		require.Equal(t, port.Estimate(text), count(t, p, conf, text))
	}
	used(text, 30_000)
	used(text, 9e15)
	require.Equal(t, int64(30_000), count(t, p, conf, text))
	used(image, 25_000) // a dear one
	require.Equal(t, int64(25_000), count(t, p, conf, image))
	used(requestOf(ask), 5_000) // behind long instructions of its server
	require.Equal(t, int64(5_000), count(t, p, conf, requestOf(ask)))
}

func both(a, b *kernel.Request) *kernel.Request {
	return requestOf(string(a.Messages[0]), string(b.Messages[0]))
}

// patient is a context that ends when it was asked so often whether it has.
type patient struct {
	context.Context
	asked *int
}

func (p patient) Err() error {
	if *p.asked--; *p.asked < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// A count heeds its context inside a text as well, at every piece of it.
func TestCountStopsInsideAText(t *testing.T) {
	long := requestOf(`{"content":"` + strings.Repeat("é", 100_000) + `","role":"user"}`)
	for _, times := range []int{3, 10} {
		asked := times
		_, err := openai.New(environment(nil)).Count(patient{context.Background(), &asked}, long, port.Conf{Model: "gpt-4o"})
		require.ErrorContains(t, err, context.DeadlineExceeded.Error())
		require.Equal(t, kernel.Transport, port.ClassifyError(err).Kind)
	}
	asked := 100
	n, err := openai.New(environment(nil)).Count(patient{context.Background(), &asked}, long, port.Conf{Model: "gpt-4o"})
	require.NoError(t, err)
	require.Positive(t, n)
}

// What ollama was trained for is not what it runs with, so it is asked again until
// it says that.
func TestOnlyWhatIsCertainIsRemembered(t *testing.T) {
	s := wiretest.New(t).Serves(wiretest.Model{ID: "qwen", Window: 131_072})
	p, conf := at(s, "ollama")
	conf.Model = "qwen"
	size := func() int64 {
		got, err := p.Profile(context.Background(), conf)
		require.NoError(t, err)
		return got.ContextWindow
	}
	require.Equal(t, int64(131_072), size())
	s.Serves(wiretest.Model{ID: "qwen", Window: 131_072, MaxOutput: 4096})
	require.Equal(t, int64(4096), size())
	asked := len(s.Requests())
	require.Equal(t, int64(4096), size())
	require.Len(t, s.Requests(), asked)
}

func TestProfile(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		dialect string
		models  []wiretest.Model
		conf    port.Conf
		want    port.Profile
	}{
		"table":           {"openai", nil, port.Conf{Model: "gpt-4o-2024-08-06"}, port.Profile{ContextWindow: 128_000, MaxOutput: 16_384}},
		"longest name":    {"openai", nil, port.Conf{Model: "gpt-4.1-mini"}, port.Profile{ContextWindow: 1_047_576, MaxOutput: 32_768}},
		"fine-tuned":      {"openai", nil, port.Conf{Model: "ft:gpt-4o:acme"}, port.Profile{ContextWindow: 128_000, MaxOutput: 16_384}},
		"chat, newer":     {"openai", nil, port.Conf{Model: "gpt-5.2-chat-latest"}, port.Profile{ContextWindow: 128_000, MaxOutput: 16_384}},
		"no chat":         {"openai", nil, port.Conf{Model: "gpt-5.2"}, port.Profile{ContextWindow: 400_000, MaxOutput: 128_000}},
		"pro":             {"openai", nil, port.Conf{Model: "gpt-5-pro-2025-10-06"}, port.Profile{ContextWindow: 400_000, MaxOutput: 272_000}},
		"a preview":       {"openai", nil, port.Conf{Model: "gpt-4-0125-preview"}, port.Profile{ContextWindow: 128_000, MaxOutput: 4_096}},
		"of a picture":    {"openai", nil, port.Conf{Model: "gpt-4-1106-vision-preview"}, port.Profile{ContextWindow: 128_000, MaxOutput: 4_096}},
		"the first":       {"openai", nil, port.Conf{Model: "gpt-4-0613"}, port.Profile{ContextWindow: 8_192, MaxOutput: 8_192}},
		"tuned, by name":  {"openai", nil, port.Conf{Model: "ft:gpt-5:acme:x-chat"}, port.Profile{ContextWindow: 400_000, MaxOutput: 128_000}},
		"openrouter fast": {"openrouter", []wiretest.Model{{ID: "a/b:free", Window: 1}, {ID: "a/b", Window: 65_536}}, port.Conf{Model: "a/b:nitro"}, port.Profile{ContextWindow: 65_536}},
		"openrouter free": {"openrouter", []wiretest.Model{{ID: "a/b", Window: 65_536}, {ID: "a/b:free", Window: 4096}}, port.Conf{Model: "a/b:free"}, port.Profile{ContextWindow: 4096}},
		"other letters":   {"openrouter", []wiretest.Model{{ID: "a/b", Window: 65_536}}, port.Conf{Model: "A/B:Floor"}, port.Profile{ContextWindow: 65_536}},
		"conf":            {"openai", nil, port.Conf{Model: "gpt-4o", ContextWindow: 9000, MaxTokens: 100}, port.Profile{ContextWindow: 9000, MaxOutput: 100}},
		"conf, smaller":   {"openai", nil, port.Conf{Model: "gpt-4o", ContextWindow: 9000}, port.Profile{ContextWindow: 9000, MaxOutput: 9000}},
		"vllm":            {"vllm", []wiretest.Model{{ID: "other", Window: 5}, {ID: "qwen", Window: 32_768}}, port.Conf{Model: "qwen"}, port.Profile{ContextWindow: 32_768}},
		"llamacpp":        {"llamacpp", []wiretest.Model{{ID: "x", Window: 4096}}, port.Conf{Model: "qwen"}, port.Profile{ContextWindow: 4096}},
		"openrouter":      {"openrouter", []wiretest.Model{{ID: "a/b", Window: 65_536}}, port.Conf{Model: "a/b"}, port.Profile{ContextWindow: 65_536}},
		"ollama":          {"ollama", []wiretest.Model{{ID: "qwen", Window: 40_960}}, port.Conf{Model: "qwen"}, port.Profile{ContextWindow: 40_960}},
		"ollama, running": {"ollama", []wiretest.Model{{ID: "qwen:latest", Window: 40_960, MaxOutput: 4096}}, port.Conf{Model: "qwen"}, port.Profile{ContextWindow: 4096}},
	} {
		t.Run(name, func(t *testing.T) {
			s := wiretest.New(t).Serves(c.models...)
			p, place := at(s, c.dialect)
			c.conf.BaseURL, c.conf.Dialect, c.conf.APIKeyEnv = place.BaseURL, place.Dialect, place.APIKeyEnv
			got, err := p.Profile(ctx, c.conf)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			asked := len(s.Requests())
			_, err = p.Profile(ctx, c.conf)
			require.NoError(t, err)
			if name != "ollama" { // which only says what it was trained for
				require.Len(t, s.Requests(), asked, "a server is asked once")
			}
		})
	}
	s := wiretest.New(t).Serves(wiretest.Model{ID: "a", Window: 5})
	for dialect, want := range map[string]string{
		"openai": `profile of "gpt-9000": the size of its context is not known, want conf.context_window`,
		"vllm":   `profile of "gpt-9000": the size of its context is not known, want conf.context_window`,
		"ollama": `invalid_request: model "gpt-9000" not found`,
	} {
		p, conf := at(s, dialect)
		conf.Model = "gpt-9000"
		_, err := p.Profile(ctx, conf)
		require.EqualError(t, err, want)
	}
}

func TestHealth(t *testing.T) {
	s := wiretest.New(t)
	for _, dialect := range openai.Dialects {
		p, conf := at(s, dialect)
		conf.Model = ""
		require.NoError(t, p.Health(context.Background(), conf))
	}
	require.ErrorContains(t, openai.New(environment(nil)).Health(context.Background(), port.Conf{}), "auth: OPENAI_API_KEY: not set")
	err := openai.As("vllm", environment(nil)).Health(context.Background(), port.Conf{BaseURL: "http://127.0.0.1:1"})
	require.Equal(t, kernel.Transport, port.ClassifyError(err).Kind)
	require.Panics(t, func() { openai.As("vlm", environment(nil)) })
}
