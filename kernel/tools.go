package kernel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const maxResult = 16 << 20 // bytes of one tool result

// closing is why a call does not run.
type closing struct {
	mark string // a flag of its tool_result: "truncated", "malformed", "denied", …
	text string // what the model reads
}

// shutAll closes every call that is not closed yet.
func (b *beat) shutAll(mark, text string) {
	for i := range b.calls {
		if _, done := b.shut[i]; !done {
			b.shut[i] = closing{mark, text}
		}
	}
}

// decide asks the tool policy about every call before any runs.
func (b *beat) decide() *Outcome {
	for i, c := range b.calls {
		if _, done := b.shut[i]; done {
			continue
		}
		if out := b.decideOne(i, c); out != nil {
			b.shutAll("not_run", "the beat ended before this call ran")
			return out
		}
	}
	return nil
}

func (b *beat) decideOne(i int, c *Call) *Outcome {
	if b.d.Policy != nil {
		type verdict struct {
			d      Decision
			reason string
		}
		v, err := guard(func() (v verdict, err error) {
			v.d, v.reason, err = b.d.Policy(b.ctx, c, b.answer)
			return v, err
		})
		switch {
		case err != nil:
			b.shut[i] = closing{"denied", "denied by policy: the policy raised: " + err.Error()}
			return nil
		case v.d == Deny && v.reason != "":
			b.shut[i] = closing{"denied", "denied by policy: " + v.reason}
			return nil
		case v.d == Deny:
			b.shut[i] = closing{"denied", "denied by policy"}
			return nil
		case v.d != Run && v.d != "":
			out := failed(StageConf, &Detail{Message: fmt.Sprintf("tool_policy: got %q for the call of %q, want run or deny", v.d, c.Name)})
			return &out
		}
	}
	if why, bad := b.d.refuses(c); bad {
		b.shut[i] = why
	}
	return nil
}

// refuses says why a call cannot run whatever the policy says.
func (d *Device) refuses(c *Call) (closing, bool) {
	if _, ok := d.Tools[c.Name]; !ok {
		names := slices.Sorted(maps.Keys(d.Tools))
		text := fmt.Sprintf("tool %q not found", c.Name)
		if len(names) > 0 {
			text += ": the tools are " + strings.Join(names, ", ")
		}
		return closing{"unknown_tool", text}, true
	}
	schema := d.schemas[c.Name]
	if schema == nil {
		return closing{}, false
	}
	args, err := jsonschema.UnmarshalJSON(bytes.NewReader(c.Args))
	if err == nil {
		err = schema.Validate(args)
	}
	if err != nil {
		return closing{"bad_args", "the arguments do not match the tool's input_schema: " + mismatch(err)}, true
	}
	return closing{}, false
}

// runTools runs the calls in order and records them: each tool_call before its
// handler, each result with the next call.
func (b *beat) runTools() error {
	for i := 0; i < len(b.calls); {
		b.heed()
		n := b.batch(i)
		if n > 0 && b.halted { // left open for interrupt
			i += n
			continue
		}
		if n == 0 {
			b.queue = append(b.queue, b.callEvent(b.calls[i]), b.closed(i))
			i++
			continue
		}
		group := b.calls[i : i+n]
		need := lazy
		for _, c := range group {
			b.queue = append(b.queue, b.callEvent(c))
			if b.d.Tools[c.Name].Effects != Read {
				need = barrier
			}
		}
		if err := b.write(need); err != nil {
			return err
		}
		b.queue = append(b.queue, b.runGroup(group)...)
		i += n
	}
	if len(b.calls) > 0 {
		b.heed()
	}
	if err := b.write(lazy); err != nil || len(b.calls) == 0 {
		return err
	}
	return b.interrupt("beat")
}

// heed closes the calls that have not run when the beat was told to end.
func (b *beat) heed() {
	if b.ctx.Err() == nil || b.halted {
		return
	}
	b.halted = true
	if !b.cancelled() {
		b.shutAll("not_run", "not run: "+context.Cause(b.ctx).Error())
	}
}

