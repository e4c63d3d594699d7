package port_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
)

var dialects = []port.Target{{Dialect: port.Anthropic}, {Dialect: port.OpenAI}, {Dialect: port.Responses}}

func bodyWith(t *testing.T, target port.Target, messages ...string) string {
	t.Helper()
	req := &kernel.Request{}
	for _, m := range messages {
		req.Messages = append(req.Messages, json.RawMessage(m))
	}
	wire, err := port.Lower(target, req, port.Conf{Model: "m", MaxTokens: 9})
	require.NoError(t, err)
	require.NoError(t, port.Check(target, wire.Body))
	return string(wire.Body)
}

// An image is an image however it is spelled, in what a user says and in what a
// tool answers.
func TestAnImageInOtherSpellings(t *testing.T) {
	neutral := `{"source":{"data":"aGk=","media_type":"image/png","type":"base64"},"type":"image"}`
	linked := `{"type":"image","source":{"type":"url","url":"https://x/y.png"}}`
	for spelling, want := range map[string]string{
		`{"type":"image","source":{"type":"url","url":"data:image/png;base64,aGk="}}`: neutral,
		`{"type":"image","data":"aGk=","mimeType":"image/png"}`:                       neutral,
		`{"type":"image","data":"aGk=","media_type":"image/png"}`:                     neutral,
		`{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}`:       neutral,
		`{"type":"image_url","image_url":"data:image/png;base64,aGk="}`:               neutral,
		`{"type":"image_url","image_url":{"url":"https://x/y.png","detail":"high"}}`:  linked,
	} {
		for _, target := range dialects {
			said := func(block string) string { return `{"content":[` + block + `],"role":"user"}` }
			require.Equal(t, bodyWith(t, target, said(want)), bodyWith(t, target, said(spelling)), spelling)

			call := `{"content":[{"id":"a","input":{},"name":"look","type":"tool_use"}],"role":"assistant"}`
			result := func(block string) []string {
				events := []*kernel.Event{
					{Kind: kernel.LLMResponse, Beat: "1", Data: json.RawMessage(`{"content":[{"id":"a","input":{},"name":"look","type":"tool_use"}]}`)},
					{Kind: kernel.ToolResult, Beat: "1", Data: json.RawMessage(`{"call_id":"a","ok":true,"result":[` + block + `]}`)},
				}
				messages := kernel.FoldEvents(events, nil).Messages
				require.Len(t, messages, 2)
				return []string{`{"content":"look","role":"user"}`, call, string(messages[1])}
			}
			require.Equal(t, bodyWith(t, target, result(want)...), bodyWith(t, target, result(spelling)...), spelling)
		}
	}
}

// The bytes of an image that cannot be read are no text for a model.
func TestAnImageThatCannotBeRead(t *testing.T) {
	bytes := strings.Repeat("iVBORw0K", 1000)
	for _, block := range []string{
		`{"type":"image","source":{"type":"base64","mediaType":"image/png","data":"` + strings.Repeat("AAAAiVBO", 1000) + `"}}`,
		`{"type":"image","source":"` + bytes + `"}`,
		`{"type":"image_url","image_url":"` + bytes + `"}`,
		`{"type":"input_image","image_url":"data:image/png;base64,` + bytes + `"}`,
		`{"type":"image","text":7,"data":"` + bytes + `"}`,
		`{"type":"input_audio","input_audio":{"data":"` + bytes + `","format":"wav"}}`,
		`{"type":"resource","resource":{"blob":"` + bytes + `"}}`,
		`{"type":"image","source":{"type":"url","url":"file:///` + bytes + `"}}`,
	} {
		for _, target := range dialects {
			body := bodyWith(t, target, `{"content":[`+block+`,{"type":"text","text":"what is it?"}],"role":"user"}`)
			require.NotContains(t, body, "iVBO", block)
			require.Contains(t, body, "that cannot be sent: want an image or a document with source = ", block)
			require.Contains(t, body, "what is it?")
		}
	}
	for _, target := range dialects { // a record that is only called so is shown
		require.Contains(t, bodyWith(t, target, `{"content":[{"type":"document","title":"minutes"}],"role":"user"}`), `minutes`)
	}
}

// What says the same in other words is sent as providers spell it.
func TestMediaAsProvidersSpellThem(t *testing.T) {
	said := func(block string) string { return `{"content":[` + block + `],"role":"user"}` }
	of := func(kind, data string) string {
		return said(`{"source":{"data":"` + data + `","media_type":"` + kind + `","type":"base64"},"type":"image"}`)
	}
	for _, target := range dialects {
		jpeg, png := bodyWith(t, target, of("image/jpeg", "aGkh")), bodyWith(t, target, of("image/png", "aGk="))
		require.Equal(t, jpeg, bodyWith(t, target, of("image/jpg", "aGkh")))
		require.Equal(t, jpeg, bodyWith(t, target, of("IMAGE/JPEG; q=1", "aG\\nkh\\n")))
		require.Equal(t, png, bodyWith(t, target, of("image/png", "data:image/png;base64,aGk=")))
		require.Equal(t, png, bodyWith(t, target, of("image/png", "aGk")))
		text := said(`{"source":{"data":"aGk=","media_type":"text/csv","type":"base64"},"type":"document"}`)
		require.Contains(t, bodyWith(t, target, text), `"hi"`)
	}
}

