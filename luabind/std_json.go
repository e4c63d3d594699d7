package luabind

import (
	"bytes"
	"encoding/json"

	lua "github.com/yuin/gopher-lua"
)

// stdJSON is std.json, the bridge as a script calls it.
func stdJSON() *Module {
	return &Module{
		Name: "std.json",
		Doc:  "JSON text and Lua values, lossless or refused.",
		Funcs: []Func{{
			Name: "encode",
			Args: []Arg{
				{Name: "value", Doc: "what to write; nil and knl.null are null"},
				{Name: "opts", Kind: Table, Optional: true, Fields: []Arg{
					{Name: "pretty", Kind: Flag, Optional: true, Doc: "one member a line, indented by two spaces"},
				}},
			},
			Returns: "string",
			Doc:     "Canonical JSON text of value: keys sorted. Raises naming the path to what JSON cannot say.",
			Fn:      encodeJSON,
		}, {
			Name:    "decode",
			Args:    []Arg{{Name: "text", Kind: Text, Doc: "one JSON value"}},
			Returns: "any",
			Doc:     "The value of one JSON text. Raises (kind validation) with line:column at anything else, duplicate keys included.",
			Fn:      decodeJSON,
		}},
		Fault: stdFault,
	}
}

func encodeJSON(c *Call) (int, error) {
	if c.N() == 0 {
		return 0, c.Mistake("got no argument, want a value")
	}
	opts := c.Options(2)
	out, err := AppendJSON(nil, c.Arg(1), nil)
	if err != nil {
		return 0, c.Mistake("%s", err)
	}
	if opts.Bool("pretty", false) {
		var indented bytes.Buffer
		if err := json.Indent(&indented, out, "", "  "); err != nil {
			panic("BUG: luabind: the JSON writer wrote what is not JSON: " + err.Error())
		}
		out = indented.Bytes()
	}
	return c.Return(lua.LString(out))
}

func decodeJSON(c *Call) (int, error) {
	v, err := fromText(c.L, c.String(1))
	if err != nil {
		return 0, &stdError{kind: badText, text: err.Error()}
	}
	return c.Return(v)
}
