package spec

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
)

// mergeLoop answers, for sessions given as lists of events, the request of
// supervisor.merge over all but the last for the last, which is the parent. An
// event that the door refuses is left out.
const mergeLoop = `
local knl, supervisor = require("knl"), require("supervisor")
local sessions = {}
for i, events in ipairs(std.json.decode(%q)) do
  sessions[i] = knl.open{}
  for _, event in ipairs(events) do
    pcall(sessions[i].append, sessions[i], event)
  end
end
local parent = table.remove(sessions)
sessions[#sessions + 1] = sessions[1] -- one twice
return std.json.encode(supervisor.merge(parent, sessions)(parent:events()))
`

// mergeEvent draws an event of a conversation: calls whose ids occur anywhere,
// results with and without a call.
func mergeEvent(t *rapid.T) string {
	id := rapid.SampledFrom([]string{"a", "b", "a_2", "a_2_2", "call_0", ""}).Draw(t, "id")
	beat := rapid.SampledFrom([]string{"b1", "b2"}).Draw(t, "beat")
	switch rapid.IntRange(0, 3).Draw(t, "event") {
	case 0:
		return `{"kind":"msg_user","data":{"content":"go on"}}`
	case 1:
		return fmt.Sprintf(`{"kind":"tool_result","beat":%q,"data":{"call_id":%q,"ok":true,"result":"r"}}`, beat, id)
	case 2:
		return fmt.Sprintf(`{"kind":"llm_response","beat":%q,"data":{"content":[{"type":"text","text":"hm"},7,{"type":"tool_use","id":%q,"name":"look","input":{}}]}}`, beat, id)
	}
	return fmt.Sprintf(`{"kind":"llm_response","beat":%q,"data":{"content":[{"type":"tool_use","id":%q,"name":"look","input":{}},{"type":"tool_use","id":"b","name":"look","input":{}}]}}`, beat, id)
}

// TestProvidersTakeWhatMergeAnswers: whatever the logs, each dialect makes of the
// merged request a body that the provider accepts.
func TestProvidersTakeWhatMergeAnswers(t *testing.T) {
	for _, dev := range []bool{true, false} {
		vm := specVM(t, ".", dev)
		rapid.Check(t, func(t *rapid.T) {
			var sessions []string
			for range rapid.IntRange(2, 4).Draw(t, "sessions") {
				events := rapid.SliceOfN(rapid.Custom(mergeEvent), 0, 8).Draw(t, "events")
				sessions = append(sessions, "["+strings.Join(events, ",")+"]")
			}
			source := fmt.Sprintf(mergeLoop, "["+strings.Join(sessions, ",")+"]")
			out, err := vm.RunString(context.Background(), "merge", source)
			require.NoError(t, err)
			req, err := kernel.ParseRequest(json.RawMessage(out[0].String()))
			require.NoError(t, err)
			for _, dialect := range port.Dialects {
				target := port.Target{Dialect: dialect}
				wire, err := port.Lower(target, req, port.Conf{Model: "m", MaxTokens: 100})
				require.NoError(t, err)
				require.NoError(t, port.Check(target, wire.Body), "%s", wire.Body)
			}
		})
	}
}
