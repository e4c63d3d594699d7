package sockstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/knl-run/knl/kernel/pebblestore"
	"github.com/knl-run/knl/kernel/store"
	"github.com/knl-run/knl/kernel/store/storetest"
)

// holdEnv makes the test binary open the store in the folder it names, append to
// it, say so, and hold it until its standard input ends.
const holdEnv = "SOCKSTORE_HOLD"

var bg = context.Background()

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdEnv); dir != "" {
		st, held, err := Open(bg, dir, pebblestore.Options{})
		if err == nil {
			_, err = st.Apply(bg, batch("holder", 0, "x"), store.Now)
		}
		fmt.Println(held, err)
		_, _ = os.Stdin.Read(make([]byte, 1))
		return
	}
	goleak.VerifyTestMain(m)
}

func batch(stream string, expect int64, texts ...string) *store.Batch {
	a := store.Append{Stream: stream, Expect: expect}
	for _, text := range texts {
		a.Records = append(a.Records, store.Record{Body: []byte(text)})
	}
	return &store.Batch{Appends: []store.Append{a}}
}

func put(t *testing.T, st store.Store, b *store.Batch) {
	t.Helper()
	c, err := st.Apply(bg, b, store.Now)
	require.NoError(t, err)
	require.NoError(t, c.Wait(bg))
}

func seq(t *testing.T, st store.Store, stream string) int64 {
	t.Helper()
	h, err := st.Head(bg, stream)
	require.NoError(t, err)
	return h.Seq
}

// served is a client whose Close takes its server and store along.
type served struct {
	store.Store
	server *Server
	below  store.Store
}

func (s *served) Close() error {
	err := s.Store.Close()
	_ = s.server.Close()
	_ = s.below.Close()
	return err
}

func serve(t *testing.T, below store.Store) *served {
	path := filepath.Join(t.TempDir(), SocketName)
	server, err := Serve(bg, below, path)
	require.NoError(t, err)
	st, err := Dial(path)
	require.NoError(t, err)
	return &served{st, server, below}
}

func TestAMemoryStoreOverASocket(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return serve(t, store.NewMem()) })
}

func TestAPebbleStoreOverASocket(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		st, err := pebblestore.Open("db", pebblestore.Options{FS: vfs.NewMem()})
		require.NoError(t, err)
		return serve(t, st)
	})
}

func TestClientsSeeEachOther(t *testing.T) {
	one := serve(t, store.NewMem())
	defer one.Close()
	two, err := Dial(one.server.ln.Addr().String())
	require.NoError(t, err)
	defer two.Close()
	tokens := two.Watch(bg, "s")
	put(t, one, batch("s", 0, "x"))
	<-tokens
	require.Equal(t, int64(1), seq(t, two, "s"))
	_, err = two.Apply(bg, batch("s", 0, "late"), store.Now)
	require.ErrorIs(t, err, store.ErrConflict)
	require.EqualError(t, err, `stream "s": head is 1, want 0: stream moved`)
}

func TestTheSocketIsItsOwnersAlone(t *testing.T) {
	one := serve(t, store.NewMem())
	path := one.server.ln.Addr().String()
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NoError(t, one.Close())
	require.NoFileExists(t, path)
}

func TestEveryOpenCallLearnsThatTheHolderIsGone(t *testing.T) {
	one := serve(t, store.NewMem())
	defer one.Close()
	tokens := one.Watch(bg, "s")
	commit, err := one.Apply(bg, batch("s", 0, "x"), store.Lazy)
	require.NoError(t, err)
	require.NoError(t, one.server.Close())
	for range tokens {
	}
	want := fmt.Sprintf("store %q: process %d, which held it, is gone; open the store again",
		filepath.Dir(one.server.ln.Addr().String()), os.Getpid())
	require.EqualError(t, commit.Wait(bg), want)
	_, err = one.Head(bg, "s")
	require.EqualError(t, err, want)
	_, err = one.Apply(bg, batch("s", 1, "y"), store.Now)
	var gone *Gone
	require.ErrorAs(t, err, &gone)
	require.EqualError(t, one.Store.Close(), want, "what was applied is not known to be durable")
}

