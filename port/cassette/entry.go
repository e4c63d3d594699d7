package cassette

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/internal/field"
)

// call is one recorded call: an answer, or an error.
type call struct {
	model   string
	request *kernel.Request // neutral
	hash    string          // of request
	deltas  []kernel.Delta
	answer  *kernel.Answer
	err     *kernel.CallError
	played  bool
}

// line writes c; before are the calls that stand above it.
func (c *call) line(before []*call) json.RawMessage {
	m := field.Map{"model": field.Quoted(c.model)}
	if base := c.likest(before); base > 0 {
		m["like"], m["request"] = c.like(base, before[base-1])
	} else {
		m["request"] = c.request.Canonical()
	}
	if len(c.deltas) > 0 {
		list := make([]json.RawMessage, len(c.deltas))
		for i, d := range c.deltas {
			list[i] = field.Texts([]string{d.Kind, d.Text})
		}
		m["deltas"] = field.Array(list)
	}
	if c.err != nil {
		m["error"] = errorJSON(c.err)
	} else {
		m["answer"] = answerJSON(c.answer)
	}
	return field.Map{"call": m.JSON()}.JSON()
}

// nearby is how many of the calls before are looked at for a likeness.
const nearby = 16

// likest answers the number of the call that shares most messages, 0 for none.
func (c *call) likest(before []*call) int {
	best, most := 0, 0
	for i := len(before); i > max(0, len(before)-nearby); i-- {
		if n := shared(before[i-1].request, c.request); n > most {
			best, most = i, n
		}
	}
	return best
}

// shared answers how many messages a and b begin with alike.
func shared(a, b *kernel.Request) int {
	n := 0
	for n < len(a.Messages) && n < len(b.Messages) && string(a.Messages[n]) == string(b.Messages[n]) {
		n++
	}
	return n
}

// like answers what the request repeats of base, and the rest of it.
func (c *call) like(number int, base *call) (like, rest json.RawMessage) {
	n := shared(base.request, c.request)
	have, want := membersOf(base.request), membersOf(c.request)
	var same []string
	for name, v := range want {
		if have[name] != nil && string(have[name]) == string(v) {
			same = append(same, name)
			delete(want, name)
		}
	}
	slices.Sort(same)
	want["messages"] = field.Array(c.request.Messages[n:])
	return field.Map{"call": field.Whole(int64(number)), "members": field.Texts(same), "messages": field.Whole(int64(n))}.JSON(),
		field.Map(want).JSON()
}

// membersOf answers a request's members besides its messages.
func membersOf(r *kernel.Request) map[string]json.RawMessage {
	bare := *r
	bare.Messages = nil
	members := map[string]json.RawMessage{}
	_ = json.Unmarshal(bare.Canonical(), &members)
	delete(members, "messages")
	return members
}

func answerJSON(a *kernel.Answer) json.RawMessage {
	content := a.Content
	if len(content) == 0 {
		content = json.RawMessage("[]")
	}
	u := a.Usage
	m := field.Map{"usage": field.Map{
		"cache_read_tokens": field.Whole(u.CacheRead), "cache_write_tokens": field.Whole(u.CacheWrite), "input_tokens": field.Whole(u.Input),
		"output_tokens": field.Whole(u.Output), "thinking_tokens": field.Whole(u.Thinking)}.JSON()}
	if jsontext.Value(content).IsValid() {
		m["content"] = content
	} else { // the kernel mends it, or says what is wrong
		m["content_text"] = field.Quoted(string(content))
	}
	if a.StopReason != "" {
		m["stop_reason"] = field.Quoted(a.StopReason)
	}
	if a.Refused {
		m["refusal"] = field.Map{"detail": field.Quoted(a.RefusalDetail), "kind": field.Quoted(a.RefusalKind)}.JSON()
	}
	return m.JSON()
}

func errorJSON(e *kernel.CallError) json.RawMessage {
	m := field.Map{"kind": field.Quoted(string(e.Kind)), "message": field.Quoted(e.Message)}
	if e.RetryAfter > 0 {
		m["retry_after"] = field.Number(e.RetryAfter)
	}
	if e.Status > 0 {
		m["status"] = field.Whole(int64(e.Status))
	}
	if e.Retry != nil {
		m["retryable"] = json.RawMessage(fmt.Sprint(*e.Retry))
	}
	return m.JSON()
}

// readCall reads what line writes.
func readCall(at string, raw json.RawMessage, before []*call) (*call, error) {
	o := field.Open(at, raw, []string{"model", "like", "request", "deltas", "answer", "error"})
	c := &call{}
	o.Text("model", &c.model)
	if c.request = readRequest(o, before); c.request != nil {
		c.hash = hashOf(c.request)
	}
	for _, pair := range o.List("deltas", "a list of pairs") {
		var d []string
		if json.Unmarshal(pair, &d) != nil || len(d) != 2 {
			o.Want("deltas", "a list of pairs of text")
			break
		}
		c.deltas = append(c.deltas, kernel.Delta{Kind: d[0], Text: d[1]})
	}
	switch {
	case o.Has("answer") == o.Has("error"):
		o.Take(fmt.Errorf("%s: got both or neither of answer and error, want one", at))
	case o.Has("error"):
		c.err = readError(o)
	default:
		c.answer = readAnswer(o)
	}
	return c, o.Err()
}

