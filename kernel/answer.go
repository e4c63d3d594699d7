package kernel

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/knl-run/knl/kernel/store"
)

// take reads the model's answer: it gives every call an id that is used once
// in the session, and every call without arguments an empty object. An answer
// that cannot be read is an error and nothing of it runs.
func (b *beat) take(a *Answer) error {
	own := *a // the llm may answer the same value again
	b.answer = &own
	content := a.Content
	if len(content) == 0 {
		content = json.RawMessage("[]")
	}
	clean, mended, err := validText(content, maxDepth-1)
	switch {
	case err != nil:
		return brokenAnswer("content: %s", err)
	case clean[0] != '[':
		return brokenAnswer("content: got %s, want an array of blocks", typeOf(clean))
	}
	b.reply = &Reply{Beat: b.id, Content: clean, Usage: a.Usage, StopReason: a.StopReason,
		RefusalDetail: a.RefusalDetail, Tools: []ToolRun{}}
	if a.Refused {
		if b.reply.RefusalKind = a.RefusalKind; a.RefusalKind == "" {
			return brokenAnswer("refused without a kind")
		}
	}
	b.shut, b.mended = map[int]closing{}, mended
	if err := b.takeBlocks(); err != nil {
		return err
	}
	b.answer.Content = b.reply.Content
	return nil
}

func (b *beat) takeBlocks() error {
	var blocks []json.RawMessage
	if err := eachItem(b.reply.Content, func(_ int, block json.RawMessage) { blocks = append(blocks, block) }); err != nil {
		return brokenAnswer("content: %s", err)
	}
	changed := false
	for i, block := range blocks {
		next, err := b.takeBlock(i, block)
		if err != nil {
			return err
		}
		changed = changed || &next[0] != &block[0]
		blocks[i] = next
	}
	if changed {
		b.reply.Content = joinArray(blocks)
	}
	return nil
}

func brokenAnswer(format string, args ...any) error {
	return &CallError{Kind: Unknown, Message: "the llm's answer cannot be read: " + fmt.Sprintf(format, args...)}
}

// takeBlock answers a block as it is recorded, and lists the call it asks for.
func (b *beat) takeBlock(i int, block json.RawMessage) (json.RawMessage, error) {
	switch {
	case block[0] != '{':
		return block, brokenAnswer("content[%d]: got %s, want an object", i+1, typeOf(block))
	case !isText(fieldOf(block, "type"), "tool_use"):
		return block, nil
	}
	fields, err := objectFields(block)
	if err != nil {
		return block, brokenAnswer("content[%d]: %s", i+1, err)
	}
	c := &Call{Name: textOf(fields["name"]), Args: fields["input"]}
	if c.Name == "" {
		return block, brokenAnswer("content[%d]: tool_use without a name", i+1)
	}
	n := len(b.calls)
	given := textOf(fields["id"])
	if c.ID, err = b.callID(given, n+1); err != nil {
		return block, err
	}
	if c.ID != given {
		block = withField(block, "id", quote(c.ID))
		if given != "" {
			block = withField(block, "provider_id", quote(given))
		}
	}
	switch k := jsontext.Value(c.Args).Kind(); {
	case c.Args == nil || k == 'n':
		c.Args = json.RawMessage("{}")
		block = withField(block, "input", c.Args)
	case k != '{':
		b.shut[n] = closing{"malformed", fmt.Sprintf("the arguments are %s and not an object, so the call did not run: send it again with an object", typeOf(c.Args))}
	}
	c.Block = block
	b.calls = append(b.calls, c)
	return block, nil
}

// callID answers the provider's id when this session has not used it, else one
// made of the beat and the call's number.
func (b *beat) callID(given string, n int) (string, error) {
	id := given
	for {
		if id != "" && len(id) <= store.MaxName {
			used, err := b.used(id)
			if err != nil || !used {
				return id, wrap("beat", err)
			}
		}
		id = b.id + "/" + strconv.Itoa(n)
		n++
	}
}

// used says whether a call of this session has the id.
func (b *beat) used(id string) (bool, error) {
	for _, c := range b.calls {
		if c.ID == id {
			return true, nil
		}
	}
	return b.s.k.store.Marked(context.WithoutCancel(b.ctx), b.s.id, id)
}

// response makes the llm_response event.
func (b *beat) response() *Event {
	o := newObject(len(b.reply.Content)+192).raw("content", b.reply.Content)
	if b.answer.Refused {
		refusal := newObject(0)
		if b.reply.RefusalDetail != "" {
			refusal.text("detail", b.reply.RefusalDetail)
		}
		o.raw("refusal", refusal.text("kind", b.reply.RefusalKind).json())
	}
	if b.reply.StopReason != "" {
		o.text("stop_reason", b.reply.StopReason)
	}
	return noted(madeEvent(LLMResponse, b.id, o.raw("usage", b.reply.Usage.encode()).json()), b.mended)
}

// noted counts in an event's meta what the door mended of it.
func noted(ev *Event, mended int) *Event {
	if mended > 0 {
		ev.Meta = json.RawMessage(`{"mended":` + strconv.Itoa(mended) + `}`)
	}
	return ev
}

func (u Usage) encode() json.RawMessage {
	return newObject(96).whole("cache_read_tokens", u.CacheRead).whole("cache_write_tokens", u.CacheWrite).
		whole("input_tokens", u.Input).whole("output_tokens", u.Output).whole("thinking_tokens", u.Thinking).json()
}