// raw is a connection that has said hello and then does as the test says.
func raw(t *testing.T, s *Server) net.Conn {
	c, err := net.Dial("unix", s.ln.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_, err = greet(c, helloTime)
	require.NoError(t, err)
	return c
}

func TestAClientThatDiesInAFrameChangesNothing(t *testing.T) {
	one := serve(t, store.NewMem())
	defer one.Close()
	whole := frame{1, kApply, putBatch(putInt(newBody(), int64(store.Now)), batch("s", 0, "x"))}.encode()
	for n := range whole {
		c := raw(t, one.server)
		_, err := c.Write(whole[:n])
		require.NoError(t, err)
		require.NoError(t, c.Close())
	}
	require.Zero(t, seq(t, one, "s"))
	c := raw(t, one.server)
	_, err := c.Write(whole)
	require.NoError(t, err)
	f, err := readFrame(c)
	require.NoError(t, err)
	require.Equal(t, kAnswer, f.kind)
	require.Equal(t, int64(1), seq(t, one, "s"))
}

func TestFramesThatDoNotReadAreAnswered(t *testing.T) {
	one := serve(t, store.NewMem())
	defer one.Close()
	put(t, one, batch("s", 0, "x"))
	for k := kApply; k < kCancel; k++ {
		if k == kWait {
			continue // has no payload
		}
		c := raw(t, one.server)
		_, err := c.Write(frame{7, k, append(newBody(), 0xff)}.encode())
		require.NoError(t, err)
		f, err := readFrame(c)
		require.NoError(t, err)
		require.Equal(t, kFault, f.kind)
		require.EqualError(t, (&reader{b: f.body}).fault(), errPayload.Error())
		_ = c.Close()
	}
	for _, bad := range [][]byte{
		{0, 0, 0, 1, 0}, {0xff, 0xff, 0xff, 0xff}, frame{1, kAnswer, nil}.encode(), frame{1, 0, nil}.encode(),
	} {
		c := raw(t, one.server)
		_, err := c.Write(bad)
		require.NoError(t, err)
		_, err = readFrame(c)
		require.Error(t, err, "the server hangs up")
	}
	require.Equal(t, int64(1), seq(t, one, "s"))
}

// TestAClientThatDoesNotReadBlocksItselfOnly asks for far more than a socket
// holds and reads nothing.
func TestAClientThatDoesNotReadBlocksItselfOnly(t *testing.T) {
	one := serve(t, store.NewMem())
	put(t, one, batch("s", 0, strings.Repeat("x", 1<<20)))
	deaf := raw(t, one.server)
	require.NoError(t, deaf.SetWriteDeadline(time.Now().Add(time.Second)))
	ask := putInt(putInt(putText(newBody(), "s"), 1), 0)
	asked := 0
	for ; asked < 100_000; asked++ {
		if _, err := deaf.Write((frame{uint64(asked), kPage, append([]byte(nil), ask...)}).encode()); err != nil {
			break
		}
	}
	require.Less(t, asked, 100_000, "it is not read from for ever")
	for i := range int64(50) {
		put(t, one, batch("other", i, "y"))
	}
	require.Equal(t, int64(50), seq(t, one, "other"))
	require.NoError(t, one.Close(), "and it holds up no end")
}

func TestAStoppedHolderLetsItsClientsGiveUp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	holder := startHolder(t, dir)
	st, held, err := Open(bg, dir, pebblestore.Options{})
	require.NoError(t, err)
	require.False(t, held)
	defer st.Close()
	stopProcess(t, holder)
	var state syscall.WaitStatus
	_, err = syscall.Wait4(holder.Process.Pid, &state, syscall.WUNTRACED, nil)
	require.NoError(t, err)
	require.True(t, state.Stopped())
	soon, stop := context.WithTimeout(bg, 50*time.Millisecond)
	defer stop()
	_, err = st.Head(soon, "holder")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, open := <-st.Watch(soon, "holder")
	require.False(t, open)
	helloTime = 50 * time.Millisecond
	defer func() { helloTime = 3 * time.Second }()
	soon, stop = context.WithTimeout(bg, 200*time.Millisecond)
	defer stop()
	_, _, err = Open(soon, dir, pebblestore.Options{})
	require.ErrorIs(t, err, store.ErrBusy)
	require.ErrorContains(t, err, fmt.Sprintf("held by process %d", holder.Process.Pid))
	require.NoError(t, holder.Process.Signal(syscall.SIGCONT))
	require.Equal(t, int64(1), seq(t, st, "holder"))
}

