package port

import (
	"encoding/json"
	"maps"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port/internal/field"
)

// Conf says which model to open and how to ask it. The zero value of a field
// leaves the choice to the port.
type Conf struct {
	Model          string
	BaseURL        string
	APIKeyEnv      string  // the environment variable that holds the key
	Timeout        float64 // seconds for a whole call
	NoStream       bool    // stream = false
	NoCache        bool    // cache = false: no prompt cache marks
	Dialect        string  // of a server that only resembles its provider
	API            string  // one of APIs
	ContextWindow  int64   // tokens
	Headers        map[string]string
	MaxTokens      int64 // of the completion
	Temperature    *float64
	TopP           *float64
	TopK           int64
	Stop           []string
	Seed           *int64
	Thinking       Thinking
	ResponseFormat json.RawMessage // object as OpenAI Chat Completions spells it
}

// Thinking asks a model to reason before it answers, or not to. The zero value
// leaves it to the model.
type Thinking struct {
	On           bool
	Off          bool   // thinking = false
	Effort       string // one of Efforts
	BudgetTokens int64
}

// APIs lists the values of Conf.API.
var APIs = []string{"chat", "responses"}

// Efforts lists the values of Thinking.Effort.
var Efforts = []string{"minimal", "low", "medium", "high", "xhigh", "max"}

// sampling lists the keys that a request may set for one call.
var sampling = []string{"max_tokens", "temperature", "top_p", "top_k", "stop", "seed", "thinking", "response_format"}

var confKeys = append([]string{"model", "base_url", "api_key_env", "timeout", "stream", "cache", "dialect", "api", "context_window", "headers"}, sampling...)

// ParseConf reads a Conf from a JSON object. The error names the key, what was
// got and what was wanted.
func ParseConf(raw json.RawMessage) (Conf, error) { return Conf{}.Over(raw) }

// Over reads a Conf from a JSON object whose keys are laid over c: what it does
// not say stays as c has it. Headers are laid over one by one.
func (c Conf) Over(raw json.RawMessage) (Conf, error) {
	o := field.Open("conf", raw, confKeys)
	o.Text("model", &c.Model)
	o.Text("base_url", &c.BaseURL)
	o.Text("api_key_env", &c.APIKeyEnv)
	o.Number("timeout", &c.Timeout, 0)
	readNot(o, "stream", &c.NoStream)
	readNot(o, "cache", &c.NoCache)
	o.Text("dialect", &c.Dialect)
	o.OneOf("api", &c.API, APIs)
	o.Whole("context_window", &c.ContextWindow, 1)
	c.readHeaders(o)
	c.readSampling(o)
	return c, o.Err()
}

// with answers c with the sampling keys of raw set over its own.
func (c Conf) with(path string, raw json.RawMessage) (Conf, error) {
	o := field.Open(path, raw, sampling)
	c.readSampling(o)
	return c, o.Err()
}

// For answers c as the call of req has it: what the request's params say over
// it, and over them what filters set.
func (c Conf) For(req *kernel.Request) (Conf, error) {
	c, err := c.with("params", req.Params)
	if err != nil {
		return c, err
	}
	set := field.Map{}
	for key, v := range req.Extra {
		if isSampling(key) {
			set[key] = v
		}
	}
	return c.with("request", set.JSON())
}

func (c *Conf) readSampling(o *field.Object) {
	o.Whole("max_tokens", &c.MaxTokens, 1)
	readNumber(o, "temperature", &c.Temperature)
	readNumber(o, "top_p", &c.TopP)
	o.Whole("top_k", &c.TopK, 1)
	readStop(o, &c.Stop)
	if o.Has("seed") {
		c.Seed = new(int64)
		o.Whole("seed", c.Seed, -1<<63)
	}
	readThinking(o, &c.Thinking)
	if o.Has("response_format") {
		c.ResponseFormat = readObject(o, "response_format")
	}
}

func readNot(o *field.Object, key string, dst *bool) {
	flag := !*dst
	o.Flag(key, &flag)
	*dst = !flag
}

func readNumber(o *field.Object, key string, dst **float64) {
	if o.Has(key) {
		*dst = new(float64)
		o.Number(key, *dst, 0)
	}
}

// readStop takes one string for a list of one.
func readStop(o *field.Object, dst *[]string) {
	if !o.Has("stop") {
		return
	}
	const want = "a string or a list of strings, none of them empty"
	list := []json.RawMessage{o.Raw("stop")}
	if field.KindOf(o.Raw("stop")) != '"' {
		list = o.List("stop", want)
	}
	*dst = nil
	for _, raw := range list {
		var s string
		if json.Unmarshal(raw, &s) != nil || s == "" || field.KindOf(raw) != '"' {
			o.Want("stop", want)
		}
		*dst = append(*dst, s)
	}
}

// readThinking takes true, false or an object; an object asks for thinking. A
// budget set for one call keeps the effort that the Conf has, and the reverse.
func readThinking(o *field.Object, t *Thinking) {
	raw := o.Raw("thinking")
	switch {
	case raw == nil:
	case field.KindOf(raw) == 't':
		t.On, t.Off = true, false
	case field.KindOf(raw) == 'f':
		*t = Thinking{Off: true}
	case field.KindOf(raw) == '{':
		in := field.Open(o.Path("thinking"), raw, []string{"effort", "budget_tokens"})
		t.On, t.Off = true, false
		in.OneOf("effort", &t.Effort, Efforts)
		in.Whole("budget_tokens", &t.BudgetTokens, 1)
		o.Take(in.Err())
	default:
		o.Want("thinking", "true, false or { effort?, budget_tokens? }")
	}
}

func readObject(o *field.Object, key string) json.RawMessage {
	raw := o.Raw(key)
	if field.KindOf(raw) != '{' {
		o.Want(key, "an object")
	}
	return raw
}

func (c *Conf) readHeaders(o *field.Object) {
	if !o.Has("headers") {
		return
	}
	headers := maps.Clone(c.Headers)
	if headers == nil {
		headers = map[string]string{}
	}
	if field.KindOf(o.Raw("headers")) != '{' || json.Unmarshal(o.Raw("headers"), &headers) != nil {
		o.Want("headers", "an object of strings")
	}
	c.Headers = headers
}

func isSampling(key string) bool {
	for _, k := range sampling {
		if k == key {
			return true
		}
	}
	return false
}