func readRequest(o *field.Object, before []*call) *kernel.Request {
	members := map[string]json.RawMessage{}
	if json.Unmarshal(o.Raw("request"), &members) != nil {
		o.Want("request", "an object")
		return nil
	}
	if o.Has("like") {
		if err := repeat(field.Open(o.Path("like"), o.Raw("like"), []string{"call", "members", "messages"}), members, before); err != nil {
			o.Take(err)
			return nil
		}
	}
	r, err := kernel.ParseRequest(field.Map(members).JSON())
	if err != nil {
		o.Take(fmt.Errorf("%s: %w", o.At(), err))
	}
	return r
}

// repeat puts into members what like names of an earlier call.
func repeat(like *field.Object, members map[string]json.RawMessage, before []*call) error {
	var number, n int64
	var names []string
	like.Whole("call", &number, 1)
	like.Whole("messages", &n, 0)
	if like.Has("members") && json.Unmarshal(like.Raw("members"), &names) != nil {
		like.Want("members", "a list of names")
	}
	if err := like.Err(); err != nil {
		return err
	}
	if number > int64(len(before)) || n > int64(len(before[number-1].request.Messages)) {
		return fmt.Errorf("%s: names call %d and %d of its messages, which are not above", like.At(), number, n)
	}
	base := before[number-1].request
	own, err := field.Elements(members["messages"])
	if err != nil {
		return fmt.Errorf("%s: the request's messages are no list", like.At())
	}
	members["messages"] = field.Array(append(slices.Clone(base.Messages[:n]), own...))
	have := membersOf(base)
	for _, name := range names {
		if have[name] == nil {
			return fmt.Errorf("%s: names the member %q, which call %d does not have", like.At(), name, number)
		}
		members[name] = have[name]
	}
	return nil
}

func readAnswer(o *field.Object) *kernel.Answer {
	in := field.Open(o.Path("answer"), o.Raw("answer"), []string{"content", "content_text", "usage", "stop_reason", "refusal"})
	a := &kernel.Answer{Content: in.Raw("content")}
	if in.Has("content_text") {
		var text string
		in.Text("content_text", &text)
		a.Content = json.RawMessage(text)
	}
	in.Text("stop_reason", &a.StopReason)
	if in.Has("refusal") {
		a.Refused = true
		r := field.Open(in.Path("refusal"), in.Raw("refusal"), []string{"kind", "detail"})
		r.Text("kind", &a.RefusalKind)
		r.Text("detail", &a.RefusalDetail)
		in.Take(r.Err())
	}
	u := field.Open(in.Path("usage"), in.Raw("usage"), []string{"cache_read_tokens", "cache_write_tokens", "input_tokens", "output_tokens", "thinking_tokens"})
	for name, dst := range map[string]*int64{"cache_read_tokens": &a.Usage.CacheRead, "cache_write_tokens": &a.Usage.CacheWrite,
		"input_tokens": &a.Usage.Input, "output_tokens": &a.Usage.Output, "thinking_tokens": &a.Usage.Thinking} {
		u.Whole(name, dst, 0)
	}
	in.Take(u.Err())
	o.Take(in.Err())
	return a
}

func readError(o *field.Object) *kernel.CallError {
	in := field.Open(o.Path("error"), o.Raw("error"), []string{"kind", "message", "retry_after", "status", "retryable"})
	e, kind, status := &kernel.CallError{}, "", int64(0)
	in.Text("kind", &kind)
	in.Text("message", &e.Message)
	in.Number("retry_after", &e.RetryAfter, 0)
	in.Whole("status", &status, 0)
	if in.Has("retryable") {
		e.Retry = new(bool)
		in.Flag("retryable", e.Retry)
	}
	e.Kind, e.Status = kernel.CallKind(kind), int(status)
	o.Take(in.Err())
	return e
}

// sizes is what a profile depends on.
type sizes struct {
	model            string
	window, maxToken int64
}

func sizesOf(conf port.Conf) sizes { return sizes{conf.Model, conf.ContextWindow, conf.MaxTokens} }

func profileLine(s sizes, p port.Profile) json.RawMessage {
	answer := field.Map{"context_window": field.Whole(p.ContextWindow), "max_output": field.Whole(p.MaxOutput), "prefill": json.RawMessage(fmt.Sprint(p.Prefill))}
	return field.Map{"profile": field.Map{"answer": answer.JSON(), "context_window": field.Whole(s.window),
		"max_tokens": field.Whole(s.maxToken), "model": field.Quoted(s.model)}.JSON()}.JSON()
}

func readProfile(at string, raw json.RawMessage) (s sizes, p port.Profile, err error) {
	o := field.Open(at, raw, []string{"answer", "context_window", "max_tokens", "model"})
	o.Text("model", &s.model)
	o.Whole("context_window", &s.window, 0)
	o.Whole("max_tokens", &s.maxToken, 0)
	in := field.Open(o.Path("answer"), o.Raw("answer"), []string{"context_window", "max_output", "prefill"})
	in.Whole("context_window", &p.ContextWindow, 0)
	in.Whole("max_output", &p.MaxOutput, 0)
	in.Flag("prefill", &p.Prefill)
	o.Take(in.Err())
	return s, p, o.Err()
}

// counted names the request of a count.
type counted struct{ model, hash string }

func hashOf(r *kernel.Request) string { return fmt.Sprintf("%x", r.Hash()) }

func countLine(k counted, tokens int64) json.RawMessage {
	return field.Map{"count": field.Map{"hash": field.Quoted(k.hash), "model": field.Quoted(k.model), "tokens": field.Whole(tokens)}.JSON()}.JSON()
}

func readCount(at string, raw json.RawMessage) (k counted, tokens int64, err error) {
	o := field.Open(at, raw, []string{"hash", "model", "tokens"})
	o.Text("hash", &k.hash)
	o.Text("model", &k.model)
	o.Whole("tokens", &tokens, 0)
	return k, tokens, o.Err()
}
