package wiretest

import (
	"encoding/json"
)

// chat is one answer of Chat Completions. A Raw block is a part of the message,
// or a delta, as it is.
type chat struct {
	likeness
	reply *Reply
	model string
	usage bool // the client wants the usage of a stream
}

func (c chat) envelope(object string) map[string]any {
	return map[string]any{"id": "chatcmpl-1", "object": object, "created": 1767225600, "model": c.model}
}

// whole is an answer that is no stream.
func (c chat) whole() map[string]any {
	message := map[string]any{"role": "assistant", "content": nil, "refusal": nil}
	text, calls := "", []any{}
	for _, b := range c.reply.Blocks {
		switch {
		case b.Raw != nil:
			_ = json.Unmarshal(b.Raw, &message)
		case b.Name != "" || b.Input != "":
			calls = append(calls, b.call(len(calls), b.Input))
		case b.Thinking != "":
			c.think(message, b.Thinking, b.Signature)
		default:
			text += b.Text
			message["content"] = text
		}
	}
	if len(calls) > 0 {
		message["tool_calls"] = calls
	}
	if c.reply.Refuse != "" {
		message["refusal"] = c.reply.Refuse
	}
	out := c.envelope("chat.completion")
	out["choices"] = []any{map[string]any{"index": 0, "message": message, "logprobs": nil, "finish_reason": c.finish()}}
	out["usage"] = c.reply.Usage.orSome().chat()
	return out
}

func (c chat) think(message map[string]any, text, signature string) {
	if c.thinking == "" {
		return
	}
	message[c.thinking] = text
	if c.details {
		message["reasoning_details"] = []any{c.detail(text, signature)}
	}
}

func (c chat) detail(text, signature string) map[string]any {
	d := map[string]any{"type": "reasoning.text", "text": text, "format": "anthropic-claude-v1", "index": 0}
	if signature != "" {
		d["signature"] = signature
	}
	return d
}

// call is a tool call. The Input is what of the arguments goes into this piece.
func (b Block) call(index int, arguments string) map[string]any {
	out := map[string]any{"index": index, "type": "function", "function": map[string]any{"name": b.Name, "arguments": arguments}}
	if b.ID != "" {
		out["id"] = b.ID
	}
	return out
}

func (c chat) finish() string {
	switch {
	case c.reply.Stop != "":
		return c.reply.Stop
	case c.reply.calls():
		return "tool_calls"
	}
	return "stop"
}

func (u Usage) chat() map[string]any {
	prompt := u.Input + u.CacheRead + u.CacheWrite
	return map[string]any{
		"prompt_tokens": prompt, "completion_tokens": u.Output, "total_tokens": prompt + u.Output,
		"prompt_tokens_details":     map[string]any{"cached_tokens": u.CacheRead, "cache_write_tokens": u.CacheWrite},
		"completion_tokens_details": map[string]any{"reasoning_tokens": u.Thinking},
	}
}

// streamChat writes an answer as a stream.
func (s *Server) streamChat(st *stream, c chat) {
	send := func(delta map[string]any, finish any) {
		chunk := c.envelope("chat.completion.chunk")
		choice := map[string]any{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}
		if c.stops {
			choice["stop_reason"] = nil
		}
		chunk["choices"] = []any{choice}
		st.send("", marshal(chunk))
	}
	send(map[string]any{"role": "assistant", "content": ""}, nil)
	calls := 0
	for _, b := range c.reply.Blocks {
		for _, delta := range c.deltas(b, calls) {
			send(delta, nil)
		}
		if b.Name != "" || b.Input != "" {
			calls++
		}
	}
	if c.reply.Refuse != "" {
		for _, piece := range c.reply.chunks(c.reply.Refuse) {
			send(map[string]any{"refusal": piece}, nil)
		}
	}
	switch {
	case c.reply.Error != "":
		st.send("", marshal(c.fault(c.reply.Error, c.reply.Say, c.reply.Status)))
		return
	case c.reply.Never:
		chunk := c.envelope("chat.completion.chunk")
		chunk["choices"] = []any{}
		st.forever("", marshal(chunk))
		return
	case c.reply.Quiet:
		return
	}
	send(map[string]any{}, c.finish())
	if c.usage {
		chunk := c.envelope("chat.completion.chunk")
		chunk["choices"], chunk["usage"] = []any{}, c.reply.Usage.orSome().chat()
		st.send("", marshal(chunk))
	}
	st.send("", []byte("[DONE]"))
}

// deltas answers the pieces of a block.
func (c chat) deltas(b Block, calls int) []map[string]any {
	var out []map[string]any
	switch {
	case b.Raw != nil:
		delta := map[string]any{}
		_ = json.Unmarshal(b.Raw, &delta)
		return []map[string]any{delta}
	case (b.Name != "" || b.Input != "") && c.likeness.whole:
		return []map[string]any{{"tool_calls": []any{b.call(calls, b.Input)}}}
	case b.Name != "" || b.Input != "":
		out = append(out, map[string]any{"tool_calls": []any{b.call(calls, "")}})
		for _, piece := range c.reply.chunks(b.Input) {
			more := map[string]any{"index": calls, "function": map[string]any{"arguments": piece}}
			out = append(out, map[string]any{"tool_calls": []any{more}})
		}
	case b.Thinking != "":
		for _, piece := range c.reply.chunks(b.Thinking) {
			delta := map[string]any{}
			c.think(delta, piece, "")
			out = append(out, delta)
		}
		if c.details && b.Signature != "" {
			out = append(out, map[string]any{"reasoning_details": []any{map[string]any{"type": "reasoning.text", "signature": b.Signature, "format": "anthropic-claude-v1", "index": 0}}})
		}
	default:
		for _, piece := range c.reply.chunks(b.Text) {
			out = append(out, map[string]any{"content": piece})
		}
	}
	return out
}
