package port

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/port/internal/field"
)

// documentOf is a document as a message has it, read.
func documentOf(source, more string) part {
	return part{kind: mediaPart, block: "document", source: json.RawMessage(source), raw: json.RawMessage(`{"type":"document","source":` + source + more + `}`)}
}

// What a document says of itself goes where the wire has a place, else it is text.
func TestDocuments(t *testing.T) {
	const (
		named  = `,"title":"Plan","context":"of 2020","citations":{"enabled":true}`
		text   = `{"data":"plain","type":"text"}`
		pdf    = `{"data":"aGk=","media_type":"application/pdf","type":"base64"}`
		linked = `{"type":"url","url":"https://x/a.pdf"}`
		data   = `"data:application/pdf;base64,aGk="`
	)
	said := func(s string) string { return `{"text":"` + s + `","type":"text"}` }
	for name, c := range map[string]struct{ source, more, anthropic, chat, responses string }{
		"text": {text, named,
			`{"citations":{"enabled":true},"context":"of 2020","source":{"data":"plain","media_type":"text/plain","type":"text"},"title":"Plan","type":"document"}`,
			`[` + said(`Plan\n\nof 2020\n\nplain`) + `]`,
			`[{"text":"Plan\n\nof 2020\n\nplain","type":"input_text"}]`},
		"text, bare": {text, ``,
			`{"source":{"data":"plain","media_type":"text/plain","type":"text"},"type":"document"}`,
			`[` + said(`plain`) + `]`,
			`[{"text":"plain","type":"input_text"}]`},
		"file": {pdf, named,
			`{"citations":{"enabled":true},"context":"of 2020","source":` + pdf + `,"title":"Plan","type":"document"}`,
			`[` + said(`of 2020`) + `,{"file":{"file_data":` + data + `,"filename":"Plan.pdf"},"type":"file"}]`,
			`[{"text":"of 2020","type":"input_text"},{"file_data":` + data + `,"filename":"Plan.pdf","type":"input_file"}]`},
		"file with its ending": {pdf, `,"title":"a.PDF","context":" "`,
			`{"source":` + pdf + `,"title":"a.PDF","type":"document"}`,
			`[{"file":{"file_data":` + data + `,"filename":"a.PDF"},"type":"file"}]`,
			`[{"file_data":` + data + `,"filename":"a.PDF","type":"input_file"}]`},
		"URL": {linked, `,"title":"Plan"`,
			`{"source":` + linked + `,"title":"Plan","type":"document"}`,
			`[` + said(`Plan\n\nDocument: https://x/a.pdf`) + `]`,
			`[{"file_url":"https://x/a.pdf","type":"input_file"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			p := documentOf(c.source, c.more)
			require.Equal(t, c.anthropic, string(anthropicMedia(p)))
			require.Equal(t, c.chat, string(chatContent([]part{p})))
			require.Equal(t, c.responses, string(inputContent([]part{p})))
		})
	}
	image := part{kind: mediaPart, block: "image", source: json.RawMessage(`{"type":"url","url":"https://x/y.png"}`), raw: json.RawMessage(`{"title":"x"}`)}
	require.Equal(t, string(field.Map{"source": image.source, "type": field.Quoted("image")}.JSON()), string(anthropicMedia(image)))
}
