package luabind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"
)

const (
	grepFile  = 8 << 20 // bytes of a file that is searched
	grepLine  = 400     // bytes of a line that are answered
	grepFound = 1000    // lines without max

	grepPattern = 8 << 10 // bytes of a pattern
	grepStates  = 10_000  // steps of its program
	grepAtOnce  = 1 << 22 // steps × bytes that are matched without a look at the clock
)

// grepFunc is std.fs.grep.
var grepFunc = Func{
	Name: "grep", Returns: "{ path: string, line: integer, text: string }[], true?", Fn: grepFiles,
	Args: []Arg{
		{Name: "pattern", Kind: Text, Doc: "a regular expression in the syntax of RE2 (Go's), for one line at a time"},
		{Name: "opts", Kind: Table, Optional: true, Fields: []Arg{
			{Name: "path", Kind: Text, Optional: true, Doc: "a file, or a folder with all below it (default: the root)"},
			{Name: "glob", Kind: Text, Optional: true, Doc: "of the files: *.go by name, src/**/*.go by path below the folder"},
			{Name: "ignore_case", Kind: Flag, Optional: true, Doc: "a for A (default false)"},
			{Name: "max", Kind: Whole, Optional: true, Doc: "lines to answer (default 1000)"},
		}},
	},
	Doc: "The lines that match, by path and line, and true when there are more. A line is shown up to 400 bytes. " +
		"Passed over are files above 8 MB or with zero bytes, links, the folders .git and .knl, and what lies more than 100 folders down.",
}

// lineSearch is one run of grep.
type lineSearch struct {
	*projectFiles
	want  *regexp.Regexp
	steps int      // of the program of want
	glob  []string // nil: every file
	max   int
	found []grepMatch
}

type grepMatch struct {
	path string
	line int
	text string
}

// errEnough ends a walk that has found one line more than it may answer.
var errEnough = errors.New("enough lines")

func grepFiles(c *Call) (int, error) {
	pattern, opts := c.String(1), c.Options(2)
	s := &lineSearch{projectFiles: filesOf(c), max: int(opts.Int("max", grepFound))}
	if s.max < 1 || s.max > 1_000_000 {
		return 0, c.Mistake("option %q: got %d, want 1 to 1000000", "max", s.max)
	}
	if opts.Has("glob") {
		glob := opts.String("glob", "")
		want := globFault(glob)
		if glob == "" {
			want = "a pattern"
		}
		if want != "" {
			return 0, c.Mistake("option %q: got %s, want %s", "glob", show(opts.Value("glob")), want)
		}
		if !strings.Contains(glob, "/") {
			glob = "**/" + glob
		}
		s.glob = globSegments(glob)
	}
	name := opts.String("path", ".")
	if err := c.Block(func(ctx context.Context) error {
		if err := s.compile(pattern, opts.Bool("ignore_case", false)); err != nil {
			return err
		}
		return s.run(ctx, name)
	}); err != nil {
		return 0, err
	}
	more := len(s.found) > s.max
	list := TagArray(c.L, c.L.CreateTable(min(len(s.found), s.max), 0))
	for _, m := range s.found[:min(len(s.found), s.max)] {
		t := c.L.CreateTable(0, 3)
		t.RawSetString("path", lua.LString(m.path))
		t.RawSetString("line", lua.LNumber(m.line))
		t.RawSetString("text", lua.LString(m.text))
		list.Append(t)
	}
	if more {
		return c.Return(list, lua.LTrue)
	}
	return c.Return(list)
}

// compile reads the pattern. RE2 takes time in proportion to the text times the
// pattern's program, so that is bounded too.
func (s *lineSearch) compile(pattern string, ignoreCase bool) error {
	say := func(format string, args ...any) error {
		return &stdError{kind: badText, text: "pattern: " + fmt.Sprintf(format, args...)}
	}
	if len(pattern) > grepPattern {
		return say("got %d bytes, want at most %d", len(pattern), grepPattern)
	}
	if ignoreCase {
		pattern = "(?i:" + pattern + ")"
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return say("%s", regexpFault(err))
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return say("%s", regexpFault(err))
	}
	if s.steps = len(program.Inst); s.steps > grepStates {
		return say("its repeats make %d steps of it, want at most %d: repeat less", s.steps, grepStates)
	}
	s.want, err = regexp.Compile(pattern)
	return err
}

// regexpFault is what a pattern is wrong with, without the library's prefix.
func regexpFault(err error) string { return strings.TrimPrefix(err.Error(), "error parsing regexp: ") }

func (s *lineSearch) run(ctx context.Context, name string) error {
	shown, err := s.local(name)
	if err != nil {
		return err
	}
	shown = filepath.ToSlash(shown)
	top, err := s.find(name, way{follow: true})
	if err != nil {
		return err
	}
	defer top.leave()
	info, err := top.folder.Lstat(top.name)
	switch {
	case err != nil:
		return s.fault(name, err)
	case info.Mode().IsRegular():
		err = s.file(ctx, top, shown)
	case info.IsDir():
		if err = s.into(top, name); err == nil {
			err = s.folder(ctx, top, shown)
		}
	}
	if errors.Is(err, errEnough) {
		return nil
	}
	return s.fault(name, err)
}

func (s *lineSearch) folder(ctx context.Context, top *spot, shown string) error {
	w := walk{projectFiles: s.projectFiles, visit: func(at *spot, e fs.DirEntry, name string) error {
		switch {
		case e.IsDir() && (e.Name() == ".git" || e.Name() == ".knl"):
			return fs.SkipDir
		case e.Type().IsRegular() && s.wants(shown, name):
			return s.file(ctx, at, name)
		}
		return nil
	}}
	return w.from(ctx, top, shown)
}

// wants says whether the file at is among those that glob names.
func (s *lineSearch) wants(top, at string) bool {
	below := strings.TrimPrefix(at, top+"/")
	if top == "." {
		below = at
	}
	return s.glob == nil || matchPath(s.glob, strings.Split(below, "/"))
}

// file looks through one file; one that cannot be read is passed over.
func (s *lineSearch) file(ctx context.Context, at *spot, shown string) error {
	data, more, err := at.read(grepFile)
	if err != nil || more || bytes.IndexByte(data, 0) >= 0 {
		return nil
	}
	for n := 1; len(data) > 0; n++ {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		line = bytes.TrimSuffix(line, []byte("\r"))
		found := s.matches(ctx, line)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !found {
			continue
		}
		if len(line) > grepLine {
			line = append(wholeText(line[:grepLine:grepLine]), "…"...)
		}
		s.found = append(s.found, grepMatch{shown, n, string(line)})
		if len(s.found) > s.max {
			return errEnough
		}
	}
	return nil
}

// matches holds a line against the pattern. Where that is much work it is done
// character by character, which is slower and ends with ctx.
func (s *lineSearch) matches(ctx context.Context, line []byte) bool {
	if len(line)*s.steps <= grepAtOnce {
		return s.want.Match(line)
	}
	return s.want.MatchReader(&clockedRunes{ctx: ctx, line: line})
}

// clockedRunes reads a line until it or its context ends.
type clockedRunes struct {
	ctx  context.Context
	line []byte
	read int
}

func (r *clockedRunes) ReadRune() (rune, int, error) {
	if r.read++; r.read%64 == 0 && r.ctx.Err() != nil || len(r.line) == 0 {
		return 0, 0, io.EOF
	}
	char, size := utf8.DecodeRune(r.line)
	r.line = r.line[size:]
	return char, size, nil
}
