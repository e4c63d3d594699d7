package luabind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// killGrace is how long a command that must end gets between TERM and KILL, and
	// then for KILL to work.
	killGrace = time.Second
	// leaveGrace is how long what a command leaves behind may go by itself. What is
	// started by setsid(1) is still in the session of its command when that ends.
	leaveGrace = 500 * time.Millisecond
	// drainGrace is how long the output is awaited after that: a process that left
	// the session may hold the pipe for ever.
	drainGrace = 500 * time.Millisecond
)

// command is a program to run to its end.
type command struct {
	argv     []string
	dir      string // absolute
	env      []string
	stdin    string
	timeout  time.Duration // 0: none
	maxBytes int           // of each output
	grace    time.Duration // between TERM and KILL

	kill func(pid int, s syscall.Signal) error // nil: the system's
}

// commandResult is how a command ended.
type commandResult struct {
	code           int // exit code; 128 + n when signal n ended it
	stdout, stderr string
	timedOut       bool
	left           string // what of it could not be ended, and why
}

// run runs the command in a session of its own, which has no terminal, and
// answers when the whole session is gone: what a command leaves running in the
// background ends with it. A process that made itself a session of its own is out
// of reach. When ctx ends, the session is ended and the error is that of ctx; the
// result is then what there is of it. A command that could not be ended has no
// code: that is an error.
func (c *command) run(ctx context.Context) (commandResult, error) {
	deadline, stop := ctx, context.CancelFunc(func() {})
	if c.timeout > 0 {
		deadline, stop = context.WithTimeout(ctx, c.timeout)
	}
	defer stop()
	p, err := c.start()
	if err != nil {
		return commandResult{}, err
	}
	r := p.finish(deadline, c.grace)
	if ctx.Err() == nil && !p.hasExited() {
		return r, c.stuck(r)
	}
	return r, ctx.Err()
}

// stuck is the error of a command that could not be ended.
func (c *command) stuck(r commandResult) error {
	text := fmt.Sprintf("%q did not end within %s: %s", c.argv[0], c.timeout, r.left)
	for _, out := range []struct{ name, text string }{{"stdout", r.stdout}, {"stderr", r.stderr}} {
		if said := endOf(out.text, 400); said != "" {
			text += fmt.Sprintf("; its %s ends with: %q", out.name, said)
		}
	}
	return &stdError{kind: timedOut, text: text}
}

// endOf answers the end of text, n bytes at most, cut between characters.
func endOf(text string, n int) string {
	text = strings.TrimSpace(text)
	if len(text) > n {
		text = string(textFrom([]byte(text[len(text)-n:])))
	}
	return text
}

// process is a running command with our ends of its pipes.
type process struct {
	cmd            *exec.Cmd
	kill           func(pid int, s syscall.Signal) error
	exited         chan struct{} // closed once the leader is reaped
	drained        chan struct{} // closed once the copies have ended
	ours           []*os.File
	copies         sync.WaitGroup
	stdout, stderr headTail
}

func (c *command) start() (*process, error) {
	path, err := c.program()
	if err != nil {
		return nil, err
	}
	p := &process{drained: make(chan struct{}), stdout: headTail{limit: c.maxBytes}, stderr: headTail{limit: c.maxBytes}}
	p.prepare(c, path)
	theirs, err := p.openPipes(c.stdin)
	if err == nil {
		err = p.begin()
	}
	for _, f := range theirs {
		f.Close()
	}
	if err != nil {
		p.closePipes()
		return nil, startFault(c.argv[0], err)
	}
	go p.await()
	go func() {
		p.copies.Wait()
		close(p.drained)
	}()
	return p, nil
}

// prepare says what begin starts.
func (p *process) prepare(c *command, path string) {
	p.exited, p.kill = make(chan struct{}), c.kill
	if p.kill == nil {
		p.kill = syscall.Kill
	}
	p.cmd = &exec.Cmd{Path: path, Args: c.argv, Dir: c.dir}
	p.cmd.Env = append(slices.Clip(c.env), "PWD="+c.dir)
}

// program answers the path of the command: a name with a slash counts from its
// working folder, any other is looked up in PATH.
func (c *command) program() (string, error) {
	name := c.argv[0]
	if info, err := os.Stat(c.dir); err != nil || !info.IsDir() {
		return "", &stdError{kind: notFound, text: fmt.Sprintf("cwd %q: no such folder", c.dir), cause: err}
	}
	if strings.Contains(name, "/") && !filepath.IsAbs(name) {
		name = filepath.Join(c.dir, name)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", startFault(c.argv[0], err)
	}
	return path, nil
}

func startFault(name string, err error) error {
	kind, text := systemText(err)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		kind, text = notFound, "command not found in PATH"
	case errors.Is(err, fs.ErrPermission):
		text = "not executable: permission denied"
	case errors.Is(err, syscall.E2BIG):
		text = "arguments and environment are longer than the system takes, stdin has no such limit"
	case errors.Is(err, syscall.ENOEXEC):
		text = "not executable: neither a program nor a script with #!"
	}
	return &stdError{kind: kind, text: fmt.Sprintf("%q: %s", name, text), cause: err}
}

// openPipes connects the command and answers the ends that are for it.
func (p *process) openPipes(stdin string) (theirs []*os.File, err error) {
	if stdin != "" {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		p.cmd.Stdin, theirs = r, append(theirs, r)
		p.ours = append(p.ours, w)
		p.copies.Go(func() {
			io.WriteString(w, stdin) // a command need not read all of it
			w.Close()
		})
	}
	for _, out := range []struct {
		into *headTail
		end  *io.Writer
	}{{&p.stdout, &p.cmd.Stdout}, {&p.stderr, &p.cmd.Stderr}} {
		r, w, err := os.Pipe()
		if err != nil {
			return theirs, err
		}
		*out.end, theirs = w, append(theirs, w)
		p.ours = append(p.ours, r)
		p.copies.Go(func() { io.Copy(out.into, r) })
	}
	return theirs, nil
}

// finish waits for the command, ends it when ctx ends first, and leaves neither
// processes nor goroutines behind, but for what cannot be ended.
func (p *process) finish(ctx context.Context, grace time.Duration) commandResult {
	inTime := true
	select {
	case <-p.exited:
	case <-ctx.Done():
		inTime = false
	}
	left := p.endSession(ctx, leaveGrace, grace)
	ended(p.drained, drainGrace)
	p.closePipes()
	r := commandResult{stdout: p.stdout.String(), stderr: p.stderr.String(), timedOut: !inTime, left: left}
	if p.hasExited() {
		r.code = exitCode(p.cmd.ProcessState)
	}
	return r
}

// closePipes ends the copies, also those whose other end someone still holds.
func (p *process) closePipes() {
	for _, f := range p.ours {
		f.Close()
	}
	p.copies.Wait()
}

// ended waits for done, at most limit, and says whether it came.
func ended(done <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
