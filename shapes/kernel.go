package shapes

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/knl-run/knl/kernel"
)

// Named is a schema that a module publishes.
type Named struct {
	Name   string
	Doc    string
	Schema *Schema
}

// Refusal is why a model declined, as scripts see it.
type Refusal struct{ Kind, Detail string }

// The closed lists of words that the kernel has as constants only.
var (
	outcomeStatus  = []string{kernel.StatusOK, kernel.StatusRefused, kernel.StatusError, kernel.StatusStopped}
	outcomeStages  = []string{kernel.StageConf, kernel.StageFilter, kernel.StageCall, kernel.StageState, kernel.StageContract}
	stoppedReasons = []string{"budget", "deadline"}
	eventKinds     = []string{
		kernel.MsgUser, kernel.LLMRequest, kernel.LLMResponse, kernel.LLMCallFailed, kernel.ToolCall, kernel.ToolResult,
		kernel.SessionOpened, kernel.SessionClosed, kernel.BudgetGranted, kernel.BudgetReserved, kernel.BudgetRefused,
		kernel.BudgetSpent, kernel.BudgetSettled, kernel.BudgetReturned, kernel.BeatInterrupted, kernel.DriverChanged,
	}
	effects   = []kernel.Effects{kernel.Read, kernel.Write, kernel.External}
	decisions = []kernel.Decision{kernel.Run, kernel.Deny}
	stages    = []string{"call", "tools"} // of an interrupted beat
)

// set is what the kernel publishes, and the Forms behind it.
type set struct {
	*forms
	list []Named
}

var kernelSet = sync.OnceValue(func() *set {
	s := &set{forms: &forms{
		prefix: "knl.", byType: map[reflect.Type]*Form{}, byName: map[string]*Form{}, at: map[string]*Schema{},
		words: map[reflect.Type]*Schema{
			reflect.TypeFor[kernel.Kind]():     Words(kernel.Kinds...),
			reflect.TypeFor[kernel.CallKind](): Words(kernel.CallKinds...),
			reflect.TypeFor[kernel.Effects]():  Words(effects...),
			reflect.TypeFor[kernel.Decision](): Words(decisions...),
		},
	}}
	s.lists()
	s.handles()
	s.messages()
	s.answers()
	s.events()
	s.outcomes()
	s.contexts()
	s.rows()
	return s
})

// Kernel answers the shapes of the kernel's values, in the order of the
// documentation: knl.shapes.<name>, knl.<name> in LuaCATS.
func Kernel() []Named { return kernelSet().list }

// FormOf answers the Form behind the shape of that name.
func FormOf(name string) *Form {
	f := kernelSet().byName[name]
	if f == nil {
		panic(fmt.Sprintf("BUG: shapes: no form is named %q", name))
	}
	return f
}

// publish gives a schema its name.
func (s *set) publish(name, doc string, schema *Schema) *Schema {
	named := schema.Named(s.prefix + name)
	named.About = doc
	s.list, s.at[name] = append(s.list, Named{name, doc, named}), named
	return named
}

func (s *set) publishForm(f *Form) *Schema { return s.publish(f.Name, f.Doc, f.Schema()) }

// typed reads a LuaCATS type, in which the names of s stand behind the prefix.
func (s *set) typed(text string) *Schema {
	schema, err := ParseType(text, func(name string) *Schema { return s.at[name[min(len(s.prefix), len(name)):]] })
	if err != nil {
		panic("BUG: shapes: " + err.Error())
	}
	return schema
}

func (s *set) lists() {
	s.publish("error_kinds", "What kind of fault the kernel met.", Words(kernel.Kinds...))
	s.publish("call_error_kinds", "Why a model call gave no answer; the first four are worth another try.", Words(kernel.CallKinds...))
	s.publish("stop_reasons", "How a reply may end; another word is an error.", Words(kernel.StopReasons...))
	s.publish("outcome_status", "What a beat may come to.", Words(outcomeStatus...))
	s.publish("outcome_stages", "The kinds of an error Outcome: the stage that broke.", Words(outcomeStages...))
	s.publish("stopped_reasons", "Why the kernel stops a loop; a script's own Outcomes may say others.", Words(stoppedReasons...))
	s.publish("effects", "What a tool may do to the world.", Words(effects...))
	s.publish("tool_policy_decision", "What a tool_policy says of a call; nothing runs it.", Words(decisions...))
	s.publish("event_kinds", "The kinds that the kernel writes or reads; the vocabulary is open.", Words(eventKinds...))
}

