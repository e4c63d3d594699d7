package examples

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/port/wiretest"
)

// dialect is a way to a model, as a user sets it.
type dialect struct {
	name  string
	model string // of --model
	env   string // the variable of the address, and the address with %s for the server
	conf  string // what --model and the environment cannot say: a script says it, %s as above
	says  map[string]wiretest.Reply
	taped string // the loop that a cassette records on it

	thinks bool // its model says what it thinks before each answer

	// counts says how prompts are counted where that differs from the scripted
	// model's bytes by four. A loop that fills its window cuts it elsewhere then.
	counts string
}

// How providers say that a call fails, by the kind in the log.
var (
	anthropicSays = map[string]wiretest.Reply{
		"overloaded":   {Status: 529, Error: "overloaded_error", Say: "busy"},
		"rate_limited": {Status: 429, Error: "rate_limit_error", Say: "slow down"},
	}
	openaiSays = map[string]wiretest.Reply{
		"overloaded":   {Status: 503, Error: "server_error", Say: "busy"},
		"rate_limited": {Status: 429, Error: "rate_limit_exceeded", Say: "slow down"},
	}
)

const (
	byServer     = "the server counts, and its number is that of the body it was sent"
	byVocabulary = "the tokens of the vocabulary of the model"
	withThoughts = "bytes by four, and what was thought takes some"
)

var dialects = []dialect{
	{name: "anthropic", model: "anthropic:claude-sonnet-4-5", env: "ANTHROPIC_BASE_URL=%s", says: anthropicSays, taped: "batch", counts: byServer},
	{name: "anthropic whole", model: "anthropic:claude-sonnet-4-5", env: "ANTHROPIC_BASE_URL=%s", conf: `{ stream = false }`, says: anthropicSays, taped: "backoff", counts: byServer, thinks: true},
	{name: "openai chat", model: "openai:gpt-4.1", env: "OPENAI_BASE_URL=%s/v1", says: openaiSays, taped: "long_run", counts: byVocabulary},
	{name: "openai responses", model: "openai:gpt-5", env: "OPENAI_BASE_URL=%s/v1", conf: `{ api = "responses" }`, says: openaiSays, taped: "coding_loop", counts: byVocabulary, thinks: true},
	{name: "vllm", model: "vllm:qwen3", env: "VLLM_BASE_URL=%s/vllm/v1", says: openaiSays, taped: "fix_the_build"},
	{name: "llamacpp", model: "llamacpp:qwen3", env: "LLAMACPP_BASE_URL=%s/llamacpp/v1", says: openaiSays, taped: "research"},
	{name: "ollama", model: "ollama:qwen3", env: "OLLAMA_BASE_URL=%s/ollama/v1", says: openaiSays, taped: "nudge", counts: withThoughts, thinks: true},
	{name: "openrouter", model: "openrouter:some/model", env: "OPENROUTER_BASE_URL=%s/openrouter/v1", says: openaiSays, taped: "hello"},
}

// loop is an example, which every dialect runs.
type loop struct {
	name  string
	asks  bool // a human, who says yes in a second process
	fills bool // its window, so what a model is asked depends on how it counts
}

var loops = []loop{
	{name: "hello"}, {name: "fix_the_build"}, {name: "coding_loop"}, {name: "research"}, {name: "backoff"},
	{name: "nudge"}, {name: "batch"}, {name: "approval", asks: true}, {name: "long_run", fills: true},
}

func TestNoExampleIsLeftOut(t *testing.T) {
	files, err := filepath.Glob("*.lua")
	require.NoError(t, err)
	for _, l := range loops {
		assert.Contains(t, files, l.name+".lua")
	}
	assert.Len(t, loops, len(files))
}

// The end is the exit code, the result, what was printed, the files, and what every
// session recorded; that of the scripted model is the measure. Each conversation that
// a server is asked about is one that the scripted model was asked about, and no
// server refuses a body.
func TestEveryExampleEndsTheSameOnEveryPort(t *testing.T) {
	w := newWorkshop(t)
	scripted := make([]*recording, len(loops))
	for i, l := range loops {
		scripted[i] = w.record(t, l)
	}
	two := make(chan struct{}, 2) // dialects at a time
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			two <- struct{}{}
			defer func() { <-two }()
			for i, l := range loops {
				run := w.compare
				if l.name == d.taped {
					run = w.tape
				}
				t.Run(l.name, func(t *testing.T) { run(t, d, l, scripted[i]) })
			}
		})
	}
}

