package luabind

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/knl-run/knl/port"
)

// block is a content block in the kernel's spelling.
type block struct {
	Type   string       `json:"type"`
	Text   string       `json:"text,omitempty"`
	Source *mediaSource `json:"source,omitempty"`
}

type mediaSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

func textOfBlock(format string, args ...any) block {
	return block{Type: "text", Text: fmt.Sprintf(format, args...)}
}

// media answers bytes as the block that a model takes them by; what no model
// takes is named and not shown, for base64 as text would only fill the context.
func media(what, mimeType string, data []byte) block {
	source := &mediaSource{"base64", port.MediaType(mimeType), base64.StdEncoding.EncodeToString(data)}
	switch {
	case len(data) > 0 && port.IsImage(source.MediaType):
		return block{Type: "image", Source: source}
	case len(data) > 0 && source.MediaType == "application/pdf":
		return block{Type: "document", Source: source}
	}
	return textOfBlock("[%s, %s, %d bytes: not shown]", what, orUnknown(mimeType), len(data))
}

func orUnknown(mimeType string) string {
	if mimeType == "" {
		return "of unknown type"
	}
	return mimeType
}

// blocksOf answers the blocks of what a server sent.
func blocksOf(content []mcp.Content) []block {
	out := []block{}
	for _, c := range content {
		switch c := c.(type) {
		case *mcp.TextContent:
			out = append(out, block{Type: "text", Text: c.Text})
		case *mcp.ImageContent:
			out = append(out, media("image", c.MIMEType, c.Data))
		case *mcp.AudioContent:
			out = append(out, media("audio", c.MIMEType, c.Data))
		case *mcp.ResourceLink:
			out = append(out, textOfBlock("[resource %s%s]", c.URI, described(c.Name, c.Description)))
		case *mcp.EmbeddedResource:
			out = append(out, embedded(c.Resource)...)
		}
	}
	return out
}

func described(words ...string) string {
	text := ""
	for _, w := range words {
		if w != "" {
			text += ": " + w
		}
	}
	return text
}

func embedded(r *mcp.ResourceContents) []block {
	switch {
	case r == nil:
		return nil
	case len(r.Blob) > 0:
		return []block{textOfBlock("[resource %s]", r.URI), media("resource", r.MIMEType, r.Blob)}
	}
	return []block{textOfBlock("[resource %s]\n%s", r.URI, r.Text)}
}

// resultOf answers what a tool's handler does: the text when there is only one,
// else the blocks; the structured value where there are none.
func resultOf(r *mcpToolAnswer) (result json.RawMessage, err error) {
	blocks := blocksOf(r.Content)
	switch {
	case len(blocks) == 0 && r.structured != nil:
		return r.structured, nil
	case len(blocks) == 0:
		return json.RawMessage(`""`), nil
	case len(blocks) == 1 && blocks[0].Type == "text":
		return json.Marshal(blocks[0].Text)
	}
	return json.Marshal(blocks)
}

// failureOf answers the text of a failed call.
func failureOf(r *mcpToolAnswer) string {
	var texts []string
	for _, b := range blocksOf(r.Content) {
		if b.Type == "text" && strings.TrimSpace(b.Text) != "" {
			texts = append(texts, b.Text)
		}
	}
	if len(texts) == 0 && r.structured != nil {
		return string(r.structured)
	}
	if len(texts) == 0 {
		return "the tool says that it failed, and not why"
	}
	return strings.Join(texts, "\n")
}
