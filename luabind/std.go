package luabind

import (
	"errors"
	"io"
	"io/fs"
	"syscall"

	"github.com/knl-run/knl/kernel/store"
)

// StdOptions is what the std modules share with the rest of the host.
type StdOptions struct {
	Log  io.Writer // where std.log writes; nil: the VM's Stderr
	Mask *Masker   // hides what std.env.secret reads; nil: one of its own
	// Store answers the store of the run, as [Kernel].Open does; nil: the memory of
	// this process.
	Store func(spec string) (store.Store, error)
	// StoreDirs are folders that std.fs does not reach before they are stores, too:
	// the one of that store, and others that are the host's.
	StoreDirs []string
	// Terminal opens the terminal to read a line that a human types from then on: what
	// was typed before answers no question that had not been asked. It is closed after
	// the line; nil: there is none.
	Terminal func() (io.ReadCloser, error)
}

// Std answers the std modules.
func Std(o StdOptions) []*Module {
	if o.Mask == nil {
		o.Mask = &Masker{}
	}
	return []*Module{TaskModule, stdJSON(), stdTime(), stdEnv(o.Mask), stdPath(), stdFS(o), stdShell(o.Mask), stdHTTP(o.Mask), stdKV(o), stdTerm(o), stdLog(o)}
}

// stdError is an expected failure of a std function: what the world outside the
// script answered. A script tells failures apart by their kind.
type stdError struct {
	kind  string // one of the kinds below
	text  string
	cause error
	again bool // asking again may help
}

// The kinds of failures of std functions.
const (
	notFound  = "not_found"   // no such file, folder, command, variable
	denied    = "denied"      // outside the root, or the system forbids it
	conflict  = "conflict"    // something else stands there
	badText   = "validation"  // the text is not what it should be
	ioFault   = "io"          // anything else the system answered
	timedOut  = "timeout"     // no answer in time
	transport = "transport"   // the connection failed, or was cut
	overSize  = "too_large"   // more than the function takes
	noWay     = "unsupported" // there is no such thing here
)

func (e *stdError) Error() string { return e.text }
func (e *stdError) Unwrap() error { return e.cause }

// stdFault shows a failure of a std function to the script.
func stdFault(err error) (Fault, bool) {
	var e *stdError
	if !errors.As(err, &e) {
		return Fault{}, false
	}
	return Fault{Kind: e.kind, Message: e.text, Retryable: e.again}, true
}

// systemText says what a system error means, in the words of a user.
func systemText(err error) (kind, text string) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return notFound, "no such file or folder"
	case errors.Is(err, fs.ErrPermission):
		return denied, "permission denied"
	case errors.Is(err, syscall.ENOTEMPTY): // before ErrExist, which it is too
		return conflict, "the folder is not empty"
	case errors.Is(err, fs.ErrExist):
		return conflict, "something else stands there"
	case errors.Is(err, syscall.ENOTDIR):
		return conflict, "a file stands where a folder is wanted"
	case errors.Is(err, syscall.EISDIR):
		return conflict, "is a folder, want a file"
	case errors.Is(err, syscall.ENOSPC):
		return ioFault, "no space left on the disk"
	case errors.Is(err, syscall.ELOOP):
		return ioFault, "the links lead in a circle"
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return ioFault, err.Error()
}
