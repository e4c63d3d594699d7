package examples

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/pebblestore"
	"github.com/knl-run/knl/port/wiretest"
)

// workshop is what the runs of a built knl share.
type workshop struct {
	knl  string // the binary
	path string // where its tools look for programs
}

func newWorkshop(t *testing.T) *workshop {
	dir := t.TempDir()
	w := &workshop{knl: filepath.Join(dir, "knl")}
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", w.knl, "../cmd/knl")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	text, err := build.CombinedOutput()
	require.NoError(t, err, string(text))
	w.path = steadyGo(t, dir) + string(os.PathListSeparator) + os.Getenv("PATH")
	return w
}

// steady is a go that says of the same files what it said the first time, to the
// fraction of a second: one run of the tests is enough for all models, and
// what the loops read is the same.
const steady = `#!/bin/sh
at="%s/$(cat *.go | cksum | tr ' ' -)"
if [ ! -f "$at.code" ]; then
	%s "$@" >"$at.out.$$" 2>"$at.err.$$"
	echo $? >"$at.code.$$"
	for part in out err code; do mv "$at.$part.$$" "$at.$part"; done
fi
cat "$at.out"
cat "$at.err" >&2
exit "$(cat "$at.code")"
`

func steadyGo(t *testing.T, dir string) string {
	program, err := exec.LookPath("go")
	require.NoError(t, err)
	bin, memory := filepath.Join(dir, "bin"), filepath.Join(dir, "memory")
	require.NoError(t, errors.Join(os.Mkdir(bin, 0o755), os.Mkdir(memory, 0o755)))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "go"), fmt.Appendf(nil, steady, memory, program), 0o755))
	return bin
}

// outcome is what a run came to, with nothing in it that differs from run to run.
type outcome struct {
	Code     int
	Document string
	Printed  []string
	Files    map[string]string
	Sessions [][]string // what each recorded, an event a line; in the order of the texts
}

var sessionID = regexp.MustCompile(`\b[0-9A-HJKMNP-TV-Z]{26}\b`)

func plain(text string) string { return sessionID.ReplaceAllString(text, "ID") }

var (
	counters = regexp.MustCompile(`,?"(summaries|points|input_tokens|output_tokens)":\d+`)
	callID   = regexp.MustCompile(`"call_\d+_\d+"`)
)

// uncounted answers o without the tokens that were counted.
func (o outcome) uncounted() outcome {
	o.Document = counters.ReplaceAllString(o.Document, "")
	return o
}

// loose answers o without what depends on where a window is cut: how many
// summaries there are, in which beat a point is marked, what was counted, and the
// order.
func (o outcome) loose() outcome {
	o = o.uncounted()
	o.Printed = nil
	once := slices.Concat(o.Sessions...)
	for i, line := range once {
		once[i] = callID.ReplaceAllString(line, `"CALL"`)
	}
	slices.Sort(once)
	o.Sessions = [][]string{slices.Compact(once)}
	return o
}

// run runs an example as a user does and answers what came of it.
func (w *workshop) run(t *testing.T, p *project, l loop, h how) outcome {
	t.Helper()
	var stdout bytes.Buffer
	stderr := &watched{}
	cmd := w.command(p, h, "--json", h.script(t, p, l.name))
	cmd.Stdout, cmd.Stderr = &stdout, stderr
	if l.asks {
		stderr.seen = func(session string) { w.allow(t, p, l, session) }
	}
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(stderr.text.String())
		}
	})
	var document any
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &document), stdout.String())
	out := outcome{Code: cmd.ProcessState.ExitCode(), Document: told(document), Printed: stderr.printed(), Files: p.files(t)}
	p.sessions(t, func(s *kernel.Session, events []*kernel.Event) {
		out.Sessions = append(out.Sessions, lines(t, events))
	})
	slices.SortFunc(out.Sessions, slices.Compare)
	return out
}

func (w *workshop) command(p *project, h how, args ...string) *exec.Cmd {
	cmd := exec.Command(w.knl, append([]string{"run", "--quiet", "--model=" + h.model}, args...)...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "PATH="+w.path, "APPROVAL_SECONDS=60", "ANTHROPIC_BASE_URL=", "OPENAI_BASE_URL=",
		"ANTHROPIC_API_KEY=sk-of-the-test", "OPENAI_API_KEY=sk-of-the-test", "OPENROUTER_API_KEY=sk-of-the-test")
	if h.env != "" {
		cmd.Env = append(cmd.Env, h.env) // the last of a name counts
	}
	return cmd
}

// allow is the human's side of a loop that asks.
func (w *workshop) allow(t *testing.T, p *project, l loop, session string) {
	text, err := w.command(p, how{}, "examples/"+l.name+".lua", session, "yes", "mia").CombinedOutput()
	assert.NoError(t, err, string(text))
}

// watched keeps what a run says and looks for a session that waits for a human.
type watched struct {
	text bytes.Buffer // not embedded: it would be filled past Write
	seen func(session string)
}

var wanted = regexp.MustCompile(`permission wanted.*\b([0-9A-HJKMNP-TV-Z]{26})\b`)

