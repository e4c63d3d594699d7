package port_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/port"
)

// An image weighs the same however many bytes it has, in a message and in a
// result; a file weighs a page and a token for sixteen bytes; all else is a
// token for four.
func TestEstimateOfMedia(t *testing.T) {
	data := strings.Repeat("aGlh", 200_000)
	image := `{"source":{"data":"` + data + `","media_type":"image/png","type":"base64"},"type":"image"}`
	file := `{"source":{"data":"` + data + `","media_type":"application/pdf","type":"base64"},"type":"document"}`
	user := func(block string) string { return `{"content":[` + block + `],"role":"user"}` }
	small := int64(70) // tokens of what is written around the media
	for name, c := range map[string]struct {
		message string
		want    int64
	}{
		"text":             {user(textBlock(data)), 200_000},
		"image":            {user(image), port.ImageTokens},
		"image by URL":     {user(`{"source":{"type":"url","url":"https://x/y.png"},"type":"image"}`), port.ImageTokens},
		"two images":       {user(image + "," + image), 2 * port.ImageTokens},
		"in a result":      {user(`{"content":[` + image + `],"tool_use_id":"a","type":"tool_result"}`), port.ImageTokens},
		"file":             {user(file), port.ImageTokens + 50_000},
		"file by URL":      {user(linked), port.ImageTokens},
		"document of text": {user(`{"source":{"data":"` + data + `","media_type":"text/plain","type":"text"},"type":"document"}`), 200_000},
		"as MCP spells it": {user(`{"data":"` + data + `","mimeType":"image/png","type":"image"}`), port.ImageTokens},
		"as OpenAI does":   {user(`{"image_url":{"url":"data:image/png;base64,` + data + `"},"type":"image_url"}`), port.ImageTokens},
		"not readable":     {user(`{"source":{"data":"` + data + `","type":"base64"},"type":"image"}`), 30},
		"audio":            {user(`{"data":"` + data + `","mimeType":"audio/wav","type":"audio"}`), 40},
		"audio of OpenAI":  {user(`{"input_audio":{"data":"` + data + `","format":"wav"},"type":"input_audio"}`), 40},
		"a file of OpenAI": {user(`{"file":{"file_data":"` + data + `"},"type":"file"}`), 40},
		"an input file":    {user(`{"file_data":"` + data + `","type":"input_file"}`), 40},
		"video":            {user(`{"data":"` + data + `","type":"video"}`), 40},
		"a resource":       {user(`{"resource":{"blob":"` + data + `"},"type":"resource"}`), 40},
		"audio, a result":  {user(`{"content":[{"data":"` + data + `","mimeType":"audio/wav","type":"audio"}],"tool_use_id":"a","type":"tool_result"}`), 40},
		"spaced":           {`{ "role" : "user", "content" : [ { "type" : "image", "source" : { "type" : "url", "url" : "https://x/y.png" } } ] }`, port.ImageTokens},
		"a type in words":  {user(textBlock(`{"type":"image","data":"`)), 0},
		"nothing to read":  {`{"content":"an image of a document","role":"user"}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := port.Estimate(requestOf(c.message))
			require.GreaterOrEqual(t, got, c.want)
			require.LessOrEqual(t, got, c.want+small)
		})
	}
}
