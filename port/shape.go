package port

import (
	"fmt"
	"strings"
	"unicode"
)

// filler is what the user says where a provider wants a user message and the
// conversation has none.
const filler = "Continue."

// emptyResult stands for the result of a tool that said nothing.
const emptyResult = "(no output)"

// shape answers turns of alternating roles that begin with the user's and end
// with the user's: empty ones dropped, neighbours of one role merged, missing
// ones filled. With prefill a final assistant text stays last.
func shape(turns []turn, prefill bool) []turn {
	var out []turn
	for _, t := range turns {
		switch last := len(out) - 1; {
		case len(t.parts) == 0:
		case last >= 0 && out[last].role == t.role:
			out[last].parts = append(out[last].parts[:len(out[last].parts):len(out[last].parts)], t.parts...)
		default:
			out = append(out, t)
		}
	}
	said := turn{"user", []part{{kind: textPart, text: filler}}}
	if len(out) == 0 || out[0].role == "assistant" {
		out = append([]turn{said}, out...)
	}
	if last := out[len(out)-1]; last.role == "assistant" && !(prefill && last.isPrefill()) {
		out = append(out, said)
	}
	return out
}

// isPrefill says whether a provider that takes a prefill takes this one: text
// alone, with no space behind it.
func (t turn) isPrefill() bool {
	for _, p := range t.parts {
		if p.kind != textPart || trimmedRight(p.text) != p.text {
			return false
		}
	}
	return true
}

// pair checks that every call has its result in the very next message and
// every result its call in the very one before, gives both halves a legal id
// that occurs once in the request, and puts results first.
func pair(turns []turn, ids *legal) error {
	var open []part
	for i := range turns {
		t := &turns[i]
		var err error
		if open, err = t.close(open, ids); err != nil {
			return err
		}
		if t.role == "assistant" {
			open = t.calls()
		}
	}
	return unanswered(open)
}

// close matches the results of t with the open calls, k-th with k-th where an
// id occurs twice, and answers the calls that stay open.
func (t *turn) close(open []part, ids *legal) ([]part, error) {
	var results, others []part
	for _, p := range t.parts {
		switch {
		case p.kind == usePart && t.role == "user":
			return nil, fmt.Errorf("%s: tool_use %q in a user message, want it in an assistant message", p.at, p.id)
		case p.kind == usePart:
			p.wire = ids.fresh(p.id)
			others = append(others, p)
		case p.kind != resultPart:
			others = append(others, p)
		default:
			at := indexOf(open, p.id)
			if at < 0 {
				return nil, fmt.Errorf("%s: tool_result %q answers no tool_use of the message before it, want each call answered once", p.at, p.id)
			}
			p.wire = open[at].wire
			open = append(open[:at:at], open[at+1:]...)
			results = append(results, p)
		}
	}
	t.parts = append(results, others...)
	return nil, unanswered(open)
}

func (t *turn) calls() []part {
	var out []part
	for _, p := range t.parts {
		if p.kind == usePart {
			out = append(out, p)
		}
	}
	return out
}

func indexOf(calls []part, id string) int {
	for i, p := range calls {
		if p.id == id {
			return i
		}
	}
	return -1
}

func unanswered(open []part) error {
	if len(open) == 0 {
		return nil
	}
	return fmt.Errorf("%s: tool_use %q has no tool_result in the next message, want every call answered before the next one", open[0].at, open[0].id)
}

// trimmedRight answers s without the space at its end.
func trimmedRight(s string) string {
	for {
		cut := strings.TrimRight(strings.TrimRightFunc(s, unicode.IsSpace), "\x1c\x1d\x1e\x1f")
		if cut == s {
			return s
		}
		s = cut
	}
}