// cancelled says whether the beat was ended from outside and not by its
// deadline. Its calls without a result are then recorded as after a crash: the
// model is told, and they may be run again.
func (b *beat) cancelled() bool {
	return b.ctx.Err() != nil && !errors.Is(context.Cause(b.ctx), errDeadline)
}

// interrupt closes what a cancelled beat left open.
func (b *beat) interrupt(method string) error {
	if !b.cancelled() {
		return nil
	}
	ctx := context.WithoutCancel(b.ctx)
	_, err := b.s.drive(ctx, method, lazy, func(st *state) ([]*Event, error) {
		if st.Open != b.id {
			return nil, nil
		}
		return b.s.k.interruption(ctx, b.s.id, st)
	})
	return err
}

// unfinished says whether err is of a call that a cancelled beat cut short.
func (b *beat) unfinished(err error) bool {
	var tf *toolFault
	return b.cancelled() && errors.As(err, &tf) && (tf.mark == "cancelled" || tf.mark == "not_run")
}

// batch answers how many calls from i on run together: none when i is closed,
// one, or as many neighbours as are marked parallel.
func (b *beat) batch(i int) int {
	n := 0
	for ; i+n < len(b.calls); n++ {
		if _, shut := b.shut[i+n]; shut {
			break
		}
		if !b.d.Tools[b.calls[i+n].Name].Parallel {
			return max(n, 1)
		}
	}
	return n
}

// runGroup runs calls that are marked parallel beside each other and answers
// their results in the order of the calls.
func (b *beat) runGroup(group []*Call) []*Event {
	out := make([]*Event, len(group))
	runs := make([]ToolRun, len(group))
	if len(group) == 1 {
		out[0], runs[0] = b.runCall(group[0])
	} else {
		var wg sync.WaitGroup
		width := make(chan struct{}, b.d.Parallel)
		for i, c := range group {
			width <- struct{}{}
			wg.Go(func() {
				over := false
				defer func() {
					if !over { // the handler has ended its goroutine
						out[i], runs[i] = b.resultEvent(c, nil, errors.New("the handler ended its goroutine and answered nothing"), nil)
					}
					<-width
				}()
				out[i], runs[i] = b.runCall(c)
				over = true
			})
		}
		wg.Wait()
	}
	b.reply.Tools = append(b.reply.Tools, runs...)
	return slices.DeleteFunc(out, func(ev *Event) bool { return ev == nil })
}

func (b *beat) runCall(c *Call) (*Event, ToolRun) {
	result, err := b.d.handle(b.ctx, b.s, b.id, c)
	if b.unfinished(err) {
		return nil, ToolRun{CallID: c.ID, Name: c.Name}
	}
	return b.resultEvent(c, result, err, nil)
}

// handle runs the handler of one call.
func (d *Device) handle(ctx context.Context, s *Session, beat string, c *Call) (json.RawMessage, error) {
	if ctx.Err() != nil { // while it waited for others that run beside it
		return nil, &toolFault{"not_run", "not run: " + context.Cause(ctx).Error()}
	}
	tool := d.Tools[c.Name]
	tc := ToolContext{Session: s, Beat: beat, CallID: c.ID, IdempotencyKey: s.id + "/" + c.ID}
	if tool.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, tool.Timeout, errToolTimeout)
		defer cancel()
	}
	if at, ok := ctx.Deadline(); ok {
		tc.Deadline = at
	}
	result, err := guard(func() (json.RawMessage, error) { return tool.Handler(ctx, c.Args, tc) })
	var known *ToolError
	switch {
	case err != nil && errors.Is(context.Cause(ctx), errToolTimeout):
		return nil, &toolFault{"timed_out", fmt.Sprintf("tool %q timed out after %s%s", c.Name, tool.Timeout, tool.doubt())}
	case err != nil && errors.As(err, &known):
		return nil, known.fault()
	case err != nil && ctx.Err() != nil:
		return nil, &toolFault{"cancelled", fmt.Sprintf("tool %q was cancelled: %s%s", c.Name, context.Cause(ctx), tool.doubt())}
	case err != nil:
		return nil, &toolFault{"raised", fmt.Sprintf("tool %q raised: %s", c.Name, err)}
	}
	return result, nil
}

