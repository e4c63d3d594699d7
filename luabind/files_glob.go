package luabind

import (
	"context"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
)

// glob answers the paths that match pattern, sorted, relative to the root. A
// segment "**" stands for any number of folders; the others are as in
// path.Match, whose errors the caller has looked for. Links to folders are not
// followed.
func (p *projectFiles) glob(ctx context.Context, pattern string) ([]string, error) {
	local, err := p.local(pattern)
	if err != nil {
		return nil, err
	}
	want := strings.Split(filepath.ToSlash(local), "/")
	found := []string{}
	err = fs.WalkDir(p.root.FS(), fixedPrefix(want), func(at string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return skipUnreadable(e)
		}
		if at == "." {
			return nil
		}
		segments := strings.Split(at, "/")
		if matchPath(want, segments) {
			found = append(found, at)
		}
		if e.IsDir() && !reaches(want, segments) {
			return fs.SkipDir
		}
		return nil
	})
	return found, p.fault(pattern, err)
}

// skipUnreadable passes over what cannot be read, as a shell does.
func skipUnreadable(e fs.DirEntry) error {
	if e != nil && e.IsDir() {
		return fs.SkipDir
	}
	return nil
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

// matchPath says whether all segments match the pattern.
func matchPath(want, segments []string) bool {
	for len(want) > 0 && want[0] != "**" {
		if len(segments) == 0 || !matchSegment(want[0], segments[0]) {
			return false
		}
		want, segments = want[1:], segments[1:]
	}
	if len(want) == 0 {
		return len(segments) == 0
	}
	if len(want) == 1 {
		return len(segments) > 0 // what lies below, not the folder itself
	}
	for skip := 0; skip <= len(segments); skip++ {
		if matchPath(want[1:], segments[skip:]) {
			return true
		}
	}
	return false
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
