package luabind

import (
	"cmp"
	"slices"
	"strings"
)

// maskTable is what a Masker looks for; it is read-only.
type maskTable struct {
	values []maskValue
	ahead  *maskTrie // of the values
	back   *maskTrie // of the values, each from its end
}

// A maskLevel is which values are looked for.
type maskLevel int

const (
	allValues  maskLevel = iota
	forTheLog            // only those that are fit for the log of a session
	maskLevels = iota
)

func newMaskTable(values []maskValue) *maskTable {
	t := &maskTable{values: values, ahead: newMaskTrie(), back: newMaskTrie()}
	for _, v := range values {
		for level := range maskLevel(maskLevels) {
			if level == forTheLog && unfitForLog(v.text) {
				continue
			}
			t.ahead.add(v, level)
			t.back.add(v.reversed(), level)
			if v.isLong() { // what a text without any beginning may hold
				t.ahead.first[level].add(v.text[len(v.text)-shortestPiece:])
			}
		}
	}
	t.ahead.link()
	t.back.link()
	return t
}

// isValue says whether text is a value, whole.
func (t *maskTable) isValue(text string) bool {
	return slices.ContainsFunc(t.values, func(v maskValue) bool { return v.text == text })
}

// maskView says how a text is looked at.
type maskView struct {
	level        maskLevel
	edges        string // letters at which a text within the text begins and ends
	begins, ends bool   // the text's own ends are ends, no more of it comes
}

var (
	loggedText = maskView{level: forTheLog, begins: true, ends: true}
	resultText = maskView{begins: true, ends: true}
	shownText  = maskView{edges: "\n\r\t\"", begins: true, ends: true}
)

// hiddenPart is what is hidden of a text.
type hiddenPart struct{ from, to int }

func (t *maskTable) mask(text string, v maskView) string {
	spans, _ := t.find(text, v)
	return starred(text, spans)
}

// starred answers text with stars in place of the spans, which are in order and
// do not overlap.
func starred(text string, spans []hiddenPart) string {
	if len(spans) == 0 {
		return text
	}
	var out strings.Builder
	done := 0
	for _, s := range spans {
		out.WriteString(text[done:s.from])
		out.WriteString(masked)
		done = s.to
	}
	out.WriteString(text[done:])
	return out.String()
}

// find answers what is to be hidden of text, in order, and how many bytes at the
// end of it may be the beginning of a value.
func (t *maskTable) find(text string, v maskView) (parts []hiddenPart, open int) {
	ahead, tails := t.lookThrough(text, v, maskEscapes)
	if len(ahead.pieces)+len(tails) == 0 {
		return ahead.wholes, ahead.open
	}
	return joined(v.withPieces(text, ahead.wholes, ahead.pieces, tails)), ahead.open
}

// maskEscapes is how many times over the bytes of a value may be spelled as %XX.
const maskEscapes = 3

// lookThrough answers what look does of text and of what it spells as %XX, up to
// depth times over.
func (t *maskTable) lookThrough(text string, v maskView, depth int) (ahead found, tails []hiddenPart) {
	ahead, tails = t.look(text, v)
	plain, ok := unescape(text, v.ends)
	if depth == 0 || !ok {
		return ahead, tails
	}
	within, ends := t.lookThrough(plain.text, v, depth-1)
	ahead = ahead.with(plain.found(within))
	tails = append(tails, plain.found(found{pieces: ends}).pieces...)
	slices.SortFunc(tails, func(a, b hiddenPart) int { return cmp.Or(cmp.Compare(b.from, a.from), cmp.Compare(b.to, a.to)) })
	return ahead, tails
}

// look answers what stands in text as it is, and the pieces that a value ends
// with, the last first.
func (t *maskTable) look(text string, v maskView) (ahead found, tails []hiddenPart) {
	ahead = t.ahead.scan(text, v.level)
	if hit(&t.ahead.first[v.level], text, 0) < 0 {
		return found{open: ahead.open}, nil
	}
	tails = t.back.scan(reversed(text), v.level).pieces
	for i, p := range tails {
		tails[i] = hiddenPart{len(text) - p.to, len(text) - p.from}
	}
	return ahead, tails
}

// withPieces adds to spans those heads behind which text was cut, and those tails
// in front of which it was. What is hidden is a cut for what stands beside it, so
// heads are taken from the end on and tails from the beginning: a masked text is
// its own mask.
func (v maskView) withPieces(text string, spans, heads, tails []hiddenPart) []hiddenPart {
	begins, ends := map[int]bool{}, map[int]bool{}
	for _, s := range spans {
		begins[s.from], ends[s.to] = true, true
	}
	for _, s := range slices.Backward(heads) {
		if begins[s.to] || v.cutBehind(text[s.to:]) {
			begins[s.from] = true
			spans = append(spans, s.withoutLineEnds(text))
		}
	}
	for _, s := range slices.Backward(tails) {
		if ends[s.from] || v.cutBefore(text[:s.from]) {
			ends[s.to] = true
			spans = append(spans, s.withoutLineEnds(text))
		}
	}
	return spans
}

// withoutLineEnds answers s without the line ends at its ends: a line stays one.
func (s hiddenPart) withoutLineEnds(text string) hiddenPart {
	for s.from < s.to && text[s.from] == '\n' {
		s.from++
	}
	for s.to > s.from && text[s.to-1] == '\n' {
		s.to--
	}
	return s
}

// joined puts spans in order and makes one of those that overlap.
func joined(spans []hiddenPart) []hiddenPart {
	slices.SortFunc(spans, func(a, b hiddenPart) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	out := spans[:0]
	for _, s := range spans {
		if last := len(out) - 1; last >= 0 && s.from < out[last].to {
			out[last].to = max(out[last].to, s.to)
		} else {
			out = append(out, s)
		}
	}
	return out
}

// Marks behind which a text goes on after a cut, and in front of which it was
// cut: knl's own, and those that others set.
var (
	marksBehind = []string{"…", "\"…", "...", masked}
	marksBefore = []string{"…", "…\"", "...", masked}
)

// cutBehind says whether a text that goes on with rest was cut in front of it.
func (v maskView) cutBehind(rest string) bool {
	if rest == "" {
		return v.ends
	}
	if strings.IndexByte(v.edges, rest[0]) >= 0 {
		return true
	}
	for _, mark := range marksBehind {
		if strings.HasPrefix(rest, mark) {
			return true
		}
	}
	inQuotes := strings.TrimLeft(rest, `\`)
	if strings.HasPrefix(inQuotes, "n") && len(inQuotes) < len(rest) || strings.HasPrefix(inQuotes, "\n") {
		return strings.HasPrefix(inQuotes[1:], "[... ")
	}
	return false
}

// cutBefore says whether a text that follows so was cut at its end.
func (v maskView) cutBefore(so string) bool {
	if so == "" {
		return v.begins
	}
	if strings.IndexByte(v.edges, so[len(so)-1]) >= 0 {
		return true
	}
	for _, mark := range marksBefore {
		if strings.HasSuffix(so, mark) {
			return true
		}
	}
	line, ok := strings.CutSuffix(so, "\n")
	if !ok {
		if line, ok = strings.CutSuffix(so, `\n`); !ok {
			return false
		}
		line = strings.TrimRight(line, `\`)
	}
	return strings.HasSuffix(line, " bytes cut ...]")
}
