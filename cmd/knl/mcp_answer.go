package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What an answer, an error and a tool may have of bytes. Clients end a connection
// that brings a longer message than they read: that of the protocol's Go SDK reads
// 16 MiB.
const (
	mcpAnswerLimit = 8 << 20
	mcpErrorLimit  = 64 << 10
	mcpToolLimit   = 256 << 10
)

func errAnswer(size int) error {
	return fmt.Errorf("the answer has %d bytes as JSON, at most %d are sent: want the tool to answer a part, or where it is to be read "+
		"(an object is sent twice, as text and as structured content)", size, mcpAnswerLimit)
}

// sizeOf answers the bytes that an answer of a value of so many has as JSON, 0 when
// it is far below the limit: a letter becomes six at most, in the text and in the
// structured content.
func sizeOf(r *mcp.CallToolResult, value int) int {
	if value < mcpAnswerLimit/16 {
		return 0
	}
	raw, err := json.Marshal(r)
	if err != nil {
		panic("BUG: an answer does not encode: " + err.Error())
	}
	return len(raw)
}

func (b *toolbox) failed(ctx context.Context, err error) *mcp.CallToolResult {
	text := err.Error()
	if ctx.Err() != nil {
		text = context.Cause(ctx).Error()
	}
	text = b.host.mask.Mask(text)
	if more := len(text) - mcpErrorLimit; more > 0 {
		text = fmt.Sprintf("%s\n[... %d bytes cut ...]", strings.ToValidUTF8(text[:mcpErrorLimit], ""), more)
	}
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// answered makes of a value what a client gets: text as it is, blocks as
// content, any other value as its JSON, an object also as structured content.
func answered(raw json.RawMessage) *mcp.CallToolResult {
	r := &mcp.CallToolResult{Content: []mcp.Content{}}
	switch raw[0] {
	case 'n': // null
		return r
	case '"':
		var text string
		_ = json.Unmarshal(raw, &text) // it is valid
		r.Content = append(r.Content, &mcp.TextContent{Text: text})
		return r
	case '{':
		r.StructuredContent = raw
	case '[':
		if blocks := contentOf(raw); blocks != nil {
			r.Content = blocks
			return r
		}
	}
	r.Content = append(r.Content, &mcp.TextContent{Text: string(raw)})
	return r
}

// contentBlock is what the kernel takes for a content block: text has its text,
// the others have a source. A record that only has such a type is a value.
type contentBlock struct {
	Type   string
	Text   *string
	Source *struct {
		Type      string
		MediaType string `json:"media_type"`
		Data      []byte // base64
		URL       string
	}
}

// contentOf answers a list of content blocks as the protocol spells them, nil
// when raw is none, or holds one that the protocol cannot carry.
func contentOf(raw json.RawMessage) (out []mcp.Content) {
	var blocks []contentBlock
	if json.Unmarshal(raw, &blocks) != nil {
		return nil
	}
	for i := range blocks {
		c := blocks[i].content()
		if c == nil {
			return nil
		}
		out = append(out, c)
	}
	return out
}

func (b *contentBlock) content() mcp.Content {
	switch {
	case b.Type == "text" && b.Text != nil:
		return &mcp.TextContent{Text: *b.Text}
	case b.Source == nil || b.Type != "image" && b.Type != "document":
		return nil
	case b.Source.Type == "url" && b.Source.URL != "":
		return &mcp.ResourceLink{Name: b.Type, URI: b.Source.URL, MIMEType: b.Source.MediaType}
	case len(b.Source.Data) == 0:
		return nil
	case b.Type == "image":
		return &mcp.ImageContent{MIMEType: b.Source.MediaType, Data: b.Source.Data}
	}
	r := &mcp.ResourceContents{URI: "knl:///document", MIMEType: b.Source.MediaType, Blob: b.Source.Data}
	return &mcp.EmbeddedResource{Resource: r}
}
