package wiretest

import (
	"encoding/json"
	"fmt"
)

// response is one answer of the Responses API. A Raw block is an item as it is.
type response struct {
	reply *Reply
	model string
}

// items answers the output.
func (p response) items() []json.RawMessage {
	out := []json.RawMessage{}
	for i, b := range p.reply.Blocks {
		out = append(out, b.item(i))
	}
	if p.reply.Refuse != "" {
		out = append(out, answered(len(out), map[string]any{"type": "refusal", "refusal": p.reply.Refuse}))
	}
	return out
}

func (b Block) item(i int) json.RawMessage {
	switch {
	case b.Raw != nil:
		return b.Raw
	case b.Name != "" || b.Input != "":
		return marshal(map[string]any{
			"type": "function_call", "id": fmt.Sprintf("fc_%d", i), "call_id": b.ID, "name": b.Name, "arguments": b.Input, "status": "completed",
		})
	case b.Thinking != "":
		summary := []any{map[string]any{"type": "summary_text", "text": b.Thinking}}
		return marshal(map[string]any{"type": "reasoning", "id": fmt.Sprintf("rs_%d", i), "summary": summary, "encrypted_content": b.Signature})
	}
	return answered(i, map[string]any{"type": "output_text", "text": b.Text, "annotations": []any{}, "logprobs": []any{}})
}

// answered is a message with one part.
func answered(i int, part map[string]any) json.RawMessage {
	return marshal(map[string]any{"type": "message", "id": fmt.Sprintf("msg_%d", i), "role": "assistant", "status": "completed", "content": []any{part}})
}

// whole is an answer with everything in it.
func (p response) whole() map[string]any {
	out := p.begun()
	out["status"], out["output"], out["usage"] = "completed", p.items(), p.reply.Usage.orSome().responses()
	if p.reply.Stop != "" {
		out["status"], out["incomplete_details"] = "incomplete", map[string]any{"reason": p.reply.Stop}
	}
	return out
}

func (p response) begun() map[string]any {
	return map[string]any{
		"id": "resp_1", "object": "response", "created_at": 1767225600, "model": p.model, "status": "in_progress", "output": []any{},
		"error": nil, "incomplete_details": nil, "instructions": nil, "metadata": map[string]any{}, "parallel_tool_calls": true,
		"temperature": 1, "tool_choice": "auto", "tools": []any{}, "top_p": 1,
	}
}

func (u Usage) responses() map[string]any {
	input := u.Input + u.CacheRead + u.CacheWrite
	return map[string]any{
		"input_tokens": input, "output_tokens": u.Output, "total_tokens": input + u.Output,
		"input_tokens_details":  map[string]any{"cached_tokens": u.CacheRead, "cache_write_tokens": u.CacheWrite},
		"output_tokens_details": map[string]any{"reasoning_tokens": u.Thinking},
	}
}

// streamResponse writes an answer as a stream.
func (s *Server) streamResponse(st *stream, p response) {
	n := 0
	send := func(name string, event map[string]any) {
		event["type"], event["sequence_number"] = name, n
		n++
		st.send(name, marshal(event))
	}
	send("response.created", map[string]any{"response": p.begun()})
	for i, item := range p.items() {
		send("response.output_item.added", map[string]any{"output_index": i, "item": item})
		for name, pieces := range p.pieces(i) {
			for _, piece := range pieces {
				send(name, map[string]any{"output_index": i, "item_id": fmt.Sprint(i), "content_index": 0, "summary_index": 0, "delta": piece})
			}
		}
		send("response.output_item.done", map[string]any{"output_index": i, "item": item})
	}
	switch {
	case p.reply.Error != "":
		send("error", map[string]any{"code": p.reply.Error, "message": p.reply.Say, "param": nil})
		return
	case p.reply.Never:
		st.forever("response.in_progress", marshal(map[string]any{"type": "response.in_progress", "response": p.begun(), "sequence_number": n}))
		return
	case p.reply.Quiet:
		return
	}
	name := "response.completed"
	if p.reply.Stop != "" {
		name = "response.incomplete"
	}
	send(name, map[string]any{"response": p.whole()})
}

// pieces answers the deltas of the i-th item, by the event that they come in.
func (p response) pieces(i int) map[string][]string {
	if i == len(p.reply.Blocks) {
		return map[string][]string{"response.refusal.delta": p.reply.chunks(p.reply.Refuse)}
	}
	b := p.reply.Blocks[i]
	switch {
	case b.Raw != nil:
		return nil
	case b.Name != "" || b.Input != "":
		return map[string][]string{"response.function_call_arguments.delta": p.reply.chunks(b.Input)}
	case b.Thinking != "":
		return map[string][]string{"response.reasoning_summary_text.delta": p.reply.chunks(b.Thinking)}
	}
	return map[string][]string{"response.output_text.delta": p.reply.chunks(b.Text)}
}