// compare holds a run of l on d against the scripted one.
func (w *workshop) compare(t *testing.T, d dialect, l loop, r *recording) {
	same(t, d, l, r.outcome, w.run(t, newProject(t), l, d.ask(d.server(t, l, r))))
}

// tape records l on d, and plays it when the server is gone.
func (w *workshop) tape(t *testing.T, d dialect, l loop, r *recording) {
	recorded, played := newProject(t), newProject(t)
	var h how
	var out outcome
	t.Run("recorded", func(t *testing.T) { // the server stops with this test
		h = d.ask(d.server(t, l, r))
		h.tape = "examples/tape.ndjson"
		out = w.run(t, recorded, l, h)
		same(t, d, l, r.outcome, out)
	})
	text, err := os.ReadFile(filepath.Join(recorded.dir, h.tape))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(played.dir, h.tape), text, 0o600))
	assert.Equal(t, out, w.run(t, played, l, h))
}

// same holds a run against the scripted one: to the letter, or where the window is
// cut elsewhere, by what was said and done at all.
func same(t *testing.T, d dialect, l loop, want, got outcome) {
	switch {
	case d.cuts(l):
		want, got = want.loose(), got.loose()
	case d.thinks: // which a model that takes over is sent as well
		want, got = want.uncounted(), got.uncounted()
	}
	assert.Equal(t, want, got)
}

// cuts says whether l cuts its window on d elsewhere than on its scripted model.
func (d dialect) cuts(l loop) bool { return l.fills && d.counts != "" }

// ask answers how a user asks the server as d.
func (d dialect) ask(s *wiretest.Server) how {
	h := how{model: d.model, conf: strings.ReplaceAll(d.conf, "%s", s.URL)}
	if d.env != "" {
		h.env = fmt.Sprintf(d.env, s.URL)
	}
	return h
}

// server answers a server that says what the scripted model said, the n-th time to
// the n-th call with the same conversation. So children may ask in any order.
// Where the window is cut elsewhere it is decided as the script decides it: by
// whether a summary is asked for.
func (d dialect) server(t *testing.T, l loop, r *recording) *wiretest.Server {
	key := func(said []string) string { return strings.Join(said, "\n") }
	if d.cuts(l) {
		key = func(said []string) string { return fmt.Sprint(strings.Contains(said[len(said)-1], "summary")) }
	}
	replies := map[string][]wiretest.Reply{}
	for _, c := range r.calls {
		reply := c.wire(d.says)
		if d.thinks && reply.Error == "" {
			reply.Blocks = append([]wiretest.Block{wiretest.Think("Let me see.", "c2ln")}, reply.Blocks...)
		}
		replies[key(c.said)] = append(replies[key(c.said)], reply)
	}
	count := func(r wiretest.Request) int64 { return int64(len(r.Body)+3) / 4 }
	var mu sync.Mutex
	choose := func(r wiretest.Request) (wiretest.Reply, bool) {
		mu.Lock()
		defer mu.Unlock()
		left := replies[key(r.Said())]
		if len(left) == 0 {
			return wiretest.Reply{}, false
		}
		if len(left) > 1 || !d.cuts(l) {
			replies[key(r.Said())] = left[1:]
		}
		if d.cuts(l) {
			left[0].Usage.Input = count(r)
		}
		return left[0], true
	}
	return wiretest.New(t).By(choose).CountsBy(count)
}

// wrapped is a script that runs an example on a port of its own.
const wrapped = `local ports = require("ports")
local port = %s
ports.default = function() return port end
return require(%q)
`

// how says on which model an example runs.
type how struct{ model, env, conf, tape string }

// script answers the file that runs the example, written where one is needed.
func (h how) script(t *testing.T, p *project, example string) string {
	if h.conf == "" && h.tape == "" {
		return "examples/" + example + ".lua"
	}
	port := fmt.Sprintf("ports.from(%q, %s)", h.model, h.conf)
	if h.conf == "" {
		port = "ports.default()"
	}
	if h.tape != "" {
		port = fmt.Sprintf("ports.cassette{ path = %q, port = %s }", h.tape, port)
	}
	path := filepath.Join(p.dir, "examples", "on_a_port.lua")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, wrapped, port, example), 0o644))
	return "examples/on_a_port.lua"
}
