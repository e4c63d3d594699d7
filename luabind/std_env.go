package luabind

import (
	"fmt"

	lua "github.com/yuin/gopher-lua"
)

// isVariable says whether a shell can set a variable of this name.
func isVariable(name string) bool {
	for i, c := range name {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9' || i == 0) {
			return false
		}
	}
	return name != ""
}

// stdEnv is std.env. What it reads as a secret is hidden by mask.
func stdEnv(mask *Masker) *Module {
	return &Module{
		Name: "std.env",
		Doc:  "Variables of the environment.",
		Funcs: []Func{{
			Name:    "get",
			Args:    []Arg{{Name: "name", Kind: Text, Doc: "of the variable"}},
			Returns: "string?",
			Doc:     "The value of a variable, nil when it is not set.",
			Fn: func(c *Call) (int, error) {
				value, ok := c.VM().Config().Env(c.String(1))
				if !ok {
					return c.Return(lua.LNil)
				}
				return c.Return(lua.LString(value))
			},
		}, {
			Name:    "secret",
			Args:    []Arg{{Name: "name", Kind: Text, Doc: "of the variable"}},
			Returns: "string",
			Doc:     "The value of a variable that must be set. From now on it is masked wherever the host writes text, and kept from commands.",
			Fn: func(c *Call) (int, error) {
				name := c.String(1)
				value, _ := c.VM().Config().Env(name)
				switch {
				case value != "":
				case !isVariable(name): // it may be the secret itself, in the wrong place
					return 0, &stdError{kind: notFound, text: fmt.Sprintf("got %d bytes that name no variable (not shown), want the name of one, as in \"API_KEY\"", len(name))}
				default:
					return 0, &stdError{kind: notFound, text: fmt.Sprintf("%q: not set, want a secret in the environment", name)}
				}
				mask.Add(value)
				return c.Return(lua.LString(value))
			},
		}},
		Fault: stdFault,
	}
}
