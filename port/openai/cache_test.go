package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/openai"
	"github.com/knl-run/knl/port/wiretest"
)

// marked answers the texts that are marked in a body.
func marked(t *testing.T, body json.RawMessage) (texts []string) {
	t.Helper()
	var b struct {
		Messages []struct{ Content json.RawMessage }
	}
	require.NoError(t, json.Unmarshal(body, &b))
	for _, m := range b.Messages {
		var parts []struct {
			Text string
			Mark json.RawMessage `json:"cache_control"`
		}
		_ = json.Unmarshal(m.Content, &parts)
		for _, p := range parts {
			if p.Mark != nil {
				require.JSONEq(t, `{"type":"ephemeral"}`, string(p.Mark))
				texts = append(texts, p.Text)
			}
		}
	}
	require.Equal(t, len(texts), strings.Count(string(body), "cache_control"), "no mark stands elsewhere")
	return texts
}

// Claude keeps a prompt where it is marked, on openrouter as well; nobody else is
// sent a mark.
func TestCacheMarks(t *testing.T) {
	const (
		used   = `{"content":[{"id":"c","input":{},"name":"fs.read","type":"tool_use"}],"role":"assistant"}`
		result = `{"content":[{"content":"done","tool_use_id":"c","type":"tool_result"}],"role":"user"}`
		shown  = `{"content":[{"text":"see","type":"text"},{"source":{"data":"aGk=","media_type":"image/png","type":"base64"},"type":"image"}],"role":"user"}`
		reply  = `{"content":"well","role":"assistant"}`
	)
	claude := port.Conf{Model: "anthropic/claude-sonnet-4.5", Dialect: "openrouter"}
	other, elsewhere, off := claude, claude, claude
	other.Model, elsewhere.Dialect, off.NoCache = "openai/gpt-5", "vllm", true
	elsewhere.BaseURL = "http://127.0.0.1:1"
	for name, c := range map[string]struct {
		conf     port.Conf
		messages []string
		want     []string
	}{
		"one message":    {claude, []string{ask}, []string{"be brief", "go on"}},
		"two turns":      {claude, []string{ask, reply, ask}, []string{"be brief", "go on", "go on"}},
		"a tool's":       {claude, []string{ask, used, result}, []string{"be brief", "go on", "done"}},
		"many":           {claude, []string{ask, reply, ask, used, result}, []string{"be brief", "go on", "done"}},
		"a picture last": {claude, []string{shown}, []string{"be brief", "see"}},
		"another model":  {other, []string{ask}, nil},
		"another server": {elsewhere, []string{ask}, nil},
		"not wanted":     {off, []string{ask}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			req := withTool(requestOf(c.messages...))
			req.System = json.RawMessage(`"be brief"`)
			require.Equal(t, c.want, marked(t, openai.BodyFor(t, nil, c.conf, req)))
		})
	}
	req := requestOf(ask)
	req.Extra = map[string]json.RawMessage{"cache_control": json.RawMessage(`{"type":"ephemeral"}`)}
	require.Equal(t, 1, strings.Count(string(openai.BodyFor(t, nil, claude, req)), "cache_control"), "a filter's own is the only one")

	s := wiretest.New(t).Reply(wiretest.Reply{Blocks: []wiretest.Block{wiretest.Say("x")}})
	p, conf := at(s, "openrouter")
	conf.Model = claude.Model
	_, _, err := call(t, p, conf, requestOf(ask, used, result))
	require.NoError(t, err)
}
