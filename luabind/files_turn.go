package luabind

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// turnTime bounds the wait for a turn: a process that was stopped keeps its own.
var turnTime = 10 * time.Second

// lockPause is how long one waits to try a lock again.
const lockPause = 500 * time.Microsecond

// turn waits for the turn to write in the folder of s, and answers how it ends.
// One at a time has it: among the VMs of this process whoever came first, among
// processes whoever locks (flock) the folder itself, which is there before the
// file is and leaves nothing behind.
func (p *projectFiles) turn(ctx context.Context, s *spot) (end func(), err error) {
	within, stop := context.WithTimeout(ctx, turnTime)
	defer stop()
	leave, err := p.turnHere(within, s)
	if err == nil {
		var unlock func()
		if unlock, err = lockFolder(within, s.folder); err == nil {
			return func() { unlock(); leave() }, nil
		}
		leave()
	}
	if ctx.Err() == nil {
		err = &stdError{kind: timedOut, again: true, text: fmt.Sprintf("%q: others have been writing in its folder for %s", s.at, turnTime)}
	}
	return nil, err
}

// turnsHere are the turns of this process, by the hash of a folder's real path.
var turnsHere = func() (turns [64]chan struct{}) {
	for i := range turns {
		turns[i] = make(chan struct{}, 1)
	}
	return turns
}()

func (p *projectFiles) turnHere(ctx context.Context, s *spot) (end func(), err error) {
	hash := fnv.New32a()
	io.WriteString(hash, filepath.Join(p.real, filepath.Dir(s.at)))
	turn := turnsHere[hash.Sum32()%uint32(len(turnsHere))]
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// lockFolder answers the error of ctx alone. A folder that cannot be locked, on
// some network file systems or where it may be written and not read, is not.
func lockFolder(ctx context.Context, folder *os.Root) (unlock func(), err error) {
	f, err := folder.Open(".")
	if err != nil {
		return func() {}, nil
	}
	for { // a wait in the system would end with no context
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EWOULDBLOCK && err != syscall.EINTR {
			return func() { f.Close() }, nil
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(lockPause):
		}
	}
}
