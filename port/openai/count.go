package openai

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"math"
	"strings"
	"sync"

	"github.com/tiktoken-go/tokenizer"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/internal/field"
)

// usage is what a server counted, in the words of both APIs. Cached tokens are
// counted in the prompt, thinking in the completion.
type usage struct {
	Prompt     int64        `json:"prompt_tokens"`
	Completion int64        `json:"completion_tokens"`
	Total      int64        `json:"total_tokens"`
	PromptOf   usageDetails `json:"prompt_tokens_details"`
	Completed  usageDetails `json:"completion_tokens_details"`
	Hit        int64        `json:"prompt_cache_hit_tokens"` // of a few compatibles, beside no details

	Input    int64        `json:"input_tokens"`
	Output   int64        `json:"output_tokens"`
	InputOf  usageDetails `json:"input_tokens_details"`
	OutputOf usageDetails `json:"output_tokens_details"`
}

type usageDetails struct {
	Cached    int64 `json:"cached_tokens"`
	Written   int64 `json:"cache_write_tokens"`
	Reasoning int64 `json:"reasoning_tokens"`
}

// counters answers disjoint counters, none of them below zero whatever the
// server wrote.
func (u *usage) counters() kernel.Usage {
	prompt := atLeast(u.Prompt + u.Input)
	read := min(atLeast(max(u.PromptOf.Cached, u.InputOf.Cached, u.Hit)), prompt)
	written := min(atLeast(max(u.PromptOf.Written, u.InputOf.Written)), prompt-read)
	output := atLeast(u.Completion + u.Output)
	thinking := atLeast(max(u.Completed.Reasoning, u.OutputOf.Reasoning))
	if u.Total > 0 && u.Total == prompt+output+thinking { // some count thinking beside the completion
		output += thinking
	}
	return kernel.Usage{Input: prompt - read - written, Output: output, Thinking: min(thinking, output), CacheRead: read, CacheWrite: written}
}

func atLeast(n int64) int64 { return max(0, n) }

// usageOf answers the counters of an answer, estimated from bytes where the
// server counted nothing: what cost something must not look free.
func (a *asked) usageOf(u *usage, content []byte) kernel.Usage {
	if a.counted = u != nil; a.counted {
		return u.counters()
	}
	return kernel.Usage{Input: a.size, Output: int64(len(content)+3) / 4}
}

// measurement is the last prompt that a server counted.
type measurement struct{ bytes, tokens int64 }

// measure remembers what the server counted for req.
func (m *model) measure(req *kernel.Request, a *kernel.Answer, asked *asked) {
	tokens := a.Usage.Input + a.Usage.CacheRead + a.Usage.CacheWrite
	if asked.counted && tokens > 0 {
		m.port.measured.Store(m.place(), measurement{int64(req.Size()), tokens})
	}
}

// place names the server and the model, for what is remembered of them.
func (m *model) place() string { return m.server.base.String() + " " + m.conf.Model }

// Count answers the tokens that req would take as a prompt: counted with the
// model's own vocabulary for OpenAI, estimated elsewhere. It makes no call.
func (p *Port) Count(ctx context.Context, req *kernel.Request, conf port.Conf) (int64, error) {
	m, err := p.open(conf)
	if err != nil {
		return 0, err
	}
	if m.server.dialect.name != Name {
		return m.estimate(int64(req.Size())), nil
	}
	m.responses = false // one form is enough to count by
	lowered, err := port.Lower(m.target(), req, conf)
	if err != nil {
		return 0, err
	}
	return p.counted.prompt(ctx, vocabularyOf(conf.Model), lowered.Body)
}

// estimate scales bytes by the prompt that the server counted last, four bytes to
// a token before it has. A prompt that is no shorter than that one is never said
// to take less.
func (m *model) estimate(bytes int64) int64 {
	const perByte = 0.25
	v, known := m.port.measured.Load(m.place())
	if !known {
		return (bytes + 3) / 4
	}
	last := v.(measurement)
	rate := float64(last.tokens) / float64(last.bytes)
	if bytes < last.bytes {
		return int64(math.Ceil(float64(bytes) * rate))
	}
	return last.tokens + int64(math.Ceil(float64(bytes-last.bytes)*max(rate, perByte)))
}

// What a prompt takes beside its texts, in tokens. OpenAI has published the
// first three; the others are measured, and a picture's depends on its size,
// which is not looked at.
const (
	perMessage  = 3 // and one for the role
	perReply    = 3
	perRole     = 1
	perTool     = 8
	perTools    = 12
	perPicture  = 765
	perFileByte = 1.0 / 16
)

