package luabind

import (
	"path"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// stdPath is std.path: paths as text, without a look at the disk.
func stdPath() *Module {
	return &Module{
		Name: "std.path",
		Doc:  "Paths as text, separated by slashes.",
		Funcs: []Func{{
			Name:    "join",
			Args:    []Arg{{Name: "...", Kind: Text, Doc: "one part or more"}},
			Returns: "string",
			Doc:     "The parts as one path, without empty parts, . and needless ..",
			Fn:      joinPath,
		},
			pathFunc("dirname", "The path without its last part; . when there is only one.", path.Dir),
			pathFunc("basename", "The last part of the path.", path.Base),
			pathFunc("ext", `The ending of the last part with its dot: ".go"; "" without one, and for ".bashrc".`, pathExt),
		},
	}
}

func joinPath(c *Call) (int, error) {
	if c.N() == 0 {
		return 0, c.Mistake("got no argument, want one part or more")
	}
	parts := make([]string, c.N())
	for i := range parts {
		part, ok := c.Arg(i + 1).(lua.LString)
		if !ok {
			return 0, c.Mistake("part %d: got %s, want a string", i+1, show(c.Arg(i+1)))
		}
		parts[i] = string(part)
	}
	return c.Return(lua.LString(path.Join(parts...)))
}

func pathFunc(name, doc string, of func(string) string) Func {
	return Func{
		Name:    name,
		Args:    []Arg{{Name: "path", Kind: Text, Doc: "separated by slashes"}},
		Returns: "string",
		Doc:     doc,
		Fn:      func(c *Call) (int, error) { return c.Return(lua.LString(of(c.String(1)))) },
	}
}

func pathExt(p string) string { return path.Ext(strings.TrimLeft(path.Base(p), ".")) }
