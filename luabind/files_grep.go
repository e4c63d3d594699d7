package luabind

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

const (
	grepFile  = 8 << 20 // bytes of a file that is searched
	grepLine  = 400     // bytes of a line that are answered
	grepFound = 1000    // lines without max
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
		"Passed over are files above 8 MB or with zero bytes, links, and the folders .git and .knl.",
}

// lineSearch is one run of grep.
type lineSearch struct {
	*projectFiles
	want  *regexp.Regexp
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
	if opts.Bool("ignore_case", false) {
		pattern = "(?i:" + pattern + ")"
	}
	want, err := regexp.Compile(pattern)
	if err != nil {
		return 0, &stdError{kind: badText, text: "pattern: " + regexpFault(err)}
	}
	s := &lineSearch{projectFiles: filesOf(c), want: want, max: int(opts.Int("max", grepFound))}
	if s.max < 1 || s.max > 1_000_000 {
		return 0, c.Mistake("option %q: got %d, want 1 to 1000000", "max", s.max)
	}
	if glob := opts.String("glob", ""); opts.Has("glob") {
		if _, err := path.Match(glob, ""); err != nil || glob == "" {
			return 0, c.Mistake("option %q: got %s, want a pattern with every [ closed and no \\ at its end", "glob", show(opts.Value("glob")))
		}
		if !strings.Contains(glob, "/") {
			glob = "**/" + glob
		}
		s.glob = strings.Split(glob, "/")
	}
	name := opts.String("path", ".")
	if err := c.Block(func(ctx context.Context) error { return s.run(ctx, name) }); err != nil {
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

// regexpFault is what a pattern is wrong with, without the library's prefix.
func regexpFault(err error) string { return strings.TrimPrefix(err.Error(), "error parsing regexp: ") }

func (s *lineSearch) run(ctx context.Context, name string) error {
	top, err := s.local(name)
	if err != nil {
		return err
	}
	top = filepath.ToSlash(top)
	if _, err := s.root.Stat(top); err != nil {
		return s.fault(name, err)
	}
	err = fs.WalkDir(s.root.FS(), top, func(at string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return skipUnreadable(e)
		case e.IsDir() && at != top && (e.Name() == ".git" || e.Name() == ".knl"):
			return fs.SkipDir
		case e.Type().IsRegular() && s.wants(top, at):
			return s.file(at)
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return s.fault(name, err)
}

// wants says whether the file at is among those that glob names. A file that
// was named itself is.
func (s *lineSearch) wants(top, at string) bool {
	below := strings.TrimPrefix(at, top+"/")
	if top == "." {
		below = at
	}
	return s.glob == nil || at == top || matchPath(s.glob, strings.Split(below, "/"))
}

// file looks through one file; one that cannot be read is passed over.
func (s *lineSearch) file(at string) error {
	data, more, err := s.read(at, grepFile)
	if err != nil || more || bytes.IndexByte(data, 0) >= 0 {
		return nil
	}
	for n := 1; len(data) > 0; n++ {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		if line = bytes.TrimSuffix(line, []byte("\r")); !s.want.Match(line) {
			continue
		}
		if len(line) > grepLine {
			line = append(wholeText(line[:grepLine:grepLine]), "…"...)
		}
		s.found = append(s.found, grepMatch{at, n, string(line)})
		if len(s.found) > s.max {
			return errEnough
		}
	}
	return nil
}
