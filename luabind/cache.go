package luabind

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// Compiled code is kept by the hash of its name and source, for all VMs of the
// process: 8 KB of source take 3 ms to compile and 10 µs to hash. A prototype
// is never written after it was compiled.
var protos = protoCache{byHash: map[[32]byte]*lua.FunctionProto{}}

// What the cache holds at most.
const cachedProtos = 512

type protoCache struct {
	mu     sync.Mutex
	byHash map[[32]byte]*lua.FunctionProto
	order  [][32]byte // oldest first
}

// compile answers the prototype of source; errors are "file:line: what is wrong".
func compile(name, source string) (*lua.FunctionProto, error) {
	key := hashOf(name, source)
	if p := protos.find(key); p != nil {
		return p, nil
	}
	p, err := compileNew(name, source)
	if err == nil {
		protos.keep(key, p)
	}
	return p, err
}

// hashOf is the SHA-256 of a chunk, without a copy of its source.
func hashOf(name, source string) (key [32]byte) {
	h := sha256.New()
	io.WriteString(h, name)
	io.WriteString(h, "\x00")
	io.WriteString(h, source)
	h.Sum(key[:0])
	return key
}

func (c *protoCache) find(key [32]byte) *lua.FunctionProto {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byHash[key]
}

func (c *protoCache) keep(key [32]byte, p *lua.FunctionProto) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byHash[key] != nil {
		return
	}
	if len(c.order) >= cachedProtos {
		delete(c.byHash, c.order[0])
		c.order = c.order[1:]
	}
	c.byHash[key] = p
	c.order = append(c.order, key)
}

func compileNew(name, source string) (p *lua.FunctionProto, err error) {
	if len(source) > maxSource {
		return nil, &SyntaxError{fmt.Sprintf("%s:1: source of %d bytes, at most %d are compiled", name, len(source), maxSource)}
	}
	if line, why := checkNesting(source); why != "" {
		return nil, &SyntaxError{fmt.Sprintf("%s:%d: %s", name, line, why)}
	}
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, syntaxError(name, source, fmt.Errorf("%v", r))
		}
	}()
	chunk, err := parse.Parse(strings.NewReader(withoutShebang(strings.TrimPrefix(source, "\uFEFF"))), name)
	if err != nil {
		return nil, syntaxError(name, source, err)
	}
	if chunk, err = asMeant(name, chunk); err != nil {
		return nil, err
	}
	p, err = lua.Compile(chunk, name)
	if err != nil {
		return nil, syntaxError(name, source, err)
	}
	if err := finish(name, p); err != nil {
		return nil, err
	}
	endLocals(p, chunk)
	return p, nil
}

// Beyond these the compiler writes what the VM reads as something else.
const (
	maxCode     = 1 << 17 // instructions of a function, the reach of a jump
	maxUpvalues = 255
)

// finish completes a function and those in it. They get lists of their own size:
// the compiler leaves 12 KB for the instructions of each, however few there are.
func finish(name string, p *lua.FunctionProto) error {
	if len(p.Code) > maxCode {
		return &SyntaxError{fmt.Sprintf("%s:%d: a function of %d instructions, at most %d are compiled", name, max(p.LineDefined, 1), len(p.Code), maxCode)}
	}
	if n := len(p.DbgUpvalues); n > maxUpvalues {
		return &SyntaxError{fmt.Sprintf("%s:%d: a function that uses %d variables of those around it, at most %d can be", name, p.LineDefined, n, maxUpvalues)}
	}
	bindHosted(p)
	p.Code, p.DbgSourcePositions = slices.Clone(p.Code), slices.Clone(p.DbgSourcePositions)
	for _, inner := range p.FunctionPrototypes {
		if err := finish(name, inner); err != nil {
			return err
		}
	}
	return nil
}

// withoutShebang makes a first line "#!…" a comment, keeping the line count.
func withoutShebang(source string) string {
	if !strings.HasPrefix(source, "#") {
		return source
	}
	if i := strings.IndexByte(source, '\n'); i >= 0 {
		return source[i:]
	}
	return ""
}

// SyntaxError says where a source is not Lua.
type SyntaxError struct{ Message string }

// Error answers "file:line: what is wrong".
func (e *SyntaxError) Error() string { return e.Message }

func syntaxError(name, source string, err error) error {
	var parsed *parse.Error
	if errors.As(err, &parsed) {
		return &SyntaxError{parsedText(name, source, parsed)}
	}
	var compiled *lua.CompileError
	if errors.As(err, &compiled) {
		line, text := compiled.Line, compiled.Message
		if head, at, ok := strings.Cut(text, " at line "); ok { // the line of a goto stands in its text
			if n, err := strconv.Atoi(at); err == nil {
				line, text = n, head
			}
		}
		if strings.Contains(text, "too many local variables") {
			text = "too many local variables in the function that begins here: at most 200, less what its longest call or assignment needs; keep some in a table, or in do … end"
		}
		return &SyntaxError{fmt.Sprintf("%s:%d: %s", name, max(line, 1), text)} // the chunk itself has line 0
	}
	return &SyntaxError{name + ": " + err.Error()}
}

func parsedText(name, source string, e *parse.Error) string {
	if e.Pos.Line == parse.EOF {
		last := strings.Count(strings.TrimSuffix(source, "\n"), "\n") + 1
		return fmt.Sprintf("%s:%d: unexpected end of file, a block, string or bracket is not closed", name, last)
	}
	text := strings.TrimPrefix(e.Message, "syntax error: ")
	if text == "syntax error" {
		text = "unexpected " + fmt.Sprintf("%q", e.Token)
	} else if e.Token != "" {
		text = fmt.Sprintf("%s near %q", text, e.Token)
	}
	line := e.Pos.Line
	if e.Message == "unterminated string" && e.Pos.Column == 0 {
		line-- // the scanner has read the end of the line
	}
	return fmt.Sprintf("%s:%d: %s", name, line, text)
}
