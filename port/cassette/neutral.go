package cassette

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port/internal/field"
)

// minted is a call id that the kernel made of a beat and a number.
var minted = regexp.MustCompile(`("(?:id|tool_use_id)"\s*:\s*)"([0-9A-HJKMNP-TV-Z]{26}/[0-9]+(?:_[0-9]+)?)"`)

// neutral answers req as it is compared and written: its secrets masked, the
// ids that its run made replaced by their order, each value on one line.
func (c *Cassette) neutral(req *kernel.Request) *kernel.Request {
	n := *req
	n.System, n.ToolChoice, n.Params = c.clean(req.System), c.clean(req.ToolChoice), c.clean(req.Params)
	n.Tools, n.Messages = c.cleanAll(req.Tools), c.cleanAll(req.Messages)
	n.Extra = nil
	for name, v := range req.Extra {
		if n.Extra == nil {
			n.Extra = map[string]json.RawMessage{}
		}
		n.Extra[name] = c.clean(v)
	}
	known := map[string]string{}
	for i, m := range n.Messages {
		n.Messages[i] = inOrder(m, known)
	}
	return &n
}

// inOrder replaces minted ids by the place of their first appearance.
func inOrder(m json.RawMessage, known map[string]string) json.RawMessage {
	return minted.ReplaceAllFunc(m, func(found []byte) []byte {
		part := minted.FindSubmatch(found)
		id := string(part[2])
		if known[id] == "" {
			known[id] = fmt.Sprintf("minted/%d", len(known)+1)
		}
		return fmt.Appendf(nil, "%s%q", part[1], known[id])
	})
}

func (c *Cassette) cleanAll(list []json.RawMessage) []json.RawMessage {
	out := slices.Clone(list)
	for i, v := range out {
		out[i] = c.clean(v)
	}
	return out
}

// clean answers a value on one line and without secrets.
func (c *Cassette) clean(raw json.RawMessage) json.RawMessage {
	if bytes.ContainsAny(raw, "\r\n") {
		var b bytes.Buffer
		if json.Compact(&b, raw) == nil {
			raw = b.Bytes()
		}
	}
	if c.mask == nil || len(raw) == 0 {
		return raw
	}
	hidden, _ := c.mask(raw)
	return hidden
}

// maskText hides secrets in a text of the file.
func (c *Cassette) maskText(text string) string {
	if c.mask == nil || text == "" {
		return text
	}
	hidden, changed := c.mask(field.Quoted(text))
	if changed && json.Unmarshal(hidden, &text) != nil {
		panic("BUG: cassette: a mask answers no text for a text")
	}
	return text
}

// maskDeltas hides secrets in deltas; one may be cut over several of them.
func (c *Cassette) maskDeltas(list []kernel.Delta) []kernel.Delta {
	var out []kernel.Delta
	for from := 0; from < len(list); {
		to := from
		var text strings.Builder
		for ; to < len(list) && list[to].Kind == list[from].Kind; to++ {
			text.WriteString(list[to].Text)
		}
		whole := text.String()
		if hidden := c.maskText(whole); hidden != whole {
			out = append(out, kernel.Delta{Kind: list[from].Kind, Text: hidden})
		} else {
			out = append(out, list[from:to]...)
		}
		from = to
	}
	return out
}
