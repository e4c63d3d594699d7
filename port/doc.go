// Package port is the border to the providers of models: it turns a neutral
// request into what a provider accepts, and what a provider answers into the
// kernel's words.
//
//	Port       an adapter: open, count, profile, health
//	Conf       which model, and how to ask it
//	Target     what a body is written for: dialect, port, prefill
//	Wire       a body, and the tool names that had to change in it
//	Violation  the rule that a body breaks, and where
//
// # Contract
//
//  1. A call makes one attempt. Nothing here repeats; [Classify] says what
//     happened, and the loop decides.
//  2. [Lower] alone does what providers alone demand. The kernel's fold closes
//     every call; a port adds no rule of its own.
//  3. Lower is total over requests whose calls are closed: the body passes
//     [Check]. A request with an open call, an orphan result, an unknown role,
//     tool or parameter is refused as invalid_request, with the place named. There
//     is no third way.
//  4. The same request, target and conf give the same bytes. What was sent stays
//     as it was while the conversation grows, but for its end.
//  5. Check knows nothing of Lower: it reads a body as the provider would.
//
// # Neutral blocks
//
// Messages hold text, image, document, tool_use and tool_result as the Anthropic
// Messages API spells them. A block that means something to one model alone
// (thinking, a signature, a search of the provider's) is the block as the
// provider spelled it, and a bag:
//
//	{"type": "thinking", "thinking": …, "signature": …, "provider": {"port": "anthropic", "model": "…"}}
//
// To the same port and model it goes back byte for byte without the bag; for
// everybody else it is left out. A bag may hold more keys, which are the port's.
// The OpenAI dialects have no blocks, so there the bag says what the block was:
// "field" names the member of a chat message (reasoning, reasoning_content,
// reasoning_details), or is "item" for an output item of Responses; "raw" is the
// JSON text of details and items; "phase" is that of a text of Responses. A tool_use
// may have a bag, too: its raw is what the server wrote beside the call.
//
// # Rules
//
// What Check wants, by the name in a [Violation]:
//
//	form      the body parses, with the keys and types that the provider knows
//	roles     the user begins, user and assistant alternate, no other role speaks
//	system    the system prompt stands before the conversation, once
//	text      no text is empty or only space, no content is an empty list
//	pairs     each call has one result in the next message, results stand first
//	          there, and no result stands without its call
//	ids       a call id is letters, digits, _ and -, at most 64 (anthropic,
//	          responses) or 40 (openai), and occurs once in a request
//	last      the user speaks last, unless the model takes a prefill
//	thinking  thinking stands in answers, signed (but for [Target.Compatible]),
//	          never last; with a thinking budget the answer of a running tool
//	          loop begins with it; no tool is forced while thinking (anthropic).
//	          Reasoning is encrypted and has an item of its answer behind it
//	          (responses)
//	tools     names are legal and unique, schemas are objects and not composed at
//	          the top, a choice names an offered tool, and (anthropic) arguments
//	          have legal names and calls in the history have tools beside them
//	cache     at most four cache_control marks
//
// # What Lower does about them
//
// Blank texts and messages without content go; an empty tool result says "(no
// output)". Neighbours of one role become one message. "Continue." stands where
// the user has to speak and does not: first, last, and alone. System messages
// move to the system prompt. Results move to the front of their message. Ids and
// names lose what is illegal and get a number when two would be one; names come
// back by [Wire.Name]. Content that is neither text nor blocks stands as its JSON
// text. Thinking that was cut goes, and a budget for thinking goes while a tool
// loop runs that began without. A schema composed at the top is flattened, and
// the description quotes it whole. Where a history has calls and no tool is
// offered, the tools of the history are named and may not be called.
//
// A picture or a file is sent as what its first bytes say that it is. One that the
// provider does not take, of its type or of its size, stands as words that say so: it
// would be refused on every later turn.
//
// Parameters come from the Conf, over it the request's params, over them what a
// filter set under the same name. A key of a filter that is no parameter goes to
// the body as it is. Whether a body streams is the adapter's to add.
package port
