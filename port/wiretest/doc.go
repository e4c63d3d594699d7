// Package wiretest is a provider of models in the process of a test: a server on
// 127.0.0.1 that speaks the wire forms of Anthropic and OpenAI, SSE included,
// and can be told to misbehave.
//
//	Server   the provider
//	Reply    what it answers to one model call, or how it fails
//	Block    one piece of an answer: text, thinking, a call, a block as it is
//	Usage    the tokens that an answer reports
//	Model    one model that it lists
//	Request  a call as it arrived
//
// # Contract
//
//  1. The n-th model call gets the n-th reply, whatever it asks for and whichever
//     wire form it speaks, or the reply that [Server.By] chooses for it. A call
//     without a reply fails the test. Counting tokens, listing models and the like
//     take none.
//  2. Every body of a model call is held against [port.Check] and against the
//     keys of the wire form. A body that breaks a rule is answered 400, as the
//     provider would, takes no reply, and fails the test unless [Server.Lenient]
//     was called; [Request] keeps the fault.
//  3. What it writes is what the provider writes: the official clients read it.
//     Only what a Reply breaks on purpose is broken.
//  4. Every request is kept, headers and bytes, in the order of arrival.
//  5. A base URL of URL + "/v1" is OpenAI's. URL + "/ollama/v1" is ollama's, and so
//     for vllm, llamacpp and openrouter: what they take, and how they spell it.
//  6. The server stops with the test; a slow or endless reply ends then too, or
//     when its client goes.
//
// A reply is one value for both wire forms:
//
//	s := wiretest.New(t)
//	s.Reply(
//		wiretest.Reply{Blocks: []wiretest.Block{wiretest.Use("call_1", "read", `{"path":"a"}`)}},
//		wiretest.Reply{Status: 429, Header: map[string]string{"retry-after": "7"}, Error: "rate_limit_error"},
//		wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say("done")}, Cut: 3},
//	)
package wiretest
