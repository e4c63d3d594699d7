package luabind

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

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

func described(words ...string) string {
	text := ""
	for _, w := range words {
		if w != "" {
			text += ": " + w
		}
	}
	return text
}

// blocksOf answers the blocks of what a server sent as content: a list, or what
// stands in for one. It takes any JSON: the server has done what it was asked, so
// what cannot be read is a block that says so, and the others are kept.
func blocksOf(raw json.RawMessage) (out []block) {
	for _, one := range elementsOf(raw) {
		if text, ok := textIn(one); ok {
			out = append(out, block{Type: "text", Text: text})
			continue
		}
		out = append(out, fieldsOf(one).blocks(one)...)
	}
	return out
}

// elementsOf answers what a list holds but for null, and what is no list as the
// only one of its elements.
func elementsOf(raw json.RawMessage) (out []json.RawMessage) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	for _, one := range list {
		if len(one) > 0 && string(one) != "null" {
			out = append(out, one)
		}
	}
	return out
}

// fields are those of an object; what is none has no fields.
type fields map[string]json.RawMessage

func fieldsOf(raw json.RawMessage) (f fields) {
	_ = json.Unmarshal(raw, &f)
	return f
}

// has says whether a field is there and not null.
func (f fields) has(name string) bool { return f[name] != nil && string(f[name]) != "null" }

// text answers a field that is a text, "" when it is none.
func (f fields) text(name string) string {
	text, _ := textIn(f[name])
	return text
}

// anyText answers a field as text whatever it is, "" when it is not there.
func (f fields) anyText(name string) string {
	if text, ok := textIn(f[name]); ok || !f.has(name) {
		return text
	}
	return string(f[name])
}

func textIn(raw json.RawMessage) (text string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	return text, json.Unmarshal(raw, &text) == nil
}

// blocks answers the blocks of a content block that came as raw.
func (f fields) blocks(raw json.RawMessage) []block {
	kind := f.text("type")
	switch {
	case (kind == "text" || kind == "") && f["text"] != nil:
		return []block{{Type: "text", Text: f.anyText("text")}}
	case kind == "image" || kind == "audio":
		return []block{f.media(kind, "data")}
	case kind == "resource_link":
		return []block{textOfBlock("[resource %s%s]", f.text("uri"), described(f.text("name"), f.text("description")))}
	case kind == "resource" && fieldsOf(f["resource"]) != nil:
		return fieldsOf(f["resource"]).embedded()
	}
	return []block{unknownBlock("block", raw)}
}

// unknownBlock says of what cannot be read what it is, and how it begins and ends.
func unknownBlock(what string, raw json.RawMessage) block {
	shown := headTail{limit: 1000}
	_, _ = shown.Write(raw)
	return textOfBlock("[a %s that cannot be read: %s]", what, shown.String())
}

// embedded answers the blocks of a resource.
func (f fields) embedded() []block {
	if f.text("blob") == "" {
		return []block{textOfBlock("[resource %s]\n%s", f.text("uri"), f.anyText("text"))}
	}
	return []block{textOfBlock("[resource %s]", f.text("uri")), f.media("resource", "blob")}
}

// media answers the bytes in a field as the block that a model takes them by.
func (f fields) media(what, name string) block {
	mimeType := f.text("mimeType")
	data, named, err := bytesIn(f.text(name))
	if err != nil {
		return textOfBlock("[%s, %s: not shown, its %s is no base64: %s]", what, orUnknown(mimeType), name, err)
	}
	if mimeType == "" {
		mimeType = named
	}
	if sort := http.DetectContentType(data); mimeType == "" && port.IsImage(sort) {
		mimeType = sort
	}
	return media(what, mimeType, data)
}

// bytesIn decodes base64 of any of its alphabets, with or without padding and ends
// of lines, also in a data: URL, which names the type.
func bytesIn(text string) (data []byte, mimeType string, err error) {
	if head, body, ok := strings.Cut(text, ","); ok && strings.HasPrefix(head, "data:") {
		mimeType, _, _ = strings.Cut(strings.TrimPrefix(head, "data:"), ";")
		text = body
	}
	text = strings.NewReplacer("-", "+", "_", "/", "\n", "", "\r", "", " ", "", "\t", "").Replace(text)
	data, err = base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	return data, mimeType, err
}
