package luabind

import (
	"cmp"
	"slices"
)

// maskTrie finds values in a text letter by letter, in a time that does not
// depend on what they are (Aho and Corasick).
type maskTrie struct {
	nodes []maskNode // the first is the root
	root  [256]int32
	first [maskLevels]grams // with which a value begins
}

// maskNode stands for the longest end of what was read so far with which a value
// begins.
type maskNode struct {
	child, next int32             // the first node below, the next one beside
	less        int32             // the node of the next longest such end
	depth       int32             // its bytes
	whole       [maskLevels]int32 // bytes of the longest value that ends here; 0: none
	piece       [maskLevels]int32 // those of the longest good piece of a long one
	letter      byte
}

func newMaskTrie() *maskTrie {
	t := &maskTrie{nodes: make([]maskNode, 1)}
	for level := range t.first {
		t.first[level].stride = gramSize
	}
	return t
}

// add adds a value at a level; link follows the last one.
func (t *maskTrie) add(v maskValue, level maskLevel) {
	at := int32(0)
	for i := range len(v.text) {
		at = t.grown(at, v.text[i])
		if n := &t.nodes[at]; v.isPiece(int(n.depth)) {
			n.piece[level] = n.depth
		}
	}
	t.nodes[at].whole[level] = t.nodes[at].depth
	t.first[level].add(v.text)
}

func (t *maskTrie) grown(at int32, letter byte) int32 {
	if below := t.below(at, letter); below != 0 {
		return below
	}
	n := int32(len(t.nodes))
	t.nodes = append(t.nodes, maskNode{next: t.nodes[at].child, depth: t.nodes[at].depth + 1, letter: letter})
	t.nodes[at].child = n
	return n
}

// below answers the node of one letter more, 0 when there is none.
func (t *maskTrie) below(at int32, letter byte) int32 {
	for n := t.nodes[at].child; n != 0; n = t.nodes[n].next {
		if t.nodes[n].letter == letter {
			return n
		}
	}
	return 0
}

// link gives every node its less, and what ends there too; the nodes of a depth
// come after all that are less deep.
func (t *maskTrie) link() {
	queue := []int32{0}
	for ; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for n := t.nodes[at].child; n != 0; n = t.nodes[n].next {
			queue = append(queue, n)
			if at == 0 {
				t.root[t.nodes[n].letter] = n
				continue
			}
			t.nodes[n].inherit(t, t.step(t.nodes[at].less, t.nodes[n].letter))
		}
	}
}

func (n *maskNode) inherit(t *maskTrie, less int32) {
	n.less = less
	for level := range maskLevel(maskLevels) {
		if n.whole[level] == 0 {
			n.whole[level] = t.nodes[less].whole[level]
		}
		if n.piece[level] == 0 {
			n.piece[level] = t.nodes[less].piece[level]
		}
	}
}

// step answers the node behind one letter more.
func (t *maskTrie) step(at int32, letter byte) int32 {
	for at != 0 {
		if below := t.below(at, letter); below != 0 {
			return below
		}
		at = t.nodes[at].less
	}
	return t.root[letter]
}

// found is what stands in a text.
type found struct {
	wholes []hiddenPart // the values, in order; those that overlap are one
	pieces []hiddenPart // at each place outside of them the longest good piece of a long value that ends there
	open   int          // bytes at the end that may be the beginning of a value
}

func (t *maskTrie) scan(text string, level maskLevel) (f found) {
	at := int32(0)
	for i := 0; i < len(text); i++ {
		if at == 0 {
			i = skipped(&t.first[level], text, i)
		}
		if at = t.step(at, text[i]); at == 0 {
			continue
		}
		n := &t.nodes[at]
		if size := int(n.whole[level]); size > 0 {
			f.whole(hiddenPart{i + 1 - size, i + 1})
		}
		if size := int(n.piece[level]); size > int(n.whole[level]) {
			f.pieces = append(f.pieces, hiddenPart{i + 1 - size, i + 1})
		}
	}
	f.open = int(t.nodes[at].depth)
	return f
}

// whole adds a value that ends behind all that was found.
func (f *found) whole(p hiddenPart) {
	for last := len(f.wholes) - 1; last >= 0 && f.wholes[last].to > p.from; last-- {
		p.from = min(p.from, f.wholes[last].from)
		f.wholes = f.wholes[:last]
	}
	f.wholes = append(f.wholes, p)
	for last := len(f.pieces) - 1; last >= 0 && f.pieces[last].from >= p.from; last-- {
		f.pieces = f.pieces[:last]
	}
}

// with answers what two looks at one text have found.
func (f found) with(o found) found {
	f.wholes = joined(append(f.wholes, o.wholes...))
	f.pieces = append(f.pieces, o.pieces...)
	slices.SortFunc(f.pieces, func(a, b hiddenPart) int { return cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(a.from, b.from)) })
	f.open = max(f.open, o.open)
	return f
}

// gramSize is the length of the shortest value.
const gramSize = shortestSecret

// grams are four letters each: the first of the values, and while each is long
// enough for it also the three next ones, so that one look in four is enough.
type grams struct {
	any    bool
	stride int
	bits   [1 << 10]uint64
}

func (g *grams) add(value string) {
	g.any = true
	if len(value) < 2*gramSize-1 {
		g.stride = 1
	}
	for i := range min(gramSize, len(value)-gramSize+1) {
		h := gramAt(value, i)
		g.bits[h>>6] |= 1 << (h & 63)
	}
}

func gramAt[T string | []byte](text T, i int) uint32 {
	four := text[i : i+gramSize]
	return (uint32(four[0]) | uint32(four[1])<<8 | uint32(four[2])<<16 | uint32(four[3])<<24) * 0x9E3779B1 >> 16
}

// hit answers a place at or behind i at which a value may begin; no value begins
// before it. It is negative when none does.
func hit[T string | []byte](g *grams, text T, i int) int {
	if !g.any {
		return -1
	}
	for at := i; at+gramSize <= len(text); at += g.stride {
		if h := gramAt(text, at); g.bits[h>>6]&(1<<(h&63)) != 0 {
			return max(i, at-g.stride+1)
		}
	}
	return -1
}

// skipped answers the next place that has to be looked at: a hit, or what comes
// behind the last look, which may be the beginning of a value.
func skipped(g *grams, text string, i int) int {
	if at := hit(g, text, i); at >= 0 {
		return at
	}
	return max(i, len(text)-gramSize-g.stride+2)
}
