package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

// binary is the built knl that the scripts run.
var binary string

func TestMain(m *testing.M) {
	childMain()
	dir, err := os.MkdirTemp("", "knl-test-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "knl")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("building knl: %s\n%s", err, out))
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// TestScripts runs testdata/*.txtar against the built binary. Beside the
// commands of testscript they use
//
//	exits N prog args…   runs prog and wants that exit code
//	grab NAME regexp     sets NAME to what the regexp's group finds in stdout
//	await file           waits for a file to be there
//	plain                writes stdout, ids and times left out, to the file plain
//	damage file at n     flips every bit of n bytes of a file
//
// UPDATE=1 in the environment writes the files that cmp wants anew.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE") != "",
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", filepath.Dir(binary)+string(os.PathListSeparator)+e.Getenv("PATH"))
			e.Setenv("TZ", "UTC")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":  exits,
			"grab":   grab,
			"await":  await,
			"plain":  plain,
			"damage": damage,
		},
	})
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N prog args…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%s: %v", args[1], err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("%s: exit %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

func grab(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: grab NAME regexp")
	}
	m := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(m) != 2 {
		ts.Fatalf("stdout has no %s", args[1])
	}
	ts.Setenv(args[0], m[1])
}

func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: await file")
	}
	for range 3000 {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("%s is not there", args[0])
}

// moving are the parts of an output that differ from run to run.
var moving = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\b[0-9A-HJKMNP-TV-Z]{26}\b`), "ID"},
	{regexp.MustCompile(`epoch_ms":\d+`), `epoch_ms":0`},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`), "TIME"},
	{regexp.MustCompile(`\b[\d.]+(ms|µs|s)\b`), "TOOK"},
	{regexp.MustCompile(`"ms":\d+`), `"ms":0`},
	{regexp.MustCompile(`\bduration_ms: \d+`), `duration_ms: 0`},
	{regexp.MustCompile(` time="[\d.]+"`), ` time="0"`},
	{regexp.MustCompile(`[0-9a-f]{64}`), "HASH"},
}

func plain(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: plain")
	}
	got := ts.ReadFile("stdout")
	for _, m := range moving {
		got = m.pattern.ReplaceAllString(got, m.instead)
	}
	ts.Check(os.WriteFile(ts.MkAbs("plain"), []byte(got), 0o600))
}

func damage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: damage file at n")
	}
	files, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	at, err := strconv.Atoi(args[1])
	ts.Check(err)
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	if len(files) == 0 {
		ts.Fatalf("no file %s", args[0])
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		ts.Check(err)
		for i := at; i < min(at+n, len(text)); i++ {
			text[i] ^= 0xff
		}
		ts.Check(os.WriteFile(name, text, 0o600))
	}
}

func TestSecondSignalExitsAtOnce(t *testing.T) {
	code := make(chan int, 1)
	ctx, stop := onSignals(context.Background(), func(c int) { code <- c })
	defer stop()
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGTERM))
	<-ctx.Done()
	require.True(t, interrupted(ctx))
	require.Empty(t, code)
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGINT))
	require.Equal(t, exitInterrupted, <-code)
}

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"plain é 日本":         "plain é 日本",
		"two\nlines\tand":    `two\nlines\tand`,
		"\x1b[31mred\x1b[0m": `\x1b[31mred\x1b[0m`,
		"a\u202eb":           `a\u202eb`,
		"bad \xff byte":      "bad \uFFFD byte",
		"\u009b1A":           `\u009b1A`,
	} {
		require.Equal(t, want, visible(text))
	}
	require.Equal(t, "two\nlines\t\\x1b[2J", shown("two\nlines\t\x1b[2J"))
}

func TestCut(t *testing.T) {
	require.Equal(t, "short", cut("short", 5))
	require.Equal(t, "ééé… (+4 bytes)", cut("ééééé", 3))
	require.Equal(t, `a\n… (+1 bytes)`, cut("a\nb", 3))
}

func TestByteSize(t *testing.T) {
	for text, want := range map[string]byteSize{"1": 1, "512M": 512 << 20, "2g": 2 << 30, "3K": 3 << 10} {
		var b byteSize
		require.NoError(t, b.Set(text))
		require.Equal(t, want, b)
	}
	for _, text := range []string{"", "M", "-1", "0", "1.5G", "1MM", "9223372036854775807K", "1T"} {
		var b byteSize
		require.Error(t, b.Set(text), text)
	}
}
