package script

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port/internal/field"
)

// Reply is one answer of the scripted model, or one failure.
type Reply struct {
	Text      string
	Thinking  string
	Calls     []Call
	Content   json.RawMessage // the blocks as they are, in place of Text, Thinking and Calls
	Refuse    string          // the model declines, with these words
	Fail      *Fail           // the call fails
	Truncated bool            // the output limit cut the reply
	Stop      *string         // the stop reason, in place of the one that follows from the rest
	Delay     time.Duration   // waited first; the call's end or deadline ends it early
	Usage     *kernel.Usage   // in place of the estimate
}

// Call is one tool call of a Reply.
type Call struct {
	Name string          // empty: a call without a name, which breaks an answer
	Args json.RawMessage // an object; a string stands for arguments that are no JSON
	ID   *string         // nil: an id that is used once in a session; empty: none
}

// Fail is how a call fails.
type Fail struct {
	Kind       kernel.CallKind
	Message    string
	RetryAfter float64 // seconds
	Status     int     // HTTP status
}

var (
	replyKeys = []string{"text", "thinking", "calls", "content", "refuse", "fail", "truncated", "stop", "delay", "usage"}
	failKeys  = []string{"kind", "message", "retry_after", "status"}
	callKeys  = []string{"name", "args", "id"}
	usageKeys = []string{"input_tokens", "output_tokens", "thinking_tokens", "cache_read_tokens", "cache_write_tokens"}
)

// ParseReplies reads a list of replies. Paths in errors count from 1, as Lua
// does: "replies[2].calls[1]: got a string, want { name, args? }".
func ParseReplies(raw json.RawMessage) ([]Reply, error) {
	list, err := elements("replies", raw, "a list of replies")
	if err != nil {
		return nil, err
	}
	replies := make([]Reply, len(list))
	for i, item := range list {
		if replies[i], err = parseReply(fmt.Sprintf("replies[%d]", i+1), item); err != nil {
			return nil, err
		}
	}
	return replies, nil
}

// ParseReply reads one reply, as a function of a script answers it.
func ParseReply(raw json.RawMessage) (Reply, error) { return parseReply("reply", raw) }

func parseReply(path string, raw json.RawMessage) (Reply, error) {
	if len(raw) == 0 {
		return Reply{}, fmt.Errorf("%s: got nothing, want a reply", path)
	}
	o := field.Open(path, raw, replyKeys)
	var r Reply
	o.Text("text", &r.Text)
	o.Text("thinking", &r.Thinking)
	o.Text("refuse", &r.Refuse)
	if o.Has("refuse") && r.Refuse == "" {
		o.Refuse("refuse", "got an empty text, want the words of the refusal")
	}
	o.Flag("truncated", &r.Truncated)
	if o.Has("stop") {
		r.Stop = new(string)
		o.Text("stop", r.Stop)
	}
	r.Delay = delay(o)
	r.Calls = calls(o)
	r.Content = content(o)
	r.Fail = fail(o)
	r.Usage = usage(o)
	fits(o)
	return r, o.Err()
}

// fits refuses a reply that says nothing, or two things that exclude each other.
func fits(o *field.Object) {
	said := false
	for _, key := range []string{"text", "calls", "content", "refuse", "fail", "truncated", "stop"} {
		said = said || o.Has(key)
	}
	if !said {
		o.Take(fmt.Errorf("%s: says nothing, want one of text, calls, content, refuse, fail, truncated, stop", o.At()))
	}
	for _, key := range []string{"text", "thinking", "calls"} {
		if o.Has("content") && o.Has(key) {
			o.Refuse(key, "stands beside content, want one of the two")
		}
	}
	for _, key := range []string{"text", "thinking", "calls", "content", "refuse", "truncated", "stop", "usage"} {
		if o.Has("fail") && o.Has(key) {
			o.Refuse(key, "stands beside fail, want a call that fails or one that answers")
		}
	}
}

func delay(o *field.Object) time.Duration {
	var seconds float64
	o.Number("delay", &seconds, 0)
	if seconds > maxDelay {
		o.Want("delay", fmt.Sprintf("seconds, at most %d", maxDelay))
	}
	return time.Duration(seconds * float64(time.Second))
}

// maxDelay is a day, in seconds.
const maxDelay = 24 * 3600

