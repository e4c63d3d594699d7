// Package anthropic is the port of the Messages API: Anthropic's own, and of the
// servers that speak it.
//
//	Port  the adapter: open, count, profile, health
//	port.Host  what it asks of the program around it: variables, a masker, a voice
//
// # Contract
//
//  1. A call is one attempt. The client repeats nothing, follows no redirect and
//     reads no variable of the environment by itself.
//  2. The body is what [port.Lower] wrote, byte for byte, but for what this
//     package owns: stream, the cache marks, and the thinking, the effort and the
//     knobs of sampling that the model takes. The same request gives the same body.
//  3. An answer is whole or it is an error. A stream counts when its message_stop
//     came and every block was closed, or when it said why the model stopped and
//     was closed; until then nothing but deltas leaves.
//  4. Text and calls are in the neutral form. Every other block is kept as the
//     provider wrote it, with a bag; streamed blocks are put together member by
//     member, and blocks without deltas stay byte for byte.
//  5. Arguments that no log can hold (cut, a key twice, too deep) stand as text in
//     their call, which alone is closed as malformed.
//  6. A call ends within conf.timeout, 600 seconds when it is not set, or with the
//     deadline of its beat, whatever the server does. A body is read up to 64 MiB.
//  7. The key goes to port.Host.Secret before it goes anywhere else, and no error
//     repeats it.
//
// # Conf
//
// The server is conf.base_url, else ANTHROPIC_BASE_URL, else Anthropic's. The key
// stands in the variable that conf.api_key_env names. Without one
// ANTHROPIC_API_KEY goes to Anthropic and to where the environment points, and to
// no server that a conf names: a key belongs to its provider. A server that is
// not Anthropic's is called without a key where none is set, and so is any server
// whose authorization stands in conf.headers.
//
//	max_tokens       32,000 for a Claude model when nobody says
//	thinking         in the form that the model takes: adaptive, or a budget
//	                 which an effort is turned into (models.go lists the lines)
//	temperature …    the wire has no knobs of sampling for a Claude model since
//	                 2026-10-21: they are left out, and said. A header
//	                 anthropic-version of conf.headers that is older sends them to the
//	                 models that take them. Another's model takes them
//	seed             refused: the wire has none
//	response_format  json_schema, as output_config.format
//	cache            at most four marks, placed by the conversation alone; cache.go
//
// What a model does not take is left out and told to port.Host.Warn once.
//
// # Endings
//
//	end_turn, tool_use, stop_sequence, max_tokens, pause_turn   as they are
//	refusal                        Refused: content_filter with a category, else model
//	model_context_window_exceeded  max_tokens: the answer was cut, and no tool runs
//	end_turn or tool_use that fills max_tokens                  max_tokens
//	another word                   stays, and the kernel makes an error of it
package anthropic
