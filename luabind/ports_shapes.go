package luabind

import (
	"sync"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/script"
	"github.com/knl-run/knl/shapes"
)

// portShape are the Forms of what ports takes and answers.
type portShape struct{ profile, conf, reply, fail *shapes.Form }

var portForms = sync.OnceValue(func() *portShape {
	p := &portShape{
		profile: shapes.NewForm("profile", "What a model can do, in tokens.", port.Profile{},
			"ContextWindow context_window prompt and completion together", "MaxOutput max_output,omitempty the longest completion, when it is known",
			"Prefill prefill a request may end with an assistant message"),
		conf: shapes.NewForm("conf", "Which model to open and how to ask it; what is left out is the port's choice.", port.Conf{},
			"Model model,omitempty", "BaseURL base_url,omitempty", "APIKeyEnv api_key_env,omitempty the environment variable that holds the key",
			"Timeout timeout,omitempty seconds for a whole call", "NoStream stream,omitempty (default: true)", "NoCache cache,omitempty marks for a prompt cache (default: true)",
			"Dialect dialect,omitempty of a server that only resembles its provider", "API api,omitempty", "ContextWindow context_window,omitempty tokens",
			"Headers headers,omitempty", "MaxTokens max_tokens,omitempty of the completion", "Temperature temperature,omitempty", "TopP top_p,omitempty",
			"TopK top_k,omitempty", "Stop stop,omitempty", "Seed seed,omitempty", "Thinking thinking,omitempty", "ResponseFormat response_format,omitempty"),
		reply: shapes.NewForm("reply", "An answer of ports.script; text, calls, content, refuse, fail, truncated or stop must be there.", script.Reply{},
			"Text text,omitempty", "Thinking thinking,omitempty", "Calls calls,omitempty each a list of name and args, or a table of name, args and id",
			"Content content,omitempty the blocks as they are", "Refuse refuse,omitempty the model declines, in these words", "Fail fail,omitempty the call gives no answer",
			"Truncated truncated,omitempty the output limit cut the reply", "Stop stop,omitempty the stop reason", "Delay delay,omitempty seconds", "Usage usage,omitempty"),
		fail: shapes.NewForm("fail", "", script.Fail{}, "Kind kind", "Message message,omitempty", "RetryAfter retry_after,omitempty seconds", "Status status,omitempty of HTTP"),
	}
	p.conf.As("api", shapes.OneOf(port.APIs...)).As("stop", shapes.AnyOf(shapes.String, shapes.ArrayOf(shapes.String))).As("response_format", shapes.Table)
	p.conf.As("thinking", shapes.AnyOf(shapes.Boolean, shapes.Shape(map[string]*shapes.Schema{
		"effort": shapes.OneOf(port.Efforts...).Optional(), "budget_tokens": shapes.Integer.AtLeast(1).Optional(),
	}, false)))
	p.fail.As("kind", shapes.Words(kernel.CallKinds...))
	p.reply.As("calls", shapes.ArrayOf(shapes.Table)).As("content", shapes.ArrayOf(shapes.Table)).As("delay", shapes.Number.AtLeast(0))
	p.reply.As("fail", p.fail.Closed()).As("usage", shapes.FormOf("usage").Closed().Partial())
	return p
})

// portShapes answers what ports publishes.
func portShapes() []Shape {
	p := portForms()
	return []Shape{
		{Name: p.profile.Name, Doc: p.profile.Doc, Schema: p.profile.Schema()},
		{Name: p.conf.Name, Doc: p.conf.Doc, Schema: p.conf.Closed()},
		{Name: p.reply.Name, Doc: p.reply.Doc, Schema: p.reply.Closed()},
	}
}
