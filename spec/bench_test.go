package spec

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/pebblestore"
	"github.com/knl-run/knl/kernel/store"
	"github.com/knl-run/knl/luabind"
	"github.com/knl-run/knl/port"
)

// These benchmarks hold the whole way of a beat, from Lua to a synced Pebble
// commit and back, against the disk under it. P is the median of one synced
// commit of 2 KB to the same store, taken in turn with the beats. The disk's
// speed moves by a factor within minutes, so only the ratios mean anything.
// `make bench` prints them.

// benchLoop answers a function that makes n beats of one session and calls each
// after every one: about 6 KB in 5 events, for the model's text, one call and its
// result are that large.
const benchLoop = `
local knl, ports = require("knl"), require("ports")
local opts = ...
local function reply(i) return { text = opts.fresh(), calls = { { "look", { path = "src/file" .. i .. ".go" } } } } end
local replies = {}
for i = 1, opts.session and 0 or opts.beats do replies[i] = reply(i) end
local port = ports.script(opts.session and function() return reply(0) end or replies) -- a resume is not to pay for a list
local s = opts.session and knl.resume{ session = opts.session } or knl.open{ budget = { amount = 1e9 } }
local device = knl.device{
  llm = port:open(),
  tools = { look = { effects = opts.effects, handler = opts.fresh } },
  fold = opts.last and function(_, device)
    local records, seed = s:beats{ last = opts.last, from_seed = true }
    return knl.fold({ seed, records }, device)
  end or nil,
}
if s:len() == 2 then s:append{ kind = "msg_user", data = { content = "look at the files" } } end
return function(n, each)
  for _ = 1, n do
    local o = knl.beat(s, device)
    if o.status ~= "ok" then error(o.status .. ": " .. tostring(o.detail or o.reason)) end
    each()
  end
  return s:id()
end
`

// bench is a store with VMs on it.
type bench struct {
	tb     testing.TB
	dir    string
	st     *pebblestore.Store
	probed int64
}

func newBench(tb testing.TB) *bench {
	b := &bench{tb: tb, dir: filepath.Join(tb.TempDir(), "store")}
	b.open()
	return b
}

func (b *bench) open() {
	st, err := pebblestore.Open(b.dir, pebblestore.Options{})
	require.NoError(b.tb, err)
	b.st = st
}

func (b *bench) close() { require.NoError(b.tb, b.st.Close()) }

// probe is one synced commit of that many bytes, timed.
func (b *bench) probe(size int) time.Duration {
	body := []byte(randomText(size))
	at := time.Now()
	c, err := b.st.Apply(context.Background(), &store.Batch{Appends: []store.Append{{
		Stream: "probe", Expect: b.probed, Records: []store.Record{{Body: body}}, State: []byte("{}"),
	}}}, store.Now)
	require.NoError(b.tb, err)
	require.NoError(b.tb, c.Wait(context.Background()))
	b.probed++
	return time.Since(at)
}

type loopOptions struct {
	effects string
	session string
	beats   int // that the scripted model has replies for
	last    int // beats a fold looks at; 0: all
	text    int // bytes of the model's text and of a result
}

// loop starts benchLoop in a VM of its own and answers its function.
func (b *bench) loop(o loopOptions) (beats func(n int, each func()) string, done func()) {
	host := &luabind.Kernel{Open: func(string) (store.Store, error) { return b.st, nil }}
	vm, err := luabind.New(luabind.Config{
		Modules: append(luabind.KnlModules(host), luabind.PortsModule(&luabind.Ports{Registry: port.Registry{}})),
	})
	require.NoError(b.tb, err)
	l := vm.Root()
	opts := l.NewTable()
	opts.RawSetString("effects", lua.LString(o.effects))
	if o.session != "" {
		opts.RawSetString("session", lua.LString(o.session))
	}
	opts.RawSetString("beats", lua.LNumber(o.beats))
	if o.last > 0 {
		opts.RawSetString("last", lua.LNumber(o.last))
	}
	pool, n := make([]string, 256), 0
	for i := range pool {
		pool[i] = randomText(o.text)
	}
	opts.RawSetString("fresh", l.NewFunction(func(l *lua.LState) int { // no two payloads are alike
		n++
		l.Push(lua.LString(fmt.Sprintf("%d %s", n, pool[n%len(pool)])))
		return 1
	}))
	ctx := context.Background()
	chunk, err := l.LoadString(benchLoop)
	require.NoError(b.tb, err)
	out, err := vm.Run(ctx, chunk, opts)
	require.NoError(b.tb, err)
	return func(n int, each func()) string {
		id, err := vm.Run(ctx, out[0], lua.LNumber(n), l.NewFunction(func(*lua.LState) int {
			each()
			return 0
		}))
		require.NoError(b.tb, err)
		return id[0].String()
	}, func() { require.NoError(b.tb, vm.Close()) }
}

