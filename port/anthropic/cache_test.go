package anthropic_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/wiretest"
)

const oneMark = `"cache_control":{"type":"ephemeral"},`

// prompt lays a body out as the provider caches it: tools, system, then the
// blocks of the messages, each on a line with the mark taken off, and answers
// the lines that a mark stands behind.
func prompt(t require.TestingT, body []byte) (lines []string, marks []int) {
	var top struct {
		Tools, System []json.RawMessage
		Messages      []struct {
			Role    string
			Content []json.RawMessage
		}
	}
	require.NoError(t, json.Unmarshal(body, &top))
	add := func(prefix string, blocks []json.RawMessage) {
		for _, b := range blocks {
			line := strings.Replace(string(b), oneMark, "", 1)
			if line != string(b) {
				marks = append(marks, len(lines))
			}
			lines = append(lines, prefix+line)
		}
	}
	add("tool ", top.Tools)
	add("system ", top.System)
	for _, m := range top.Messages {
		add(m.Role+" ", m.Content)
	}
	return lines, marks
}

// growing answers the requests of a loop of n beats, each with its calls.
func growing(n, calls int) []*kernel.Request {
	req := &kernel.Request{
		System:   json.RawMessage(`[{"text":"be brief","type":"text"},{"text":"and careful","type":"text"}]`),
		Tools:    []json.RawMessage{json.RawMessage(`{"name":"a"}`), json.RawMessage(`{"name":"b"}`)},
		Messages: hello().Messages,
	}
	var out []*kernel.Request
	for i := range n {
		own := *req
		own.Messages = append([]json.RawMessage(nil), req.Messages...)
		out = append(out, &own)
		var uses, results []string
		for j := range calls {
			id := fmt.Sprintf("c%d_%d", i, j)
			uses = append(uses, `{"id":"`+id+`","input":{},"name":"a","type":"tool_use"}`)
			results = append(results, `{"content":"done `+id+`","tool_use_id":"`+id+`","type":"tool_result"}`)
		}
		req.Messages = append(req.Messages, json.RawMessage(`{"content":[`+strings.Join(uses, ",")+`],"role":"assistant"}`), json.RawMessage(`{"content":[`+strings.Join(results, ",")+`],"role":"user"}`))
	}
	return out
}

// Each request reads what the one before it wrote: it begins with the same
// blocks, and a mark stands exactly where the last one stood.
func TestMarksStayPut(t *testing.T) {
	r := newRig(t)
	requests := growing(6, 30)
	for _, req := range requests {
		r.server.Reply(wiretest.Reply{})
		_, err := r.call(port.Conf{}, req, nil)
		require.NoError(t, err)
	}
	bodies := r.server.Bodies("/v1/messages")
	lines, marks := prompt(t, bodies[0])
	require.Equal(t, []int{1, 3, 4}, marks, "behind the tools, the system prompt and the first message")
	for _, body := range bodies[1:] {
		next, nextMarks := prompt(t, body)
		end := marks[len(marks)-1]
		require.Equal(t, lines[:end+1], next[:end+1])
		require.Contains(t, nextMarks, end)
		require.Len(t, nextMarks, 4)
		require.Equal(t, len(next)-1, nextMarks[3])
		lines, marks = next, nextMarks
	}
}

func TestNoMarks(t *testing.T) {
	r := newRig(t)
	req := growing(2, 1)[1]
	r.server.Reply(wiretest.Reply{}, wiretest.Reply{})
	_, err := r.call(port.Conf{NoCache: true}, req, nil)
	require.NoError(t, err)
	require.NotContains(t, string(r.server.Last().Body), "cache_control")

	req.Extra = map[string]json.RawMessage{"cache_control": json.RawMessage(`{"ttl":"1h","type":"ephemeral"}`)}
	_, err = r.call(port.Conf{}, req, nil)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(r.server.Last().Body), "cache_control"), "the provider sets the marks where a filter asks it to")
}
