package luabind

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// globLimit is the length of a pattern for paths.
const globLimit = 4096

// globFault answers what is wrong with a pattern for paths, or "".
func globFault(pattern string) string {
	if len(pattern) > globLimit {
		return fmt.Sprintf("a pattern of at most %d bytes", globLimit)
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return `a pattern with every [ closed and no \ at its end`
	}
	return ""
}

// glob answers the paths that match pattern, sorted, relative to the base. A
// segment "**" stands for any number of folders; the others are as in
// path.Match, whose errors the caller has looked for. Links to folders are not
// followed, but for those that the pattern spells.
func (p *projectFiles) glob(ctx context.Context, pattern string) ([]string, error) {
	local, err := p.local(pattern)
	if err != nil {
		return nil, err
	}
	want := globSegments(filepath.ToSlash(local))
	prefix, found := fixedPrefix(want), []string{}
	top, err := p.findFolder(prefix)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			return found, nil
		}
		return nil, err
	}
	defer top.leave()
	w := walk{projectFiles: p, visit: func(_ *spot, e fs.DirEntry, shown string) error {
		segments := strings.Split(shown, "/")
		if matchPath(want, segments) {
			found = append(found, shown)
		}
		if e.IsDir() && !reaches(want, segments) {
			return fs.SkipDir
		}
		return nil
	}}
	return found, p.fault(pattern, w.from(ctx, top, prefix))
}

// globSegments cuts a pattern at its slashes. "**" at the end stands for what
// lies below a folder, not for the folder itself; one behind another says nothing.
func globSegments(pattern string) []string {
	want := slices.CompactFunc(strings.Split(pattern, "/"), func(a, b string) bool { return a == "**" && b == "**" })
	if want[len(want)-1] == "**" {
		want = append(want, "*")
	}
	return want
}

// fixedPrefix answers the folder that every match lies in.
func fixedPrefix(want []string) string {
	n := 0
	for n < len(want)-1 && !strings.ContainsAny(want[n], `*?[\`) {
		n++
	}
	if n == 0 {
		return "."
	}
	return strings.Join(want[:n], "/")
}

// matchPath says whether all segments match the pattern, in time that grows with
// both: where the rest does not match, only what the last "**" stands for need
// be longer.
func matchPath(want, segments []string) bool {
	w, s, star, tried := 0, 0, -1, 0
	for s < len(segments) {
		switch {
		case w < len(want) && want[w] == "**":
			star, tried = w, s
			w++
		case w < len(want) && matchSegment(want[w], segments[s]):
			w, s = w+1, s+1
		case star >= 0:
			tried++
			w, s = star+1, tried
		default:
			return false
		}
	}
	return w == len(want) || w == len(want)-1 && want[w] == "**"
}

// reaches says whether something below segments can match.
func reaches(want, segments []string) bool {
	for i, s := range segments {
		if i == len(want) {
			return false
		}
		if want[i] == "**" {
			return true
		}
		if !matchSegment(want[i], s) {
			return false
		}
	}
	return len(want) > len(segments)
}

func matchSegment(want, segment string) bool {
	ok, _ := path.Match(want, segment) // the pattern was checked as a whole
	return ok
}
