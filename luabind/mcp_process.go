package luabind

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
)

// mcpServer is a server that runs as our child: its stdin and stdout carry
// messages, its stderr is kept for what an error says. It leads a session of
// its own, so a Ctrl-C at the terminal does not reach it, and all that is in it
// ends with the leader. When this process is killed the [watcher] ends it.
type mcpServer struct {
	process
	stdin    *os.File
	frames   *mcpFrames
	clearing sync.Once
	left     string        // what could not be ended, and why; known once it is cleared
	cleared  chan struct{} // closed once the session has ended and the pipes are closed
}

// serve starts the command as a server.
func (c *command) serve() (*mcpServer, error) {
	path, err := c.program()
	if err != nil {
		return nil, err
	}
	s := &mcpServer{cleared: make(chan struct{})}
	s.drained, s.stderr = make(chan struct{}), headTail{limit: 4 << 10}
	s.prepare(c, path)
	theirs, err := s.connect()
	if err == nil {
		err = s.begin()
	}
	for _, f := range theirs {
		f.Close()
	}
	if err != nil {
		s.closePipes()
		return nil, startFault(c.argv[0], err)
	}
	go s.watch()
	go func() {
		s.copies.Wait()
		<-s.frames.eof
		close(s.drained)
	}()
	return s, nil
}

// connect makes the pipes and answers the ends that are for the server.
func (s *mcpServer) connect() (theirs []*os.File, err error) {
	var ends [3][2]*os.File
	for i := range ends {
		if ends[i][0], ends[i][1], err = os.Pipe(); err != nil {
			return theirs, err
		}
		mine := 0
		if i == 0 {
			mine = 1
		}
		s.ours, theirs = append(s.ours, ends[i][mine]), append(theirs, ends[i][1-mine])
	}
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = ends[0][0], ends[1][1], ends[2][1]
	s.stdin, s.frames = ends[0][1], newMCPFrames(ends[1][0])
	s.copies.Go(func() { io.Copy(&s.stderr, ends[2][0]) })
	return theirs, nil
}

// watch waits for the leader and then ends what is left of it.
func (s *mcpServer) watch() {
	s.await()
	s.clear()
}

// stop ends the server, which may leave by itself at the end of its stdin, and
// waits until nothing of it is left, but for what cannot be ended.
func (s *mcpServer) stop() {
	s.stdin.Close()
	s.clear()
}

// clear ends the session. What it had written is read first; what someone outside
// the session keeps open is not awaited.
func (s *mcpServer) clear() {
	s.clearing.Do(func() {
		s.left = s.endSession(context.Background(), leaveGrace, killGrace)
		ended(s.drained, drainGrace)
		s.closePipes()
		close(s.cleared)
	})
}

// end answers how a server that is gone has ended.
func (s *mcpServer) end() string {
	code := exitCode(s.cmd.ProcessState)
	if code > 128 {
		return fmt.Sprintf("it was ended by signal %d", code-128)
	}
	return fmt.Sprintf("it has ended with exit code %d", code)
}

// noise answers what a server printed beside its messages since then.
func (s *mcpServer) noise(since int64) string {
	if noise := endOf(s.frames.heard(since), mcpNoise); noise != "" {
		return fmt.Sprintf("; on stdout it printed what is no message: %q", noise)
	}
	return ""
}

// words answers what a server that is cleared said beside its messages, on stdout
// since then, on stderr at last, and what could not be ended.
func (s *mcpServer) words(since int64) string {
	text := s.noise(since)
	if said := endOf(s.stderr.String(), 400); said != "" {
		text += fmt.Sprintf("; its stderr ends with: %q", said)
	}
	if s.left != "" {
		text += "; " + s.left
	}
	return text
}