// nothing is done after a beat.
func nothing() {}

func randomText(n int) string {
	raw := make([]byte, n*3/4+1)
	_, _ = rand.Read(raw)
	return base64.StdEncoding.EncodeToString(raw)[:n]
}

func median(d []time.Duration) time.Duration {
	d = slices.Clone(d)
	slices.Sort(d)
	return d[len(d)/2]
}

func micros(d time.Duration) float64 { return float64(d) / 1e3 }

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkBeat: a beat with a read tool costs at most 1.3 P + 100 µs, one with
// an effectful tool at most 2.2 P + 100 µs; beside the flush at most 100 µs of
// CPU. over-P is (beat - 100 µs) / P. The flush is what the bytes of a beat cost
// the process when nothing but synced commits are made of them: one for a read
// tool, two for an effectful one.
func BenchmarkBeat(b *testing.B) {
	for effects, limit := range map[string]float64{"read": 1.3, "write": 2.2} {
		b.Run(effects, func(b *testing.B) {
			syncs := int(limit)
			h := newBench(b)
			defer h.close()
			const warm = 500 // until the heap and the memtable have their size
			n := max(b.N, 1500)
			loop, done := h.loop(loopOptions{effects: effects, beats: warm + 2*n, last: 8, text: 1900})
			defer done()
			loop(warm, nothing)
			p, m := h.turns(n, loop)
			b.ReportMetric(micros(p), "P-µs")
			b.ReportMetric(micros(m), "beat-µs")
			b.ReportMetric(float64(m-100*time.Microsecond)/float64(p), "over-P")
			b.ReportMetric(limit, "limit-P")
			beat, flush := cpuOf(n, func(k int) { loop(k, nothing) }, func(k int) {
				for range k * syncs {
					h.probe(beatBytes / syncs)
				}
			})
			b.ReportMetric(micros(beat), "cpu-µs/beat")
			b.ReportMetric(micros(beat-flush), "cpu-µs-beside-flush")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// beatBytes is what a beat of benchLoop writes.
const beatBytes = 6 << 10

// turns makes n commits of 2 KB and n beats in turn and answers both medians.
func (b *bench) turns(n int, loop func(int, func()) string) (p, beat time.Duration) {
	var probes, beats []time.Duration
	at := time.Now()
	loop(n, func() {
		beats = append(beats, time.Since(at))
		probes = append(probes, b.probe(2<<10))
		at = time.Now()
	})
	return median(probes), median(beats)
}

// cpuOf answers the CPU time of the process for one thing that each function
// does k of. They take turns, for the speed of the machine moves, and the
// medians count.
func cpuOf(n int, fns ...func(k int)) (first, second time.Duration) {
	const k = 50
	took := make([][]time.Duration, len(fns))
	for range n / k {
		for i, fn := range fns {
			from := cpu()
			fn(k)
			took[i] = append(took[i], (cpu()-from)/k)
		}
	}
	return median(took[0]), median(took[1])
}

// BenchmarkFlat: the 10,000th beat costs at most 1.3 × the 10th, and a session of
// 10,000 beats is resumed and beaten once in under a second. P at both ends says what
// the disk did meanwhile.
func BenchmarkFlat(b *testing.B) {
	h := newBench(b)
	const long, window = 10_000, 400
	options := loopOptions{effects: "read", beats: long + 1, last: 8, text: 1900}
	loop, done := h.loop(options)
	var early, late, earlyP, lateP []time.Duration
	i, at := 0, time.Now()
	id := loop(long, func() {
		switch d := time.Since(at); {
		case i >= 9 && i < 9+window:
			early, earlyP = append(early, d), append(earlyP, h.probe(2<<10))
		case i >= long-window:
			late, lateP = append(late, d), append(lateP, h.probe(2<<10))
		}
		i, at = i+1, time.Now()
	})
	done()
	h.close()
	at = time.Now()
	h.open()
	opened := time.Since(at)
	options.session = id
	loop, done = h.loop(options)
	loop(1, nothing)
	resumed := time.Since(at)
	done()
	h.close()
	b.ReportMetric(micros(median(early)), "10th-µs")
	b.ReportMetric(micros(median(late)), "10000th-µs")
	b.ReportMetric(micros(median(earlyP)), "P-at-10th-µs")
	b.ReportMetric(micros(median(lateP)), "P-at-10000th-µs")
	b.ReportMetric(float64(median(late))/float64(median(early)), "ratio(≤1.3)")
	b.ReportMetric(opened.Seconds(), "open-s")
	b.ReportMetric(resumed.Seconds(), "resume-s(<1)")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkSessions: 64 sessions in one process make at least 6 × the beats a
// second of one, driven by an embedding program and by scripts, each in a VM of
// its own. What bounds the second is the CPU.
func BenchmarkSessions(b *testing.B) {
	for name, start := range map[string]starter{
		"go": (*bench).goLoop,
		"lua": func(h *bench, beats int) (func(int, func()) string, func()) {
			return h.loop(loopOptions{effects: "read", beats: beats, last: 8, text: 1900})
		},
	} {
		b.Run(name, func(b *testing.B) {
			h := newBench(b)
			defer h.close()
			var ones, manys []float64
			for range 5 {
				ones, manys = append(ones, h.rate(start, 1, 400)), append(manys, h.rate(start, 64, 60))
			}
			slices.Sort(ones)
			slices.Sort(manys)
			b.ReportMetric(ones[2], "beats/s-1")
			b.ReportMetric(manys[2], "beats/s-64")
			b.ReportMetric(manys[2]/ones[2], "ratio(≥6)")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// starter begins a session that can make that many beats.
type starter func(b *bench, beats int) (loop func(n int, each func()) string, done func())

// rate answers the beats a second of that many sessions.
func (b *bench) rate(start starter, sessions, each int) float64 {
	loops := make([]func(int, func()) string, sessions)
	for i := range loops {
		loop, done := start(b, each+1)
		defer done()
		loop(1, nothing)
		loops[i] = loop
	}
	var wg sync.WaitGroup
	at := time.Now()
	for _, loop := range loops {
		wg.Go(func() { loop(each, nothing) })
	}
	wg.Wait()
	return float64(sessions*each) / time.Since(at).Seconds()
}

// goLoop is the loop of benchLoop in Go.
func (b *bench) goLoop(int) (loop func(n int, each func()) string, done func()) {
	ctx, n := context.Background(), 0
	k := kernel.New(b.st, kernel.Options{})
	s, err := k.Open(ctx, kernel.Open{Grant: &kernel.Grant{Amount: 1e9}})
	require.NoError(b.tb, err)
	text, result := randomText(1900), randomText(1900)
	d, err := kernel.NewDevice(kernel.Config{
		LLM: kernel.LLMFunc(func(context.Context, *kernel.Request, kernel.CallOptions) (*kernel.Answer, error) {
			n++
			return &kernel.Answer{StopReason: "tool_use", Content: fmt.Appendf(nil,
				`[{"text":"%d %s","type":"text"},{"id":"call_%d","input":{"path":"src/file.go"},"name":"look","type":"tool_use"}]`, n, text, n)}, nil
		}),
		Tools: map[string]kernel.Tool{"look": {Effects: kernel.Read, Handler: func(context.Context, json.RawMessage, kernel.ToolContext) (json.RawMessage, error) {
			return fmt.Appendf(nil, `"%d %s"`, n, result), nil
		}}},
		Fold: func(ctx context.Context, log kernel.Log, d *kernel.Device) (*kernel.Request, error) {
			beats, events, err := log.Beats(ctx, 8, true)
			for _, r := range beats {
				events = append(events, r.Events...)
			}
			return kernel.FoldEvents(events, d), err
		},
	})
	require.NoError(b.tb, err)
	_, err = s.Append(ctx, kernel.Draft{Kind: kernel.MsgUser, Data: json.RawMessage(`{"content":"look at the files"}`)})
	require.NoError(b.tb, err)
	return func(n int, each func()) string {
		for range n {
			out := kernel.Beat(ctx, s, d, kernel.BeatOptions{})
			require.Equal(b.tb, kernel.StatusOK, out.Status, "%v", out.Detail)
			each()
		}
		return s.ID()
	}, nothing
}

// BenchmarkDisk: a session of 200 beats takes at most 1.5 × the bytes of its
// unique payloads after compaction, and is linear in its beats. Payloads are
// random text, which no compression saves.
func BenchmarkDisk(b *testing.B) {
	for _, size := range []int{400, 1900, 20_000} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			bytesOf := func(beats int) float64 {
				h := newBench(b)
				loop, done := h.loop(loopOptions{effects: "read", beats: beats, text: size})
				loop(beats, nothing)
				done()
				require.NoError(b, h.st.Compact(context.Background()))
				h.close()
				return folderSize(b, h.dir)
			}
			empty, half, whole := bytesOf(1), bytesOf(100), bytesOf(200)
			payload := float64(200 * 2 * size)
			b.ReportMetric((whole-empty)/payload, "disk/payload(≤1.5)")
			b.ReportMetric((whole-half)/(half-empty), "second-half/first")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// folderSize sums the tables of a store: what its log takes beside the
// write-ahead file, which is of a fixed size.
func folderSize(tb testing.TB, dir string) (total float64) {
	require.NoError(tb, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := os.Stat(path)
		if err == nil && filepath.Ext(path) == ".sst" {
			total += float64(info.Size())
		}
		return err
	}))
	return total
}