// startHolder runs a process that holds dir and serves it.
func startHolder(t *testing.T, dir string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdEnv+"="+dir)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = in.Close()
	})
	line := make([]byte, 64)
	n, err := out.Read(line)
	require.NoError(t, err)
	require.Equal(t, "true <nil>\n", string(line[:n]))
	return cmd
}

func TestAKilledHolderIsSucceeded(t *testing.T) {
	for name, deep := range map[string]string{"short": "", "path longer than an address": strings.Repeat("deep/", 25)} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), deep, "db")
			holder := startHolder(t, dir)
			client, held, err := reach(bg, dir, pebblestore.Options{})
			require.NoError(t, err)
			require.False(t, held)
			put(t, client, batch("client", 0, "a", "b"))
			require.NoError(t, holder.Process.Kill())
			_, err = holder.Process.Wait()
			require.NoError(t, err)
			_, err = client.Head(bg, "client")
			require.EqualError(t, err, fmt.Sprintf("store %q: process %d, which held it, is gone; open the store again", dir, holder.Process.Pid))
			_ = client.Close()
			st, held, err := Open(bg, dir, pebblestore.Options{})
			require.NoError(t, err)
			require.True(t, held)
			require.Equal(t, int64(2), seq(t, st, "client"))
			again, held, err := Open(bg, dir, pebblestore.Options{})
			require.NoError(t, err)
			require.False(t, held)
			require.Equal(t, int64(1), seq(t, again, "holder"))
			require.NoError(t, again.Close())
			require.NoError(t, st.Close())
			require.NoFileExists(t, filepath.Join(dir, SocketName))
			left, err := filepath.Glob(filepath.Join(os.TempDir(), tempPattern+"*"))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

func TestOpenPassesOnWhatPebbleSays(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), nil, 0o600))
	_, held, err := Open(bg, dir, pebblestore.Options{})
	require.ErrorContains(t, err, "the folder holds other files (main.go)")
	require.False(t, held)
}

func TestAnotherVersionIsRefusedByName(t *testing.T) {
	path := filepath.Join(t.TempDir(), SocketName)
	ln, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer ln.Close()
	go func() {
		c, err := ln.Accept()
		if err == nil {
			hello := binary.BigEndian.AppendUint16([]byte(magic), 9)
			_, _ = c.Write(binary.BigEndian.AppendUint32(hello, 4711))
			_, _ = c.Read(make([]byte, 64))
			_ = c.Close()
		}
	}()
	_, err = Dial(path)
	require.EqualError(t, err, fmt.Sprintf("store %q: hello to its holder: process 4711 speaks version 9 of the socket, this knl speaks 1; use the same knl, or wait for it to end", filepath.Dir(path)))
	_, err = Dial(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestErrorsKeepTheirIdentity(t *testing.T) {
	for _, want := range append(codes[1:], fmt.Errorf("of no known kind")) {
		wrapped := fmt.Errorf("stream %q: %w", "s", want)
		body := putFault(nil, wrapped)
		got := (&reader{b: body}).fault()
		require.EqualError(t, got, wrapped.Error())
		for _, known := range codes[1:] {
			require.Equal(t, known == want, errors.Is(got, known), "%v is %v", got, known)
		}
	}
}

// waits is a store whose commits count their waits.
type waits struct {
	*store.Mem
	counts []*atomic.Int64
}

type countedCommit struct{ n *atomic.Int64 }

func (c countedCommit) Wait(context.Context) error { c.n.Add(1); return nil }

func (w *waits) Apply(ctx context.Context, b *store.Batch, f store.Flush) (store.Commit, error) {
	if _, err := w.Mem.Apply(ctx, b, f); err != nil {
		return nil, err
	}
	n := new(atomic.Int64)
	w.counts = append(w.counts, n)
	return countedCommit{n}, nil
}

func TestWaitingForALazyWaitsForTheLatest(t *testing.T) {
	below := &waits{Mem: store.NewMem()}
	one := serve(t, below)
	defer one.Close()
	for i := range int64(3) {
		c, err := one.Apply(bg, batch("s", i, "x"), store.Lazy)
		require.NoError(t, err)
		require.Zero(t, below.counts[i].Load(), "the holder leaves a lazy alone")
		require.NoError(t, c.Wait(bg))
		require.NoError(t, c.Wait(bg))
		require.Equal(t, int64(1), below.counts[i].Load())
	}
}
