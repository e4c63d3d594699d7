package port

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port/internal/field"
)

// ImageTokens bounds what an image takes of a prompt: as much as the dearest of
// the common ways to cut one into tokens asks for a picture that was not scaled
// down. Its bytes say nothing about it.
const ImageTokens = 1600

// fileByte is what a byte of a file's base64 takes, in tokens. A page of it is an
// image as well.
const fileByte = 1.0 / 16

// FileTokens estimates what a file takes of a prompt whose base64 is that long.
func FileTokens(base64 int) int64 { return ImageTokens + int64(float64(base64)*fileByte) }

// Size is what a request is estimated by.
type Size struct {
	Bytes int64 // of the canonical request, without the data of its media
	Media int64 // tokens of its images and files
}

// Tokens answers a byte in four as a token, rounded up, and the media.
func (s Size) Tokens() int64 { return (s.Bytes+3)/4 + s.Media }

// Estimate answers a guess at the tokens of a request where nobody can count
// them: a quarter of its bytes, and a bound for each image.
func Estimate(req *kernel.Request) int64 { return SizeOf(req).Tokens() }

// SizeOf measures a request. Media stand in the content of a message or in that
// of a result.
func SizeOf(req *kernel.Request) Size {
	s := Size{Bytes: int64(req.Size())}
	for _, raw := range req.Messages {
		if !mayShow(raw) {
			continue // most messages are not decoded
		}
		var m struct {
			Content json.RawMessage `json:"content"`
		}
		if json.Unmarshal(raw, &m) == nil {
			s.weigh(m.Content, true)
		}
	}
	return s
}

// plainBlocks are the types of blocks that hold no medium themselves.
var plainBlocks = []string{`"text"`, `"tool_use"`, `"tool_result"`, `"thinking"`, `"redacted_thinking"`}

// mayShow says whether a message may hold a medium: a type stands in it that is not
// plain. It is asked of every message of every request, so it looks for one word.
func mayShow(message []byte) bool {
	for {
		_, after, more := bytes.Cut(message, []byte(`"type"`))
		if !more {
			return false
		}
		of := bytes.TrimLeft(after, ": \t\r\n")
		if !slices.ContainsFunc(plainBlocks, func(plain string) bool { return bytes.HasPrefix(of, []byte(plain)) }) {
			return true
		}
		message = of
	}
}

// weigh takes the media out of content, and what [Lower] sends as words about
// them.
func (s *Size) weigh(content json.RawMessage, results bool) {
	if field.KindOf(content) != '[' {
		return
	}
	list, _ := field.Elements(content)
	for _, raw := range list {
		var b struct {
			Type    string          `json:"type"`
			Content json.RawMessage `json:"content"`
		}
		if field.KindOf(raw) != '{' || json.Unmarshal(raw, &b) != nil {
			continue
		}
		if b.Type == "tool_result" && results {
			s.weigh(b.Content, false)
			continue
		}
		block, source := media(raw)
		if source == nil {
			s.Bytes -= int64(len(raw) - len(legible(raw)))
			continue
		}
		s.take(block, source)
	}
}

// take takes out one medium. A document of text is text.
func (s *Size) take(block string, source json.RawMessage) {
	var m mediaSource
	if json.Unmarshal(source, &m) != nil || m.Type == "text" {
		return
	}
	s.Bytes -= int64(len(m.Data) + len(m.URL))
	if block == "image" {
		s.Media += ImageTokens
	} else {
		s.Media += FileTokens(len(m.Data))
	}
}
