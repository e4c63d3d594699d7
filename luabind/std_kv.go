package luabind

import (
	"context"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"
)

// Bounds of std.kv: it is for marks and small notes, not for data.
const (
	keyLimit   = 256      // bytes of a key
	valueLimit = 64 << 10 // bytes of a value as JSON
	pairLimit  = 10_000   // keys
)

// stdKV is std.kv, on the pairs of the run's store.
func stdKV(o StdOptions) *Module {
	key := Arg{Name: "key", Kind: Text, Doc: "1 to 256 bytes without control characters"}
	return &Module{
		Name: "std.kv",
		Doc: "Small values that outlive a run: they stand in the store of the run, and every run on that store sees them. Who writes last is right. " +
			"Their log is a session, .kv; when it has ended, or most of it is out of date, one that is numbered follows it and keeps them.",
		Funcs: []Func{
			{Name: "get", Args: []Arg{key}, Returns: "any", Fn: kvGet,
				Doc: "The value of a key, nil when there is none."},
			{Name: "set", Args: []Arg{key, {Name: "value", Doc: "what JSON can say, at most 64 KB of it"}}, Fn: kvSet,
				Doc: "Keeps a value; it is on the disk when this returns. Secrets in it are masked. Raises (kind too_large) beyond 64 KB and beyond 10,000 keys."},
			{Name: "delete", Args: []Arg{key}, Returns: "boolean", Fn: kvDelete,
				Doc: "Forgets a key; false when there was none."},
			{Name: "list", Args: []Arg{{Name: "prefix", Kind: Text, Optional: true, Doc: "of the keys (default: all)"}}, Returns: "string[]", Fn: kvList,
				Doc: "The keys that begin so, sorted."},
		},
		Open: func(*VM) (any, error) { return &pairs{open: o.Store, mask: o.Mask}, nil },
		Fault: func(err error) (Fault, bool) {
			if f, ok := stdFault(err); ok {
				return f, true
			}
			return kernelFault(err)
		},
	}
}

func pairsOf(c *Call) *pairs { return c.State().(*pairs) }

// kvKey reads argument 1.
func kvKey(c *Call) (string, error) {
	key := c.String(1)
	if key == "" || len(key) > keyLimit || !utf8.ValidString(key) || strings.IndexFunc(key, unicode.IsControl) >= 0 {
		return "", c.ArgMistake(1, "1 to 256 bytes of text without control characters")
	}
	return key, nil
}

func kvGet(c *Call) (int, error) {
	key, err := kvKey(c)
	if err != nil {
		return 0, err
	}
	raw, err := blockFor(c, func(ctx context.Context) (json.RawMessage, error) { return pairsOf(c).get(ctx, key) })
	if err != nil {
		return 0, err
	}
	if raw == nil {
		return c.Return(lua.LNil)
	}
	v, err := fromText(c.L, string(raw))
	if err != nil {
		return 0, err
	}
	return c.Return(v)
}

func kvSet(c *Call) (int, error) {
	key, err := kvKey(c)
	if err != nil {
		return 0, err
	}
	if !c.Given(2) {
		return 0, c.ArgMistake(2, "a value (delete forgets a key, knl.null is kept)")
	}
	raw, err := AppendJSON(nil, c.Arg(2), &Encoding{Name: "value"})
	if err != nil {
		return 0, c.Mistake("%s", err)
	}
	return 0, c.Block(func(ctx context.Context) error { return pairsOf(c).set(ctx, key, raw) })
}

func kvDelete(c *Call) (int, error) {
	key, err := kvKey(c)
	if err != nil {
		return 0, err
	}
	was, err := blockFor(c, func(ctx context.Context) (bool, error) { return pairsOf(c).remove(ctx, key) })
	if err != nil {
		return 0, err
	}
	return c.Return(lua.LBool(was))
}

func kvList(c *Call) (int, error) {
	prefix := c.OptString(1, "")
	keys, err := blockFor(c, func(ctx context.Context) ([]string, error) { return pairsOf(c).list(ctx, prefix) })
	if err != nil {
		return 0, err
	}
	out := TagArray(c.L, c.L.CreateTable(len(keys), 0))
	for _, k := range keys {
		out.Append(lua.LString(k))
	}
	return c.Return(out)
}
