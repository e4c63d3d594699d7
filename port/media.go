package port

import (
	"encoding/json"
	"fmt"
	"mime"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/knl-run/knl/port/internal/field"
)

// mediaSource is where the bytes of an image or a document are.
type mediaSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
	URL       string `json:"url"`
}

func (s mediaSource) valid(block string) bool {
	switch s.Type {
	case "base64":
		return s.MediaType != "" && s.Data != ""
	case "url":
		return isLink(s.URL)
	case "text":
		return block == "document" && !blank(s.Data)
	}
	return false
}

// isMedia says whether b is an image or a document that every dialect knows.
func isMedia(b wireBlock) bool {
	if b.Type != "image" && b.Type != "document" {
		return false
	}
	var s mediaSource
	return jsonv2.Unmarshal(b.Source, &s) == nil && s.valid(b.Type)
}

// foreignMedia is a block of an image as MCP spells it, with its bytes beside the
// type, and as OpenAI does, with a URL that may hold them.
type foreignMedia struct {
	Type      string         `json:"type"`
	Source    jsontext.Value `json:"source"`
	Data      string         `json:"data"`
	MimeType  string         `json:"mimeType"`
	MediaType string         `json:"media_type"`
	ImageURL  jsontext.Value `json:"image_url"`
}

// media answers the kind and the source of a block that is an image or a
// document in one of the spellings that scripts have it from, or nothing.
func media(raw json.RawMessage) (block string, source json.RawMessage) {
	var f foreignMedia
	if json.Unmarshal(raw, &f) != nil {
		return "", nil
	}
	var s mediaSource
	_ = json.Unmarshal(f.Source, &s)
	switch {
	case isMedia(wireBlock{Type: f.Type, Source: f.Source}):
		return f.Type, json.RawMessage(f.Source)
	case (f.Type == "image" || f.Type == "document") && s.Type == "url":
		return f.Type, urlSource(s.URL)
	case (f.Type == "image" || f.Type == "document") && f.Data != "" && f.MimeType+f.MediaType != "":
		return f.Type, base64Source(f.MimeType+f.MediaType, f.Data)
	case f.Type == "image_url":
		return "image", urlSource(f.url())
	}
	return "", nil
}

func (f foreignMedia) url() string {
	var u struct {
		URL string `json:"url"`
	}
	if json.Unmarshal(f.ImageURL, &u) != nil {
		_ = json.Unmarshal(f.ImageURL, &u.URL)
	}
	return u.URL
}

// isLink says whether a provider can fetch a URL.
func isLink(url string) bool {
	return strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://")
}

func base64Source(mediaType, data string) json.RawMessage {
	return field.Map{"data": field.Quoted(data), "media_type": field.Quoted(mediaType), "type": field.Quoted("base64")}.JSON()
}

// urlSource answers the source of a URL; the bytes in one that holds them stand
// by themselves. A URL of another kind is none.
func urlSource(url string) json.RawMessage {
	if head, data, found := strings.Cut(url, ";base64,"); found && strings.HasPrefix(head, "data:") && data != "" {
		if kind, _, err := mime.ParseMediaType(strings.TrimPrefix(head, "data:")); err == nil {
			return base64Source(kind, data)
		}
	}
	if isLink(url) {
		return field.Map{"type": field.Quoted("url"), "url": field.Quoted(url)}.JSON()
	}
	return nil
}

// legible answers a block as it is, and a large one that was to be a medium and
// cannot be read as one, or sent, as the words that say so: its bytes are no text
// for a model.
func legible(raw json.RawMessage) json.RawMessage {
	var b struct {
		Type string `json:"type"`
	}
	if len(raw) < 1<<10 || field.KindOf(raw) != '{' || json.Unmarshal(raw, &b) != nil {
		return raw
	}
	switch b.Type {
	case "image", "image_url", "input_image", "document", "audio", "input_audio", "file", "input_file", "video", "resource", "inline_data":
		return field.Quoted(fmt.Sprintf("[a block of type %s that cannot be sent: want an image or a document with source = { type = \"base64\", media_type, data } or { type = \"url\", url }]", b.Type))
	}
	return raw
}
