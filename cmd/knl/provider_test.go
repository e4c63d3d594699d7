package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/port/wiretest"
)

// adding is a loop that asks whichever model the run was told.
const adding = `
local knl, ports = require("knl"), require("ports")
local device = knl.device{
  llm = ports.default():open{ temperature = 0.2 },
  tools = { ["math.add"] = { effects = "read", handler = function(args) return args.a + args.b end } },
}
return knl.session({ budget = { amount = 5, tag = "beats" } }, function(s)
  s:append{ kind = "msg_user", data = { content = "19+23?" } }
  local o
  repeat o = knl.beat(s, device, { on_delta = function(d) print(d.text) end })
  until o.status ~= "ok" or #o.out.tools == 0
  if o.status ~= "ok" then error(o.detail.kind .. ": " .. o.detail.message, 0) end
  return o.out.content[1].text
end)
`

// providerKey is one of the canaries that no byte of a run may hold.
var providerKey = canaries["CANARY_PLAIN"]

// provided runs knl on the loop against a server of its own.
func provided(t *testing.T, s *wiretest.Server, env ...string) (dir, stdout, stderr string, code int) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "loop.lua"), []byte(adding), 0o644))
	cmd := exec.Command(binary, "run", "--json", "--model", "anthropic:claude-opus-4-7", "loop.lua")
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &errs
	cmd.Env = append([]string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "ANTHROPIC_BASE_URL=" + s.URL}, env...)
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		code = exit.ExitCode()
	}
	return dir, out.String(), errs.String(), code
}

// A script that knows no provider runs on one that the run was told, and the
// key shows nowhere.
func TestRunOnAnthropic(t *testing.T) {
	s := wiretest.New(t).Reply(
		wiretest.Reply{Blocks: []wiretest.Block{wiretest.Think("hm", "c2ln"), wiretest.Use("toolu_1", "math_add", `{"a":19,"b":23}`)}},
		wiretest.Reply{Chunk: 100, Blocks: []wiretest.Block{wiretest.Say("It is 42, and the key is " + providerKey + ".")}, Usage: wiretest.Usage{Input: 3, Output: 9, CacheRead: 90}},
	)
	dir, stdout, stderr, code := provided(t, s, "ANTHROPIC_API_KEY="+providerKey)
	require.Zero(t, code, stderr)
	var doc struct {
		Result string
		Beats  int
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &doc), stdout)
	require.Equal(t, "It is 42, and the key is ***.", doc.Result)
	require.Equal(t, 2, doc.Beats, stdout)
	require.Contains(t, stderr, "It is 42, and the key is ***.", "the deltas, which --json sends to stderr")
	require.Equal(t, 1, strings.Count(stderr, "claude-opus-4-7 takes no temperature, it was left out of the request"), stderr)

	var second struct {
		Messages []struct{ Content []json.RawMessage }
	}
	require.NoError(t, json.Unmarshal(s.Last().Body, &second))
	require.JSONEq(t, `{"signature":"c2ln","thinking":"hm","type":"thinking"}`, string(second.Messages[1].Content[0]))
	require.Contains(t, string(second.Messages[2].Content[0]), `"text":"42"`)

	w := &wild{dir: dir}
	w.out.WriteString(stdout + stderr)
	w.find(t)
}

func TestRunOnAnthropicFails(t *testing.T) {
	for says, c := range map[string]struct {
		reply []wiretest.Reply
		env   []string
	}{
		"auth: invalid x-api-key ***":                             {[]wiretest.Reply{{Status: 401, Error: "authentication_error", Say: "invalid x-api-key " + providerKey}}, []string{"ANTHROPIC_API_KEY=" + providerKey}},
		"rate_limited: slow down":                                 {[]wiretest.Reply{{Status: 429, Error: "rate_limit_error", Say: "slow down"}}, []string{"ANTHROPIC_API_KEY=" + providerKey}},
		"transport: the stream ended before the answer was whole": {[]wiretest.Reply{{Blocks: []wiretest.Block{wiretest.Say("It is")}, Cut: 3}}, []string{"ANTHROPIC_API_KEY=" + providerKey}},
		"no key was sent":                                         {nil, nil},
	} {
		begun := time.Now()
		_, _, stderr, code := provided(t, wiretest.New(t).Reply(c.reply...), c.env...)
		require.Equal(t, exitRaised, code, stderr)
		require.Contains(t, stderr, says)
		require.NotContains(t, stderr, providerKey)
		require.Less(t, time.Since(begun), 20*time.Second)
	}
}