// chatBody is what of a Chat Completions body is counted.
type chatBody struct {
	Messages []struct {
		Content   json.RawMessage `json:"content"`
		ToolCalls []struct {
			Function toolSpoken `json:"function"`
		} `json:"tool_calls"`
	} `json:"messages"`
	Tools []struct {
		Function toolSpoken `json:"function"`
	} `json:"tools"`
	Format json.RawMessage `json:"response_format"`
}

type toolSpoken struct {
	Name        string          `json:"name"`
	Arguments   string          `json:"arguments"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// prompt counts a body.
func (t *texts) prompt(ctx context.Context, v vocabulary, raw json.RawMessage) (int64, error) {
	var body chatBody
	if err := json.Unmarshal(raw, &body); err != nil {
		panic("BUG: a lowered body does not read: " + err.Error())
	}
	n := int64(perReply) + t.count(v, string(body.Format))
	for _, m := range body.Messages {
		if err := ctx.Err(); err != nil {
			return 0, port.ClassifyError(err)
		}
		n += perMessage + perRole + t.content(v, m.Content)
		for _, c := range m.ToolCalls {
			n += perTool + t.count(v, c.Function.Name) + t.count(v, c.Function.Arguments)
		}
	}
	for _, tool := range body.Tools {
		n += perTool + t.count(v, tool.Function.Name) + t.count(v, tool.Function.Description) + t.count(v, string(tool.Function.Parameters))
	}
	if len(body.Tools) > 0 {
		n += perTools
	}
	return n, nil
}

func (t *texts) content(v vocabulary, raw json.RawMessage) int64 {
	if field.KindOf(raw) != '[' {
		var text string
		_ = json.Unmarshal(raw, &text)
		return t.count(v, text)
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
		File struct {
			Data string `json:"file_data"`
		} `json:"file"`
	}
	_ = json.Unmarshal(raw, &parts)
	n := int64(0)
	for _, p := range parts {
		n += t.count(v, p.Text) + int64(float64(len(p.File.Data))*perFileByte)
		if p.Type == "image_url" {
			n += perPicture
		}
	}
	return n
}

// vocabulary is a way to cut texts into tokens; it is built when it is first
// asked, for that takes longer than knl takes to start.
type vocabulary struct {
	name  tokenizer.Encoding
	codec func() tokenizer.Codec
}

var (
	o200k = vocabularyNamed(tokenizer.O200kBase)
	cl100 = vocabularyNamed(tokenizer.Cl100kBase)
)

func vocabularyNamed(name tokenizer.Encoding) vocabulary {
	return vocabulary{name, sync.OnceValue(func() tokenizer.Codec {
		codec, err := tokenizer.Get(name)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		return codec
	})}
}

// vocabularyOf answers the vocabulary of a model; what is not known to be old is
// taken for new.
func vocabularyOf(name string) vocabulary {
	name = strings.TrimPrefix(name, "ft:")
	for _, old := range []string{"gpt-4-", "gpt-3.5", "gpt-35"} {
		if name == "gpt-4" || strings.HasPrefix(name, old) {
			return cl100
		}
	}
	return o200k
}

// texts remembers how many tokens a text has: a conversation is counted at
// every beat, and only its end is new. It keeps two generations and forgets the
// older one.
type texts struct {
	mu         sync.Mutex
	young, old map[[32]byte]int64
}

const generation = 4096 // texts

func (t *texts) count(v vocabulary, text string) int64 {
	if text == "" {
		return 0
	}
	key := sha256.Sum256([]byte(string(v.name) + "\x00" + text))
	t.mu.Lock()
	n, known := t.young[key]
	if !known {
		n, known = t.old[key]
	}
	t.mu.Unlock()
	if !known {
		n = v.count(text)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.young) >= generation || t.young == nil {
		t.young, t.old = make(map[[32]byte]int64), t.young
	}
	t.young[key] = n
	return n
}

// count cuts long texts at a space: the time for a text grows faster than it
// does, and a cut costs a token at most.
func (v vocabulary) count(text string) int64 {
	const most = 16 << 10
	n := int64(0)
	for len(text) > 0 {
		end := len(text)
		if end > most {
			end = most
			if at := strings.LastIndexAny(text[:most], " \n"); at > 0 {
				end = at
			}
		}
		k, err := v.codec().Count(text[:end])
		if err != nil { // of a text that no vocabulary has: four bytes to a token
			k = (end + 3) / 4
		}
		n, text = n+int64(k), text[end:]
	}
	return n
}
