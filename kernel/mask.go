package kernel

import (
	"encoding/json"
	"slices"
)

// ownKinds are those by which the kernel reads a log, beside what [kernelOnly]
// knows.
var ownKinds = []string{MsgUser, LLMRequest, LLMResponse, LLMCallFailed, ToolCall, ToolResult}

// hide takes out of ev what Options.Mask hides. The kernel's own llm_request
// holds a request that was masked before it was hashed.
func (k *Kernel) hide(ev *Event) {
	if k.mask == nil || ev.Kind == LLMRequest && fieldOf(ev.Data, "hash") != nil {
		return
	}
	if _, ours := kernelOnly(ev.Kind); !ours && !slices.Contains(ownKinds, ev.Kind) {
		ev.Kind = k.hidden(ev.Kind)
	}
	ev.Beat = k.hidden(ev.Beat)
	data, changed := k.mask(ev.Data)
	meta, also := k.mask(ev.Meta)
	if changed || also {
		ev.Data, ev.Meta = data, meta
		ev.folded.Store(nil)
	}
}

// hidden answers a caller's word without what Options.Mask hides.
func (k *Kernel) hidden(word string) string {
	if word == "" {
		return ""
	}
	if raw, changed := k.mask(quote(word)); changed {
		return textOf(raw)
	}
	return word
}

// hide takes out of r what mask hides: a model is not told secrets, and what it
// is told can be recorded. r owns its lists.
func (r *Request) hide(mask func(json.RawMessage) (json.RawMessage, bool)) {
	if mask == nil {
		return
	}
	for _, list := range [][]json.RawMessage{r.Messages, r.Tools} {
		for i := range list {
			list[i], _ = mask(list[i])
		}
	}
	for _, v := range []*json.RawMessage{&r.System, &r.ToolChoice, &r.Params, &r.Window} {
		*v, _ = mask(*v)
	}
	for name, v := range r.Extra {
		r.Extra[name], _ = mask(v)
	}
}