// handles are what scripts hold and call; a stand-in of a script is a table.
func (s *set) handles() {
	s.publish("session", "A handle on one session.", AnyOf(Userdata, Table))
	s.publish("device", "A frozen bundle of policy.", AnyOf(Userdata, Table))
	s.publish("llm", "An opened model, or a script's function in its place.", AnyOf(Function, Userdata, Table))
}

func (s *set) messages() {
	s.publish("text_block", "What was said.", s.typed(`{ type: "text", text: string }`))
	s.publish("tool_use_block", "A call that the model asks for.", s.typed(`{ type: "tool_use", id?: string, name: string, input?: any }`))
	s.publish("tool_result_block", "The result of a call, as the model reads it.",
		s.typed(`{ type: "tool_result", tool_use_id: string, content: any, is_error?: boolean }`))
	s.publish("message", "One message of a request: text, or a list of blocks.", s.typed(`{ role: "user"|"assistant", content: any }`))
	s.publish("tool_spec", "A tool as the model is told of it.", s.typed(`{ name: string, description?: string, input_schema?: any }`))
	// A script may ask with messages and tools of another form; that is between it
	// and the port.
	f := s.add("request", "What a model is asked.", kernel.Request{}, "Messages messages", "System system,omitempty text, or a list of blocks",
		"Tools tools,omitempty sorted by name", "ToolChoice tool_choice,omitempty", "Params params,omitempty sampling parameters")
	f.As("messages", ArrayOf(Table.Named("knl.message"))).As("tools", ArrayOf(Table.Named("knl.tool_spec"))).As("params", Table)
	s.publishForm(f)
}

func (s *set) answers() {
	usage := s.publishForm(s.add("usage", "The tokens of one call, in disjoint counters.", kernel.Usage{},
		"Input input_tokens of the prompt, neither read from nor written to a cache", "Output output_tokens thinking included",
		"Thinking thinking_tokens those of the output that were thinking", "CacheRead cache_read_tokens", "CacheWrite cache_write_tokens"))
	refusal := s.publishForm(s.add("refusal", "Why a model declined.", Refusal{}, "Kind kind model or content_filter", "Detail detail,omitempty the provider's words"))
	answer := s.add("answer", "", kernel.Answer{}, "Content content blocks", "StopReason stop_reason,omitempty one of stop_reasons").
		As("content", ArrayOf(Table)).Plus("usage", usage.Partial())
	open := answer.Schema()
	open.Fields["content"] = open.Fields["content"].Optional()
	s.publish("answer", "What a model answers; a counter that is left out is 0.", Discriminated("status", map[string]*Schema{
		kernel.StatusOK:      open.With(map[string]*Schema{"status": OneOf(kernel.StatusOK)}),
		kernel.StatusRefused: open.With(map[string]*Schema{"status": OneOf(kernel.StatusRefused), "refusal": refusal}),
	}))
	s.publishForm(s.add("call_error", "Why a model gave no answer: the second value of an llm.", kernel.CallError{},
		"Kind kind", "Message message", "RetryAfter retry_after,omitempty seconds the provider asked to wait", "Status status,omitempty of HTTP").
		Plus("retryable", Boolean))
	s.publishForm(s.add("tool_run", "One call of a reply, and whether it ran well.", kernel.ToolRun{}, "CallID call_id", "Name name", "OK ok"))
	s.publishForm(s.add("reply", "What the model said and what its tools did.", kernel.Reply{}, "Content content blocks", "Usage usage",
		"StopReason stop_reason,omitempty one of stop_reasons", "Beat beat", "Tools tools,omitempty in the order of the calls; not of a refused reply").
		As("content", ArrayOf(Table)).Plus("refusal", refusal.Optional()))
}

