package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// specFiles answers the spec files at paths, each once, sorted within a folder.
func specFiles(paths []string) ([]string, error) {
	if len(paths) == 0 {
		paths = []string{"."}
		if info, err := os.Stat("spec"); err == nil && info.IsDir() {
			paths = []string{"spec"}
		}
	}
	var files []string
	for _, path := range paths {
		found, err := specsAt(path)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		return nil, misuse("a spec file is named *_spec.lua", "no spec below %s", strings.Join(paths, ", "))
	}
	return eachOnce(files), nil
}

// specsAt answers the spec files at a path: a file, whatever its name, or those
// below a folder.
func specsAt(path string) ([]string, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, misuse("", "%s: no such file or folder", path)
	case err != nil:
		return nil, misuse("", "%s", err)
	case !info.IsDir() && filepath.Ext(path) != ".lua":
		return nil, misuse("", "%s: is no Lua file", path)
	case !info.IsDir() && !info.Mode().IsRegular():
		return nil, misuse("", "%s: is no regular file", path)
	case !info.IsDir():
		return []string{path}, nil
	}
	return specsBelow(path)
}

// specsBelow walks a folder; folders whose name begins with a dot are left out.
func specsBelow(dir string) (files []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && path != dir && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case strings.HasSuffix(d.Name(), "_spec.lua") && readable(path, d):
			files = append(files, path)
		}
		return nil
	})
	return files, err
}

// readable says whether what was found is a regular file or a link to one: a
// pipe or a device may never end. A link to nothing is told when it is read.
func readable(path string, d fs.DirEntry) bool {
	if d.Type() != fs.ModeSymlink {
		return d.Type().IsRegular()
	}
	info, err := os.Stat(path)
	return err != nil || info.Mode().IsRegular()
}

// eachOnce answers paths without those that name a file a second time.
func eachOnce(paths []string) (out []string) {
	seen := map[string]bool{}
	for _, path := range paths {
		if key := filepath.Clean(path); !seen[key] {
			seen[key] = true
			out = append(out, path)
		}
	}
	return out
}
