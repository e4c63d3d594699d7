package kernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/store"
)

// stage plays one scenario and writes down what was done, what it came to and
// what it left in the log. The transcript is compared with testdata/<name>.txt;
// -update writes it anew.
type stage struct {
	t    *testing.T
	k    *kernel.Kernel
	st   *store.Mem
	out  strings.Builder
	seen map[string]int64 // session → events that were written down
}

var ctxb = context.Background()

func play(t *testing.T, name string, scene func(x *stage)) {
	t.Run(name, func(t *testing.T) {
		x := &stage{t: t, seen: map[string]int64{}}
		x.k, x.st = newMem(t)
		scene(x)
		requireSound(t, x.k)
		x.compare(filepath.Join("testdata", strings.ReplaceAll(name, " ", "_")+".txt"))
	})
}

func (x *stage) compare(file string) {
	got := longHash.ReplaceAllString(x.out.String(), "$1…")
	if *update {
		require.NoError(x.t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(x.t, err, "run with -update to write it")
	require.Equal(x.t, string(want), got)
}

var longHash = regexp.MustCompile(`([0-9a-f]{8})[0-9a-f]{56}`)

// do writes down what is done next.
func (x *stage) do(format string, args ...any) { fmt.Fprintf(&x.out, "> "+format+"\n", args...) }

func (x *stage) say(format string, args ...any) { fmt.Fprintf(&x.out, "  "+format+"\n", args...) }

// open begins a session and appends what a user says.
func (x *stage) open(o kernel.Open, says ...string) *kernel.Session {
	x.t.Helper()
	s, err := x.k.Open(ctxb, o)
	require.NoError(x.t, err)
	x.do("open %s", s.ID())
	for _, text := range says {
		_, err := s.Append(ctxb, userSays(text))
		require.NoError(x.t, err)
	}
	x.log(s)
	return s
}

func (x *stage) resume(id string, r kernel.Resume) *kernel.Session {
	x.t.Helper()
	s, err := x.k.Resume(ctxb, id, r)
	require.NoError(x.t, err)
	x.do("resume %s", id)
	x.log(s)
	return s
}

// beat beats once and writes down the Outcome and the log.
func (x *stage) beat(s *kernel.Session, d *kernel.Device) kernel.Outcome {
	return x.beatWith(ctxb, s, d, kernel.BeatOptions{})
}

func (x *stage) beatWith(ctx context.Context, s *kernel.Session, d *kernel.Device, o kernel.BeatOptions) kernel.Outcome {
	x.t.Helper()
	x.do("beat %s", s.ID())
	out := kernel.Beat(ctx, s, d, o)
	x.say("%s", outcomeText(out))
	x.log(s)
	return out
}

// err writes down what a call answered.
func (x *stage) err(what string, err error) {
	x.do("%s", what)
	x.say("%v", err)
}

// log writes down what is new in a session's log.
func (x *stage) log(s *kernel.Session) {
	x.t.Helper()
	evs, err := s.Events(ctxb, x.seen[s.ID()]+1)
	require.NoError(x.t, err)
	for _, ev := range evs {
		x.say("%s", eventText(ev))
		x.seen[s.ID()] = ev.Seq
	}
}

// folded writes down the messages that the default fold makes now.
func (x *stage) folded(s *kernel.Session) {
	req := kernel.FoldEvents(logOf(x.t, s), nil)
	require.Empty(x.t, unpaired(req))
	x.messages(req)
}

func (x *stage) messages(req *kernel.Request) {
	x.do("messages")
	for _, m := range req.Messages {
		x.say("%s", m)
	}
}

// request writes down a beat's request as it is rebuilt.
func (x *stage) request(s *kernel.Session, beat string) {
	x.t.Helper()
	req, err := s.Request(ctxb, beat)
	require.NoError(x.t, err)
	x.do("request %s", beat)
	x.say("%s", req.Canonical())
}

func eventText(ev *kernel.Event) string {
	b := fmt.Sprintf("%d %s", ev.Seq, ev.Kind)
	if ev.Beat != "" {
		b += " [" + ev.Beat + "]"
	}
	if string(ev.Meta) != "{}" {
		b += " meta " + string(ev.Meta)
	}
	return b + " " + string(ev.Data)
}

func outcomeText(o kernel.Outcome) string {
	b := o.Status
	if o.Reason != "" {
		b += " reason " + o.Reason
	}
	if o.Tag != "" {
		b += " tag " + o.Tag
	}
	if d := o.Detail; d != nil {
		b += " " + o.Stage + ": " + detailText(d)
	}
	if r := o.Reply; r != nil {
		b += replyText(r)
	}
	return b
}

func detailText(d *kernel.Detail) string {
	b := d.Message
	for _, kv := range []struct{ name, v string }{{"kind", d.Kind}, {"method", d.Method}, {"cause", d.Cause}} {
		if kv.v != "" {
			b += " | " + kv.name + " " + kv.v
		}
	}
	if d.Retryable {
		b += " | retryable"
	}
	if d.RetryAfter > 0 {
		b += fmt.Sprintf(" | retry after %gs", d.RetryAfter)
	}
	if d.Status > 0 {
		b += fmt.Sprintf(" | status %d", d.Status)
	}
	return b
}

func replyText(r *kernel.Reply) string {
	b := ""
	if r.StopReason != "" {
		b += " (" + r.StopReason + ")"
	}
	for _, run := range r.Tools {
		ok := "ok"
		if !run.OK {
			ok = "failed"
		}
		b += fmt.Sprintf(" %s=%s:%s", run.CallID, run.Name, ok)
	}
	return b
}

func (x *stage) rerun(s *kernel.Session, d *kernel.Device, call string) {
	x.do("rerun %s", call)
	x.say("%s", outcomeText(kernel.Rerun(ctxb, s, d, call)))
	x.log(s)
}

// rows writes down a view.
func rows[T any](x *stage, what string, list []T, err error) {
	x.t.Helper()
	require.NoError(x.t, err)
	x.do("%s", what)
	for _, row := range list {
		b, err := json.Marshal(row)
		require.NoError(x.t, err)
		x.say("%s", b)
	}
}

// die plays one beat of the calls a (look), b (put) and c (send) on s and
// loses everything that was recorded after seq keep: the driver's process was
// killed there.
func (x *stage) die(s *kernel.Session, keep int64) {
	x.t.Helper()
	d := device(x.t, kernel.Config{Tools: only("look", "put", "send"),
		LLM: replies(calls(use("a", "look", `{}`), use("b", "put", `{"n":1}`), use("c", "send", `{}`)))})
	require.Equal(x.t, kernel.StatusOK, kernel.Beat(ctxb, s, d, kernel.BeatOptions{}).Status)
	x.lose(s.ID(), keep)
	x.do("beat %s, and the process dies behind event %d", s.ID(), keep)
	for _, ev := range x.recorded(s.ID()) {
		x.say("%s", eventText(ev))
	}
}

// rerunDying reruns a call and loses its result.
func (x *stage) rerunDying(s *kernel.Session, d *kernel.Device, call string) {
	x.t.Helper()
	require.Equal(x.t, kernel.StatusOK, kernel.Rerun(ctxb, s, d, call).Status)
	n, err := s.Len(ctxb)
	require.NoError(x.t, err)
	x.lose(s.ID(), n-1)
	x.do("rerun %s, and the process dies before its result is recorded", call)
	for _, ev := range x.recorded(s.ID()) {
		x.say("%s", eventText(ev))
	}
}

// lose puts the kernel on a store that holds the first keep events of the
// session, as a crash leaves it.
func (x *stage) lose(id string, keep int64) {
	x.t.Helper()
	st, err := kernel.Prefix(ctxb, x.st, map[string]int64{id: keep})
	require.NoError(x.t, err)
	x.st = st
	x.k = kernel.New(x.st, kernel.Options{Now: ticking(), Mint: counting("j")})
}

// recorded answers what is new in the log of a session that has no driver.
func (x *stage) recorded(id string) []*kernel.Event {
	x.t.Helper()
	a, err := x.k.Attach(ctxb, id)
	require.NoError(x.t, err)
	evs, err := a.Events(ctxb, x.seen[id]+1)
	require.NoError(x.t, err)
	x.seen[id] += int64(len(evs))
	return evs
}
