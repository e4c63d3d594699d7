package openai

import (
	"encoding/json"

	"github.com/knl-run/knl/port/internal/field"
)

// maxDescription is how many characters OpenAI takes of a tool's description in a
// chat. One that is longer would cost every call that offers the tool: servers of
// tools write longer ones, and so does the schema that [port.Lower] quotes.
const maxDescription = 1024

// shorten cuts the descriptions of a body's tools that OpenAI would refuse, and says
// so.
func (m *model) shorten(body field.Map) {
	if m.server.dialect.name != "openai" || m.responses || body["tools"] == nil {
		return
	}
	tools, _ := field.Elements(body["tools"])
	for i, raw := range tools {
		tool, function := field.Map{}, field.Map{}
		if json.Unmarshal(raw, &tool) != nil || json.Unmarshal(tool["function"], &function) != nil {
			continue // a filter's own
		}
		text := []rune(field.Plain(function["description"]))
		if len(text) <= maxDescription {
			continue
		}
		m.port.warn("%s: the description of tool %q has %d characters, the first %d are sent", m.conf.Model, field.Plain(function["name"]), len(text), maxDescription)
		function["description"] = field.Quoted(string(text[:maxDescription-1]) + "…")
		tool["function"] = function.JSON()
		tools[i] = tool.JSON()
	}
	body["tools"] = field.Array(tools)
}
