package openai

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"math"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/internal/field"
)

// measurement is the last prompt that a server counted: its size, and which part
// of the tokens was for what.
type measurement struct {
	size        port.Size
	text, media int64
}

// measured splits the tokens of a prompt. Its media take their bound, unless that
// would leave its text with less than an eighth of a token for a byte or more than
// a half: no text is like that.
func measured(size port.Size, tokens int64) measurement {
	m := measurement{size, tokens, 0}
	if size.Media > 0 {
		m.text = min(max(tokens-size.Media, size.Bytes/8), size.Bytes/2, tokens)
		m.media = tokens - m.text
	}
	return m
}

// mostTokens bounds what a prompt may have been counted as and be believed: a token
// for every byte, sixteen times the bound of its media, and 16 Ki for what a server
// puts before it.
func mostTokens(s port.Size) int64 { return s.Bytes + 16*s.Media + 16<<10 }

// measure remembers what the server counted for a call, where it can be that.
func (m *model) measure(a *kernel.Answer, asked *asked) {
	tokens := a.Usage.Input + a.Usage.CacheRead + a.Usage.CacheWrite
	if asked.counted && tokens > 0 && tokens <= mostTokens(asked.size) {
		m.port.measured.Store(m.place(), measured(asked.size, tokens))
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
		return m.estimate(port.SizeOf(req)), nil
	}
	m.responses = false // one form is enough to count by
	lowered, err := port.Lower(m.target(), req, conf)
	if err != nil {
		return 0, err
	}
	return p.counted.prompt(ctx, vocabularyOf(conf.Model), lowered.Body)
}

// estimate scales a size by the prompt that the server counted last for the
// model; before it has, a byte is a quarter of a token.
func (m *model) estimate(s port.Size) int64 {
	v, known := m.port.measured.Load(m.place())
	if !known {
		return s.Tokens()
	}
	last := v.(measurement)
	text := scale{known: last.size.Bytes, tokens: last.text, usual: 0.25, telling: tellingBytes}
	media := scale{known: last.size.Media, tokens: last.media, usual: 1}
	return text.of(s.Bytes) + media.of(s.Media)
}

// tellingBytes is the size from which a prompt says what a byte takes. In a shorter
// one the template of a model and the words of its server, which no longer prompt
// has twice, may take as much as the text.
const tellingBytes = 16 << 10

// scale is what known units took.
type scale struct {
	known, tokens int64
	usual         float64 // tokens of a unit, before anything was measured
	telling       int64   // the units from which a measurement says what more of them take
}

// of answers the tokens of n units. What was measured is never said to take less.
// More of it takes usual each or what it took before, where that says something,
// but four times the usual at most. No unit takes less than half of what is usual,
// for the next prompt need not be like the last.
func (s scale) of(n int64) int64 {
	if s.known == 0 {
		return int64(math.Ceil(float64(n) * s.usual))
	}
	base, rate := max(float64(s.tokens), float64(s.known)*s.usual/2), s.usual
	if n <= s.known {
		return int64(math.Ceil(base * float64(n) / float64(s.known)))
	}
	if s.known >= s.telling {
		rate = min(max(base/float64(s.known), s.usual), 4*s.usual)
	}
	return int64(math.Ceil(base + float64(n-s.known)*rate))
}

// What a prompt takes beside its texts and media, in tokens. OpenAI has published
// the first three; the others are measured.
const (
	perMessage = 3 // and one for the role
	perReply   = 3
	perRole    = 1
	perTool    = 8
	perTools   = 12
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
	c := counting{ctx: ctx, texts: t, v: v, tokens: perReply}
	c.text(string(body.Format))
	for _, m := range body.Messages {
		c.tokens += perMessage + perRole
		c.content(m.Content)
		for _, call := range m.ToolCalls {
			c.tool(call.Function)
		}
	}
	for _, tool := range body.Tools {
		c.tool(tool.Function)
	}
	if len(body.Tools) > 0 {
		c.tokens += perTools
	}
	if c.err != nil {
		return 0, port.ClassifyError(c.err)
	}
	return c.tokens, nil
}

// counting is a count that is going on. Its first error sticks.
type counting struct {
	ctx    context.Context
	texts  *texts
	v      vocabulary
	tokens int64
	err    error
}

func (c *counting) text(text string) {
	if text == "" || c.err != nil {
		return
	}
	n, err := c.texts.count(c.ctx, c.v, text)
	c.tokens, c.err = c.tokens+n, err
}

func (c *counting) tool(f toolSpoken) {
	c.tokens += perTool
	for _, text := range []string{f.Name, f.Arguments, f.Description, string(f.Parameters)} {
		c.text(text)
	}
}

func (c *counting) content(raw json.RawMessage) {
	if field.KindOf(raw) != '[' {
		c.text(field.Plain(raw))
		return
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
		File struct {
			Data string `json:"file_data"`
		} `json:"file"`
	}
	_ = json.Unmarshal(raw, &parts)
	for _, p := range parts {
		c.text(p.Text)
		switch p.Type {
		case "image_url":
			c.tokens += port.ImageTokens
		case "file":
			c.tokens += port.FileTokens(len(p.File.Data))
		}
	}
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
	name = origin(name)
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

func (t *texts) count(ctx context.Context, v vocabulary, text string) (int64, error) {
	key := sha256.Sum256([]byte(string(v.name) + "\x00" + text))
	t.mu.Lock()
	n, known := t.young[key]
	if !known {
		n, known = t.old[key]
	}
	t.mu.Unlock()
	if !known {
		var err error
		if n, err = v.count(ctx, text); err != nil {
			return 0, err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.young) >= generation || t.young == nil {
		t.young, t.old = make(map[[32]byte]int64), t.young
	}
	t.young[key] = n
	return n, nil
}

// count cuts long texts at a space: the time for a text grows faster than it
// does, and a cut costs a token at most. Between two pieces ctx may end it.
func (v vocabulary) count(ctx context.Context, text string) (int64, error) {
	n := int64(0)
	for len(text) > 0 {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		end := pieceOfText(text)
		k, err := v.codec().Count(text[:end])
		if err != nil { // of a text that no vocabulary has: four bytes to a token
			k = (end + 3) / 4
		}
		n, text = n+int64(k), text[end:]
	}
	return n, nil
}

// pieceOfText answers where the first piece of a text ends: at a space, else
// between two characters.
func pieceOfText(text string) int {
	const most = 16 << 10
	if len(text) <= most {
		return len(text)
	}
	if at := strings.LastIndexAny(text[:most], " \n"); at > 0 {
		return at
	}
	end := most
	for end > most-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return end
}