// doubt is what a model should know of a call that was cut short.
func (t *Tool) doubt() string {
	if t.Effects == Read {
		return ""
	}
	return "; whether it took effect is unknown"
}

var errToolTimeout = errors.New("the timeout of the tool passed")

// ToolError is the error of a handler that plays a record: the text of the failed
// result as it is, and the mark beside it.
type ToolError struct {
	Mark string // "timed_out", "interrupted", …; "" for none
	Text string
}

// Error answers the text.
func (e *ToolError) Error() string { return e.Text }

func (e *ToolError) fault() error {
	if e.Mark == "" {
		return &toolFault{"raised", e.Text}
	}
	return &toolFault{e.Mark, e.Text}
}

// toolFault is a failed call as its result tells it.
type toolFault struct{ mark, text string }

func (e *toolFault) Error() string { return e.text }

// resultEvent makes the tool_result of a call that ran. What cannot be
// recorded as it is becomes a failed result that says so.
func (b *beat) resultEvent(c *Call, result json.RawMessage, err error, extra map[string]any) (*Event, ToolRun) {
	if len(result) == 0 {
		result = json.RawMessage(`""`)
	}
	mended := 0
	if err == nil && len(result) > maxResult {
		err = &toolFault{"too_large", fmt.Sprintf("tool %q answered %d bytes, the limit is %d: answer less, or write it to a file and answer its path", c.Name, len(result), maxResult)}
	}
	if err == nil {
		var verr error
		if result, mended, verr = validText(result, maxDepth-1); verr != nil {
			err = &toolFault{"bad_result", fmt.Sprintf("tool %q answered what cannot be recorded: %s", c.Name, verr)}
		}
	}
	run := ToolRun{CallID: c.ID, Name: c.Name, OK: err == nil}
	if err == nil && extra == nil {
		o := newObject(len(result)+64).text("call_id", c.ID).raw("ok", json.RawMessage("true")).raw("result", result)
		return noted(madeEvent(ToolResult, b.id, o.json()), mended), run
	}
	fields := map[string]any{"call_id": c.ID, "ok": err == nil, "result": result}
	maps.Copy(fields, extra)
	if err != nil {
		text, _, _ := validText(quote(firstBytes(err.Error(), maxResult)), maxDepth)
		fields["result"] = text
		var tf *toolFault
		if errors.As(err, &tf) && tf.mark != "raised" {
			fields[tf.mark] = true
		}
	}
	return noted(kernelEvent(ToolResult, b.id, fields), mended), run
}

func firstBytes(s string, n int) string {
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "")
	}
	return s
}

func (b *beat) callEvent(c *Call) *Event {
	o := newObject(len(c.Args)+64).raw("args", c.Args).text("call_id", c.ID).text("name", c.Name)
	if id := fieldOf(c.Block, "provider_id"); id != nil {
		o.raw("provider_id", id)
	}
	return madeEvent(ToolCall, b.id, o.json())
}

// closed makes the tool_result of a call that does not run.
func (b *beat) closed(i int) *Event {
	c, why := b.calls[i], b.shut[i]
	b.reply.Tools = append(b.reply.Tools, ToolRun{CallID: c.ID, Name: c.Name})
	return kernelEvent(ToolResult, b.id, map[string]any{"call_id": c.ID, "ok": false, "result": why.text, why.mark: true})
}

// mismatch answers what a schema has against the arguments, one place a line.
func mismatch(err error) string {
	var bad *jsonschema.ValidationError
	if _, places, more := strings.Cut(err.Error(), "\n"); more && errors.As(err, &bad) {
		return places
	}
	return err.Error()
}
