// Package openai is the port of OpenAI and of the servers that speak its wire
// form: vllm, llama.cpp, ollama and OpenRouter.
//
//	Port     the adapter: open, count, profile, health
//	port.Host  what it asks of the program: the environment, the masker, a place for warnings
//	Dialects the servers that it knows the differences of
//
// # Contract
//
//  1. A call is one attempt. Nothing is repeated and no redirect followed; what
//     happened is classified by package port.
//  2. A stream that ends without the word for why was cut: kind transport, and
//     nothing of it is answered. So was one whose connection broke before the usage.
//  3. Calls of a stream are assembled by index, by id or by their order, whichever
//     the server gives, and by their names where it gives one for two; those of a
//     whole answer are what they are. What a server says once more, a call or all of
//     the answer, beside its deltas or behind them, is heard once. Arguments that a
//     log cannot hold (no JSON, a key twice, half of a character, more than 100
//     levels) stay as their text, and the kernel closes that call; no arguments are
//     {}.
//  4. What a model thought goes back to the same server's name and the same model,
//     byte for byte, and to nobody else.
//  5. What a model does not take is refused, or left out and said once through
//     [port.Host]: an answer never differs from what was asked in silence. An effort
//     becomes the nearest that the model takes, and that is said as well.
//  6. A key goes to its provider, to a server called by the provider's name, or
//     where conf.api_key_env or the environment sends it; never to another.
//  7. A member of an answer that nobody needs, or that is of another type than it
//     should be, is no reason to lose the answer.
//
// # Where and as what
//
// conf.base_url says where, else the dialect's variable (OPENAI_BASE_URL,
// VLLM_BASE_URL, LLAMACPP_BASE_URL, OLLAMA_BASE_URL, OPENROUTER_BASE_URL), else its
// usual place; a URL without a path gets the dialect's. conf.dialect says what the server is,
// else its address does (openai.com, openrouter.ai, the ports 11434 and 8080), and
// a place that says nothing is spoken to as to vllm. Where OPENAI_BASE_URL says is a
// gateway to OpenAI if its place says nothing and is on another network; on this
// machine or at a private address it is a server of your own, unless conf.model is
// one of OpenAI's or conf.api is "responses". dialect.go has the table. A provider that
// is at an address of its own (Google, Groq, Mistral, xAI, DeepSeek, Together and others,
// provider.go) is asked to think as it takes it, and gets no top_k that it refuses. A
// dialect that conf names goes before what an address says.
//
// Chat Completions is how a model is asked. conf.api = "responses" asks an OpenAI
// model by the Responses API, and so does the name of a model that has no other
// (o3-pro, gpt-5-codex). Nothing is stored with the provider there: reasoning
// goes back encrypted, with the call it belongs to.
//
// # What a model thought
//
// A thinking block holds the text, and in its bag the field that it came in:
//
//	{"type": "thinking", "thinking": …, "provider": {"port": "vllm", "model": …, "field": "reasoning_content"}}
//
// The details of OpenRouter and the items of Responses stand beside it in
// "raw", as the JSON text that they were. So does what Gemini and LiteLLM write
// beside a call and want back with it (extra_content, provider_specific_fields), in
// the bag of the call:
//
//	{"type": "tool_use", …, "provider": {"port": "vllm", "model": …, "raw": "{\"extra_content\":{\"google\":{\"thought_signature\":…}}}"}}
//
// Gemini refuses an answer whose first call has none: one of another model gets the
// signature that Google has for such calls.
//
// # Caches
//
// A server keeps the beginnings of prompts unasked, but for Claude behind OpenRouter:
// its prompts are marked as port/anthropic marks them, unless conf.cache = false or a
// filter sets cache_control itself.
//
// # Why not the client of the SDK
//
// Its package holds every API of OpenAI, and a program that calls methods by
// reflection, as knl does, links all of it: 50 MB of binary and 20 MB of memory
// for one POST. Its reader of events is a package of its own, and does not see what
// servers write beside events when they fail. The client reads the server of the
// tests.
//
// # Tokens
//
// A prompt for OpenAI is counted with the model's vocabulary, which is loaded at
// the first count (0.2 s), about a megabyte a second, each text once. Beside the
// texts a message takes 4 tokens, the reply 3, a tool or a call 8, tools at all
// 12, and media what [port.ImageTokens] and [port.FileTokens] say. Elsewhere a
// prompt is estimated by its bytes and media, corrected by the prompt that the
// server counted last for the model: what was counted is never said to take less,
// and no byte or medium to take less than half of what [port.Estimate] has for it.
// What the bytes beyond it take is learned from a prompt of 16 KiB or more: in a
// shorter one the template may outweigh the text. A count that no prompt of its
// size can have is not believed.
// Usage comes in counters that do not overlap:
//
//	input        prompt − cached − written to a cache
//	cache read   cached_tokens
//	cache write  cache_write_tokens, where a server has it
//	output       completion, thinking included
//	thinking     reasoning_tokens, or what only the total has and no other counter
//
// An answer without usage, or a half of it that is counted as nothing, is estimated
// from bytes.
package openai