func (w *watched) Write(p []byte) (int, error) {
	w.text.Write(p)
	if m := wanted.FindSubmatch(w.text.Bytes()); m != nil && w.seen != nil {
		w.seen(string(m[1]))
		w.seen = nil
	}
	return len(p), nil
}

// said are the lines that knl itself writes beside the script.
var said = regexp.MustCompile(`^(knl: |\d{4}-\d\d-\d\dT|  )`)

// printed answers what the script printed, which --json sends to stderr.
func (w *watched) printed() []string {
	lines := strings.Split(plain(w.text.String()), "\n")
	return slices.DeleteFunc(lines, said.MatchString)
}

// files answers what stands in the project beside the examples and the store.
func (p *project) files(t *testing.T) map[string]string {
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(p.dir, path)
		switch {
		case err != nil:
			return err
		case name == "examples", name == ".knl":
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		text, err := os.ReadFile(path)
		out[plain(name)] = string(text)
		return err
	}))
	return out
}

// sessions calls visit with each session that the project's runs left.
func (p *project) sessions(t *testing.T, visit func(*kernel.Session, []*kernel.Event)) {
	ctx := context.Background()
	st, err := pebblestore.Open(filepath.Join(p.dir, ".knl"), pebblestore.Options{ReadOnly: true})
	require.NoError(t, err)
	defer func() { assert.NoError(t, st.Close()) }()
	k := kernel.New(st, kernel.Options{})
	rows, err := k.Sessions(ctx, "", 0)
	require.NoError(t, err)
	for _, row := range rows {
		s, err := k.Attach(ctx, row.Session)
		require.NoError(t, err)
		events, err := s.Events(ctx, 1)
		require.NoError(t, err)
		visit(s, events)
	}
}

// shared lists the parts of an event that a run on another model has too.
var shared = strings.Fields("name call_id args ok result content stop_reason refusal kind retry_after")

func lines(t *testing.T, events []*kernel.Event) []string {
	var out []string
	for _, ev := range events {
		var data map[string]any
		require.NoError(t, json.Unmarshal(ev.Data, &data))
		maps.DeleteFunc(data, func(key string, _ any) bool { return !slices.Contains(shared, key) })
		out = append(out, ev.Kind+" "+told(data))
	}
	return out
}

// told answers a value as JSON, without ids and without what a model thought.
func told(v any) string {
	text, err := json.Marshal(thoughtless(v))
	if err != nil {
		panic(err) // it was read from JSON
	}
	return plain(string(text))
}

func thoughtless(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			v[key] = thoughtless(v[key])
		}
	case []any:
		kept := []any{}
		for _, one := range v {
			if block, ok := one.(map[string]any); !ok || block["type"] != "thinking" {
				kept = append(kept, thoughtless(one))
			}
		}
		return kept
	}
	return v
}

// recording is a run on the scripted model.
type recording struct {
	outcome
	calls []call
}

// call is what the model was asked, and answered, as the log has it.
type call struct {
	said    []string
	Content []struct {
		Type, Text, ID, Name string
		Input                json.RawMessage
	}
	Stop    string `json:"stop_reason"`
	Refusal struct{ Detail string }
	Usage   kernel.UsageRow
	Kind    string  // of a failure
	Wait    float64 `json:"retry_after"`
}

// record runs an example on its own model.
func (w *workshop) record(t *testing.T, l loop) *recording {
	p := newProject(t)
	r := &recording{outcome: w.run(t, p, l, how{})}
	require.Zero(t, r.Code, r.Document)
	require.Equal(t, l.asks, strings.Contains(r.Document, `"deployed":true`), r.Document)
	p.sessions(t, func(s *kernel.Session, events []*kernel.Event) {
		for _, ev := range events {
			if ev.Kind == kernel.LLMResponse || ev.Kind == kernel.LLMCallFailed {
				r.add(t, s, ev)
			}
		}
	})
	return r
}

func (r *recording) add(t *testing.T, s *kernel.Session, ev *kernel.Event) {
	req, err := s.Request(context.Background(), ev.Beat)
	require.NoError(t, err)
	body, err := json.Marshal(map[string]any{"messages": req.Messages})
	require.NoError(t, err)
	c := call{said: wiretest.Request{Body: body}.Said()}
	require.NoError(t, json.Unmarshal(ev.Data, &c))
	r.calls = append(r.calls, c)
}

// wire answers c as a provider says it; says has the words for failures.
func (c call) wire(says map[string]wiretest.Reply) wiretest.Reply {
	if c.Kind != "" {
		out := says[c.Kind]
		if c.Wait > 0 {
			out.Header = map[string]string{"retry-after": fmt.Sprint(c.Wait)}
		}
		return out
	}
	out := wiretest.Reply{Refuse: c.Refusal.Detail, Usage: wiretest.Usage{Input: c.Usage.Input, Output: c.Usage.Output}}
	for _, b := range c.Content {
		if b.Type == "text" {
			out.Blocks = append(out.Blocks, wiretest.Say(b.Text))
		} else {
			out.Blocks = append(out.Blocks, wiretest.Use(b.ID, b.Name, string(b.Input)))
		}
	}
	return out
}
