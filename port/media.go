package port

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"

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

// fault answers why no provider takes the source of a block, or nothing.
func (s mediaSource) fault(block string) string {
	switch {
	case s.Type == "text" && block == "document" && !blank(s.Data), s.Type == "url" && isLink(s.URL):
		return ""
	case s.Type != "base64":
		return "want an image or a document with source = { type = \"base64\", media_type, data } or { type = \"url\", url }"
	case s.MediaType == "":
		return mediaSource{}.fault(block)
	case block == "image" && !IsImage(s.MediaType):
		return fmt.Sprintf("got the media type %q, want one of %s", s.MediaType, field.List(imageTypes))
	}
	if !isBase64(s.Data) {
		return "got data that is not base64"
	}
	return ""
}

// isBase64 says whether data may be base64, without decoding megabytes of it.
func isBase64(data string) bool {
	if len(data)%4 != 0 || strings.Trim(data, "=") == "" {
		return false
	}
	for i := range len(data) {
		switch c := data[i]; {
		case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '+', c == '/', c == '=':
		default:
			return false
		}
	}
	return true
}

// tidy answers a source and its kind of block as providers spell them, where that says
// the same in other words: base64 with line ends, without its padding, or as a data
// URL; text in base64; a file that is called something else than it is.
func (s mediaSource) tidy(block string) (mediaSource, string) {
	if s.Type != "base64" {
		return s, block
	}
	if head, data, found := strings.Cut(s.Data, ";base64,"); found && strings.HasPrefix(head, "data:") {
		s.Data = data
	}
	s.MediaType, s.Data = MediaType(s.MediaType), unbroken(s.Data)
	if block == "document" && isText(s.MediaType) {
		if text, err := base64.StdEncoding.DecodeString(s.Data); err == nil && utf8.Valid(text) {
			return mediaSource{Type: "text", MediaType: "text/plain", Data: string(text)}, block
		}
	}
	if is := typeOf(s.Data); is != "" && (is != "image/bmp" || block == "image") { // two letters make no bitmap of a document
		s.MediaType = is
		if block = "image"; is == pdfType {
			block = "document"
		}
	}
	return s, block
}

// unbroken answers base64 on one line, with its padding.
func unbroken(data string) string {
	if strings.ContainsAny(data, " \t\r\n") {
		data = strings.Join(strings.Fields(data), "")
	}
	if short := len(data) % 4; short > 1 && !strings.HasSuffix(data, "=") {
		data += strings.Repeat("=", 4-short)
	}
	return data
}

// json answers s as a block holds it.
func (s mediaSource) json() json.RawMessage {
	if s.Type == "base64" {
		return base64Source(s.MediaType, s.Data)
	}
	f := field.Map{"data": field.Quoted(s.Data), "type": field.Quoted(s.Type)}
	if s.MediaType != "" {
		f["media_type"] = field.Quoted(s.MediaType)
	}
	return f.JSON()
}

// isMedia says whether b is an image or a document that every dialect knows.
func isMedia(b wireBlock) bool {
	if b.Type != "image" && b.Type != "document" {
		return false
	}
	var s mediaSource
	return jsonv2.Unmarshal(b.Source, &s) == nil && s.fault(b.Type) == ""
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
	block, source, fault := readMedia(raw)
	if fault != "" || source == nil {
		return "", nil
	}
	return block, source
}

// readMedia answers a block as media does, with what is wrong with its source.
func readMedia(raw json.RawMessage) (block string, source json.RawMessage, fault string) {
	var f foreignMedia
	if json.Unmarshal(raw, &f) != nil {
		return "", nil, ""
	}
	if block, source = f.Type, json.RawMessage(f.Source); f.Type == "image_url" {
		block, source = "image", urlSource(f.url())
	} else if f.Type != "image" && f.Type != "document" {
		return "", nil, ""
	} else if len(f.Source) == 0 && f.Data != "" {
		source = base64Source(f.MimeType+f.MediaType, f.Data)
	}
	var given mediaSource
	if jsonv2.Unmarshal(source, &given) != nil {
		return "", nil, ""
	}
	if given.Type == "url" && !isLink(given.URL) {
		if source = urlSource(given.URL); source == nil {
			return "", nil, ""
		}
		_ = json.Unmarshal(source, &given)
	}
	s, block := given.tidy(block)
	if s != given {
		source = s.json()
	}
	return block, source, s.fault(block)
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

// legible answers a block as it is, and one that was to be a medium and cannot be
// read as one, or sent, as the words that say so: its bytes are no text for a
// model.
func legible(raw json.RawMessage) json.RawMessage {
	var b struct {
		Type string `json:"type"`
	}
	if field.KindOf(raw) != '{' || json.Unmarshal(raw, &b) != nil {
		return raw
	}
	switch b.Type {
	case "image", "image_url", "input_image", "document", "audio", "input_audio", "file", "input_file", "video", "resource", "inline_data":
		_, source, fault := readMedia(raw)
		if source == nil || fault == "" { // what is wrong is another member
			fault = mediaSource{}.fault("")
		}
		if len(raw) < 1<<10 && (source == nil || !bytes.Contains(source, []byte(`"base64"`))) {
			return raw // nothing but words is in it
		}
		return unsent(b.Type, fault)
	}
	return raw
}

// unsent says that a medium is not shown.
func unsent(block, fault string) json.RawMessage {
	return field.Quoted(fmt.Sprintf("[a block of type %s that cannot be sent: %s]", block, fault))
}

// MediaLimits is the most that a provider takes of one medium, in bytes of its base64;
// 0: nobody knows.
type MediaLimits struct{ Image, File int }

// of answers the limit for a block.
func (l MediaLimits) of(block string) int {
	if block == "image" {
		return l.Image
	}
	return l.File
}

// mediaFault answers why the provider of t does not take a medium that another
// one does, or nothing.
func (t Target) mediaFault(block string, source json.RawMessage) string {
	var s mediaSource
	_ = json.Unmarshal(source, &s)
	limit := t.Media.of(block)
	switch {
	case s.Type != "base64":
	case limit > 0 && len(s.Data) > limit:
		return fmt.Sprintf("got %d bytes of base64, want at most %d", len(s.Data), limit)
	case block != "document" || s.MediaType == pdfType:
	case t.Dialect != Responses:
		return fmt.Sprintf("got the media type %q, want %q or a source of type \"text\"", s.MediaType, pdfType)
	case fileEnding(s.MediaType) == "":
		return fmt.Sprintf("got the media type %q, want a source of type \"text\" or one of %s", s.MediaType, field.List(fileTypes()))
	}
	return ""
}
