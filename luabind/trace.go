package luabind

import (
	"fmt"
	"reflect"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// frame is one active function of a thread.
type frame struct {
	fn     *lua.LFunction
	pc     int
	tail   int    // calls that replaced their frame to get here
	called string // the name it was called by, "" when the code does not say
}

// line answers the line the frame is at, 0 for a Go function.
func (f *frame) line() int {
	if f.fn.IsG {
		return 0
	}
	return f.fn.Proto.DbgSourcePositions[max(f.pc-1, 0)]
}

// position answers "file:line: ", or "" for a Go function.
func (f *frame) position() string {
	if f.fn.IsG {
		return ""
	}
	return fmt.Sprintf("%s:%d: ", f.fn.Proto.SourceName, f.line())
}

func (f *frame) String() string {
	switch {
	case f.fn.IsG && f.called == "":
		return "[Go]: in ?"
	case f.fn.IsG:
		return "[Go]: in function '" + f.called + "'"
	case f.fn.Proto.LineDefined == 0:
		return f.position() + "in main chunk"
	case f.called == "" || f.tail > 0:
		return fmt.Sprintf("%sin function <%s:%d>", f.position(), f.fn.Proto.SourceName, f.fn.Proto.LineDefined)
	}
	return f.position() + "in function '" + f.called + "'"
}

// The library keeps its call frames private; these are their fields.
var frameFields = func() (f struct{ fn, parent, pc, tail int }) {
	frameType, _ := reflect.TypeFor[lua.Debug]().FieldByName("frame")
	index := func(name string) int {
		field, ok := frameType.Type.Elem().FieldByName(name)
		if !ok {
			panic("BUG: luabind: a call frame of gopher-lua has no field " + name)
		}
		return field.Index[0]
	}
	f.fn, f.parent, f.pc, f.tail = index("Fn"), index("Parent"), index("Pc"), index("TailCall")
	return f
}()

// eachFrame calls see for the frames of l, innermost first, until it answers
// false.
func eachFrame(l *lua.LState, see func(*frame) bool) bool {
	d, ok := l.GetStack(0)
	if !ok {
		return true
	}
	at := reflect.ValueOf(d).Elem().FieldByName("frame")
	for f := readFrame(at); f != nil; {
		at = at.Elem().Field(frameFields.parent)
		above := readFrame(at)
		f.called = calledAs(above)
		if !see(f) {
			return false
		}
		f = above
	}
	return true
}

func readFrame(v reflect.Value) *frame {
	if v.IsNil() {
		return nil
	}
	v = v.Elem()
	return &frame{
		fn:   (*lua.LFunction)(v.Field(frameFields.fn).UnsafePointer()),
		pc:   int(v.Field(frameFields.pc).Int()),
		tail: int(v.Field(frameFields.tail).Int()),
	}
}

// calledAs answers the name in the call that caller is executing.
func calledAs(caller *frame) string {
	if caller == nil || caller.fn.IsG {
		return ""
	}
	for _, call := range caller.fn.Proto.DbgCalls {
		if call.Pc == caller.pc-1 && call.Name != "?" {
			return call.Name
		}
	}
	return ""
}

// outer answers the thread that t was called from, across coroutines and
// entries from Go.
func (t *thread) outer() *thread {
	if t.caller != nil {
		return t.caller
	}
	if t.strand != nil {
		return t.strand.from
	}
	return nil
}

// eachLevel walks the frames of t and of all threads that it was called from.
func (t *thread) eachLevel(see func(*frame) bool) {
	for ; t != nil; t = t.outer() {
		if !eachFrame(t.L, see) {
			return
		}
	}
}

// position answers "file:line: " of the frame at level, counted as Lua counts:
// a Go function and a frame lost to a tail call are levels without a position.
func (t *thread) position(level int) string {
	at := ""
	t.eachLevel(func(f *frame) bool {
		if level == 0 {
			at = f.position()
		}
		if level -= 1; !f.fn.IsG {
			level -= f.tail
		}
		return level >= 0
	})
	return at
}

// where answers the position of the innermost Lua frame.
func (t *thread) where() string {
	at := ""
	t.eachLevel(func(f *frame) bool {
		at = f.position()
		return at == ""
	})
	return at
}

// Traces longer than this lose their middle.
const traceHead, traceTail = 24, 16

// traceback writes all frames from t outwards, one a line, skipping the first
// skip of them.
func (t *thread) traceback(skip int) string {
	var lines []string
	for at := t; at != nil; at = at.outer() {
		eachFrame(at.L, func(f *frame) bool {
			if skip -= 1; skip < 0 {
				lines = append(lines, f.lines()...)
			}
			return true
		})
		if at.below != "" {
			lines = append(lines, strings.Split(at.below, "\n")...)
			return shortened(lines)
		}
	}
	if origin := t.origin(); origin != "" {
		lines = append(lines, strings.Split(origin, "\n")...)
	}
	return shortened(lines)
}

// lines answers what a traceback says about f.
func (f *frame) lines() []string {
	if f.fn.IsG || f.tail == 0 {
		return []string{"\t" + f.String()}
	}
	return []string{"\t" + f.String(), fmt.Sprintf("\t(%d tail calls)", f.tail)}
}

// shortened joins the lines of a traceback, without the middle of a long one.
func shortened(lines []string) string {
	if over := len(lines) - traceHead - traceTail; over > 0 {
		cut := fmt.Sprintf("\t... (%d levels)", over)
		lines = append(append(lines[:traceHead:traceHead], cut), lines[traceHead+over:]...)
	}
	return strings.Join(lines, "\n")
}

// origin answers the trace of who spawned the task that t runs in.
func (t *thread) origin() string {
	if t == nil || t.strand == nil || t.strand.home.task == nil {
		return ""
	}
	return t.strand.home.task.origin
}