func (s *set) events() {
	meta := MapOf(String, AnyOf(String, Number, Boolean))
	f := s.add("event", "An entry of a session's log, read-only.", kernel.Event{}, "Kind kind what happened", "Seq seq dense from 1",
		"EpochMS epoch_ms wall clock at the append", "Beat beat,omitempty", "Meta meta labels", "Data data").
		As("meta", meta).As("data", Table).Plus("stream", String.Described("the session it belongs to, in what scan answers").Optional())
	s.publishForm(f)
	in := s.add("event_in", "An event as a script appends it.", kernel.Draft{}, "Kind kind", "Beat beat,omitempty", "Meta meta,omitempty", "Data data,omitempty").
		As("kind", String.NotEmpty()).As("meta", meta).As("data", Table)
	s.publish(in.Name, in.Doc, in.Closed())
	s.publishForm(s.add("beat_record", "The events of one beat.", kernel.BeatRecord{}, "ID id", "Events events in log order"))
	s.publishForm(s.add("open_call", "A tool call without a result of its own.", kernel.OpenCall{}, "Started - its handler may have run"))
	s.publishForm(s.add("interrupted", "A beat that its driver did not live to end.", kernel.Interrupted{}, "Beat beat",
		"Stage stage call: no answer was recorded; tools: calls were open", "OpenCalls open_calls").As("stage", OneOf(stages...)))
}

func (s *set) outcomes() {
	s.publishForm(s.add("detail", "Why an Outcome is an error; its tostring is the message.", kernel.Detail{},
		"Kind kind,omitempty one of call_error_kinds at the stage call, of error_kinds at state", "Method method,omitempty the kernel call that did not go through",
		"Retryable retryable", "RetryAfter retry_after,omitempty seconds", "Status status,omitempty of HTTP", "Message message",
		"Traceback traceback,omitempty of a raise in a script's function, in dev mode", "Cause cause,omitempty what went wrong before, when recording it did too",
		"Reply answer,omitempty an answer that was paid for and could not be recorded"))
	variant := func(status string, lines ...string) *Form {
		return s.build("", "", kernel.Outcome{}, append([]string{"Status status"}, lines...)).As("status", OneOf(status))
	}
	ok, refused := variant(kernel.StatusOK, "Reply out"), variant(kernel.StatusRefused, "Reason reason the kind of the refusal", "Reply detail")
	stopped := variant(kernel.StatusStopped, "Reason reason", "Tag tag,omitempty the unit of the budget that ran out")
	failed := variant(kernel.StatusError, "Stage kind", "Detail detail").As("kind", OneOf(outcomeStages...))
	s.publish("beat_outcome", "What a beat answers.", variants(ok, refused, failed, stopped))
	s.publish("outcome", "What a loop and its policies hand on: a beat's answer, or a script's own.", variants(
		ok.As("out", Table.Named("knl.reply")), refused.As("detail", Any), failed.As("kind", String).As("detail", Any), stopped))
}

// variants answers the Outcomes of these Forms.
func variants(ok, refused, failed, stopped *Form) *Schema {
	return Discriminated("status", map[string]*Schema{
		kernel.StatusOK: ok.Schema(), kernel.StatusRefused: refused.Schema(),
		kernel.StatusError: failed.Schema(), kernel.StatusStopped: stopped.Schema(),
	})
}

func (s *set) contexts() {
	deadline := Number.Described("seconds since 1970").Optional()
	s.publishForm(s.add("tool_context", "What a handler is told besides its arguments.", kernel.ToolContext{}, "Beat beat", "CallID call_id",
		"IdempotencyKey idempotency_key the same each time this call is run").Plus("session", s.at["session"]).Plus("deadline", deadline))
	s.publishForm(s.add("delta", "A piece of a streamed answer, for display.", kernel.Delta{}, "Kind kind", "Text text").As("kind", OneOf("text", "thinking")))
	s.publishForm(s.add("call_context", "What a model is told besides the request.", kernel.CallOptions{}, "Beat beat", "Session session its id",
		"Call call model calls that the session made before").Plus("deadline", deadline).
		Plus("on_delta", Function.Named("fun(delta: knl.delta)").Optional()))
}

func (s *set) rows() {
	s.publishForm(s.add("beat_row", "A row of views.beats.", kernel.BeatRow{}, "Kinds - joined by commas, in log order",
		"Window - what the fold said of the log it left out").As("window", Table))
	s.publishForm(s.add("tool_pair", "A row of views.tool_pairs and open_calls.", kernel.PairRow{}))
	s.publishForm(s.add("ledger_row", "A row of views.ledger.", kernel.LedgerRow{}, "Reserved - of budget_settled: what amount takes the place of"))
	s.publishForm(s.add("usage_row", "A row of views.usage: what the calls of a session used.", kernel.UsageRow{}))
	s.publishForm(s.add("session_row", "A row of views.sessions.", kernel.SessionRow{}, "Remaining - of the budget, when there is one", "OpenBeat - a beat that has not ended"))
	s.publishForm(s.add("tree_row", "A row of views.tree.", kernel.TreeRow{}))
}