// What no provider takes is named and not sent.
func TestMediaThatNobodyTakes(t *testing.T) {
	block := func(kind, media, data string) string {
		return `{"source":{"data":"` + data + `","media_type":"` + media + `","type":"base64"},"type":"` + kind + `"}`
	}
	for b, want := range map[string]string{
		block("image", "image/svg+xml", "aGkh"):                 `cannot be sent: got the media type \"image/svg+xml\", want one of image/png, image/jpeg, image/gif, image/webp]`,
		block("image", "application/pdf", "aGkh"):               `got the media type \"application/pdf\"`,
		block("image", "image/png", "not base64!"):              "got data that is not base64",
		`{"data":"aGkh","mimeType":"image/bmp","type":"image"}`: `got the media type \"image/bmp\"`,
	} {
		for _, target := range dialects {
			body := bodyWith(t, target, `{"content":[`+b+`],"role":"user"}`)
			require.Contains(t, body, want)
			require.NotContains(t, body, "aGkh")
		}
	}
	word := `{"content":[` + block("document", "application/msword", "aGkh") + `],"role":"user"}`
	for _, target := range dialects[:2] {
		require.Contains(t, bodyWith(t, target, word), `got the media type \"application/msword\", want \"application/pdf\"`)
	}
	require.Contains(t, bodyWith(t, dialects[2], word), "aGkh")
	zip := `{"content":[` + block("document", "application/zip", "aGkh") + `],"role":"user"}`
	require.Contains(t, bodyWith(t, dialects[2], zip), `got the media type \"application/zip\", want a source of type \"text\" or one of application/pdf, application/vnd.`)
}

// A file is sent as what its bytes are, whatever it is called: its provider reads them.
func TestAFileIsWhatItsBytesAre(t *testing.T) {
	block := func(kind, media, bytes string) string {
		data := base64.StdEncoding.EncodeToString([]byte(bytes))
		return `{"content":[{"source":{"data":"` + data + `","media_type":"` + media + `","type":"base64"},"type":"` + kind + `"}],"role":"user"}`
	}
	png, jpeg, gif, webp := "\x89PNG\r\n\x1a\n....", "\xff\xd8\xff\xe0....", "GIF89a....", "RIFF....WEBPVP8 "
	for _, target := range dialects {
		for media, bytes := range map[string]string{"image/png": png, "image/jpeg": jpeg, "image/gif": gif, "image/webp": webp} {
			want := bodyWith(t, target, block("image", media, bytes))
			require.Contains(t, want, media)
			require.NotContains(t, want, "cannot be sent")
			for _, said := range []string{"image/png", "image/jpeg", "image/webp", "image/svg+xml", "application/octet-stream", ""} {
				require.Equal(t, want, bodyWith(t, target, block("image", said, bytes)), said)
			}
			for _, said := range []string{"application/pdf", "image/bmp", "application/octet-stream"} {
				require.Equal(t, want, bodyWith(t, target, block("document", said, bytes)), said)
			}
		}
		pdf := bodyWith(t, target, block("document", "application/pdf", "%PDF-1.4\n"))
		require.Equal(t, pdf, bodyWith(t, target, block("document", "application/octet-stream", "%PDF-1.4\n")))
		require.Equal(t, pdf, bodyWith(t, target, block("image", "image/png", "%PDF-1.4\n")))
		for bytes, is := range map[string]string{"BM......": "image/bmp", "II*\x00....": "image/tiff", "\x00\x00\x00\x18ftypheic....": "image/heic"} {
			require.Contains(t, bodyWith(t, target, block("image", "image/jpeg", bytes)), `cannot be sent: got the media type \"`+is+`\", want one of image/png`)
		}
		require.Contains(t, bodyWith(t, target, block("document", "application/octet-stream", "BM;a;b")), `cannot be sent: got the media type \"application/octet-stream\"`)
		require.Contains(t, bodyWith(t, target, block("document", "text/plain", "BMW, GIF8 and %PDF-")), `BMW, GIF8 and %PDF-`)
	}
}

// A text is one whatever it is called, and a file has the ending that says what it is.
func TestFilesOfDocuments(t *testing.T) {
	block := func(media, title string) string {
		return `{"content":[{"source":{"data":"e30K","media_type":"` + media + `","type":"base64"},"title":"` + title + `","type":"document"}],"role":"user"}`
	}
	for _, target := range dialects {
		for _, media := range []string{"application/json", "application/ld+json", "application/xml", "image/svg+xml", "text/csv", "application/x-yaml"} {
			require.Contains(t, bodyWith(t, target, block(media, "")), `{}\n`, media)
		}
	}
	const docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	for title, want := range map[string]string{"": "document.docx", "plan": "plan.docx", "Plan.DOCX": "Plan.DOCX", "plan.doc": "plan.doc.docx"} {
		require.Contains(t, bodyWith(t, dialects[2], block(docx, title)), `"filename":"`+want+`"`)
	}
}

// A medium that is longer than its provider takes would be refused on every later turn.
func TestAMediumThatIsTooLong(t *testing.T) {
	block := func(kind, media string) string {
		return `{"content":[{"source":{"data":"aGkhaGkh","media_type":"` + media + `","type":"base64"},"type":"` + kind + `"}],"role":"user"}`
	}
	for _, target := range dialects {
		for _, m := range []string{block("image", "image/png"), block("document", "application/pdf")} {
			target.Media = port.MediaLimits{Image: 8, File: 8}
			require.Contains(t, bodyWith(t, target, m), "aGkhaGkh")
			target.Media = port.MediaLimits{Image: 7, File: 7}
			require.Contains(t, bodyWith(t, target, m), "cannot be sent: got 8 bytes of base64, want at most 7]")
			require.NotContains(t, bodyWith(t, target, m), "aGkhaGkh")
		}
	}
}