func calls(o *field.Object) []Call {
	if !o.Has("calls") {
		return nil
	}
	list, err := elements(o.Path("calls"), o.Raw("calls"), "a list of { name, args? }")
	o.Take(err)
	var out []Call
	for i, raw := range list {
		c, err := parseCall(fmt.Sprintf("%s[%d]", o.Path("calls"), i+1), raw)
		o.Take(err)
		out = append(out, c)
	}
	return out
}

// parseCall reads the short form { "name", { args } } and the long one
// { name = …, args = …, id = … }.
func parseCall(path string, raw json.RawMessage) (Call, error) {
	const want = "{ name, args? }"
	switch field.KindOf(raw) {
	case '[':
		pair, err := field.Elements(raw)
		if err != nil || len(pair) < 1 || len(pair) > 2 || field.KindOf(pair[0]) != '"' {
			return Call{}, fmt.Errorf("%s: got a list of %d, want %s", path, len(pair), want)
		}
		long := field.Map{"name": pair[0]}
		if len(pair) == 2 {
			long["args"] = pair[1]
		}
		return longCall(path, long.JSON())
	case '{':
		return longCall(path, raw)
	}
	return Call{}, fmt.Errorf("%s: got %s, want %s", path, field.Got(raw), want)
}

func longCall(path string, raw json.RawMessage) (Call, error) {
	o := field.Open(path, raw, callKeys)
	c := Call{Args: json.RawMessage(`{}`)}
	if !o.Has("name") {
		o.Want("name", "the name of a tool")
	}
	o.Text("name", &c.Name)
	if o.Has("id") {
		c.ID = new(string)
		o.Text("id", c.ID)
	}
	if args := o.Raw("args"); args != nil && !isEmpty(args) {
		c.Args = args
		if kind := field.KindOf(args); kind != '{' && kind != '"' {
			o.Want("args", "an object, or a string for arguments that are no JSON")
		}
	}
	return c, o.Err()
}

// content takes any list, well-formed blocks or not: to answer badly is what
// it is for.
func content(o *field.Object) json.RawMessage {
	if !o.Has("content") {
		return nil
	}
	list, err := elements(o.Path("content"), o.Raw("content"), "a list of blocks")
	o.Take(err)
	return field.Array(list)
}

func fail(o *field.Object) *Fail {
	if !o.Has("fail") {
		return nil
	}
	in := field.Open(o.Path("fail"), o.Raw("fail"), failKeys)
	if !in.Has("kind") {
		in.Want("kind", "one of "+field.List(kinds()))
	}
	f, kind, status := &Fail{}, "", int64(0)
	in.OneOf("kind", &kind, kinds())
	in.Text("message", &f.Message)
	in.Number("retry_after", &f.RetryAfter, 0)
	in.Whole("status", &status, 100)
	f.Kind, f.Status = kernel.CallKind(kind), int(status)
	o.Take(in.Err())
	return f
}

func kinds() []string {
	out := make([]string, len(kernel.CallKinds))
	for i, k := range kernel.CallKinds {
		out[i] = string(k)
	}
	return out
}

func usage(o *field.Object) *kernel.Usage {
	if !o.Has("usage") {
		return nil
	}
	u := &kernel.Usage{}
	in := field.Open(o.Path("usage"), o.Raw("usage"), usageKeys)
	for i, dst := range []*int64{&u.Input, &u.Output, &u.Thinking, &u.CacheRead, &u.CacheWrite} {
		in.Whole(usageKeys[i], dst, 0)
	}
	if u.Thinking > u.Output {
		in.Refuse("thinking_tokens", fmt.Sprintf("got %d, want at most output_tokens, %d: thinking is a part of it", u.Thinking, u.Output))
	}
	o.Take(in.Err())
	return u
}

// elements reads a list. An empty Lua table is one too, however it is tagged.
func elements(path string, raw json.RawMessage, want string) ([]json.RawMessage, error) {
	switch {
	case isEmpty(raw):
		return nil, nil
	case field.KindOf(raw) != '[':
		return nil, fmt.Errorf("%s: got %s, want %s", path, field.Got(raw), want)
	}
	list, err := field.Elements(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

func isEmpty(raw json.RawMessage) bool { return string(raw) == "{}" || string(raw) == "[]" }
