package luabind

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// outputLimit is how many bytes of each output are kept without max_bytes.
const outputLimit = 1 << 20

// stdShell is std.sh. Commands do not see the variables that secrets hides, nor
// those that are credentials by their name or value.
func stdShell(secrets *Masker) *Module {
	return &Module{
		Name: "std.sh",
		Doc:  "Commands of the system.",
		Funcs: []Func{{
			Name: "run",
			Args: []Arg{
				{Name: "command", Type: "string|string[]", Doc: "a program with its arguments, or text for /bin/sh"},
				{Name: "opts", Kind: Table, Optional: true, Fields: []Arg{
					{Name: "cwd", Kind: Text, Optional: true, Doc: "working folder, from the project root (default: the root)"},
					{Name: "env", Kind: Table, Optional: true, Type: "table<string, string|false>", Doc: "variables to set, false to take one away; credentials pass only this way"},
					{Name: "timeout", Kind: Seconds, Optional: true, Doc: "then all that it started is ended (default: none)"},
					{Name: "stdin", Kind: Text, Optional: true, Doc: "what the command reads (default: nothing)"},
					{Name: "max_bytes", Kind: Whole, Optional: true, Doc: "kept of each output, half of it head, half tail (default 1 MB)"},
				}},
			},
			Returns: "{ code: integer, stdout: string, stderr: string, timed_out?: true, left?: string }",
			Doc: "Runs a command to its end and answers how it ended; a code that is not 0 does not raise, " +
				"128 + n says that signal n ended it. It has no terminal. What it leaves in the background ends half a second after it, " +
				"but for what has made itself a session of its own, as setsid does: `setsid server >log 2>&1 &`. It sees no variable that looks like a credential by its name, " +
				"or is a URL with a password. What has become another user, as sudo makes it, cannot be ended: left says which process runs on. " +
				"Raises (kind not_found, denied) when it cannot start, and (kind timeout) when its time is over and it cannot be ended.",
			Fn: func(c *Call) (int, error) { return runShell(c, secrets) },
		}},
		Fault: stdFault,
	}
}

func runShell(c *Call, secrets *Masker) (int, error) {
	cmd := command{grace: killGrace}
	var err error
	if cmd.argv, err = commandLine(c); err != nil {
		return 0, err
	}
	opts := c.Options(2)
	if err := shellOptions(c, opts, &cmd); err != nil {
		return 0, err
	}
	set, err := variables(c, opts.Table("env"))
	if err != nil {
		return 0, err
	}
	cmd.env = childEnv(os.Environ(), secrets, set)
	var result commandResult
	if err := c.Block(func(ctx context.Context) (err error) {
		result, err = cmd.run(ctx)
		return err
	}); err != nil {
		if result.left != "" && c.Ctx().Err() != nil { // nobody hears the answer
			c.VM().config.Warn("std.sh.run: " + result.left)
		}
		return 0, err
	}
	return c.Return(resultTable(c.L, result))
}

func resultTable(l *lua.LState, r commandResult) *lua.LTable {
	t := l.CreateTable(0, 4)
	t.RawSetString("code", lua.LNumber(r.code))
	t.RawSetString("stdout", lua.LString(r.stdout))
	t.RawSetString("stderr", lua.LString(r.stderr))
	if r.timedOut {
		t.RawSetString("timed_out", lua.LTrue)
	}
	if r.left != "" {
		t.RawSetString("left", lua.LString(r.left))
	}
	return t
}

// commandLine reads argument 1: text is for the shell, a list is run as it is.
func commandLine(c *Call) ([]string, error) {
	if text, ok := c.Arg(1).(lua.LString); ok {
		if strings.TrimSpace(string(text)) == "" || strings.ContainsRune(string(text), 0) {
			return nil, c.ArgMistake(1, "a command without zero bytes")
		}
		return []string{"/bin/sh", "-c", string(text)}, nil
	}
	list, ok := c.Arg(1).(*lua.LTable)
	if !ok || list.MaxN() == 0 || keyBeside(list, list.MaxN()) != lua.LNil {
		return nil, c.ArgMistake(1, "a list of strings, or text for /bin/sh")
	}
	argv := make([]string, list.MaxN())
	for i := range argv {
		word, ok := list.RawGetInt(i + 1).(lua.LString)
		if !ok || strings.ContainsRune(string(word), 0) || (i == 0 && word == "") {
			return nil, c.Mistake("command[%d]: got %s, want a string without zero bytes", i+1, show(list.RawGetInt(i+1)))
		}
		argv[i] = string(word)
	}
	return argv, nil
}

func shellOptions(c *Call, opts Options, cmd *command) error {
	cmd.stdin = opts.String("stdin", "")
	cmd.timeout = opts.Seconds("timeout", 0)
	if opts.Has("timeout") && cmd.timeout <= 0 {
		return c.Mistake("option %q: got %s, want seconds above 0", "timeout", show(opts.Value("timeout")))
	}
	limit := opts.Int("max_bytes", outputLimit)
	if limit < 1 || limit > 1<<30 {
		return c.Mistake("option %q: got %d, want 1 to %d", "max_bytes", limit, 1<<30)
	}
	cmd.maxBytes = int(limit)
	root, err := filepath.Abs(c.VM().Config().Project)
	if err != nil {
		return err
	}
	cmd.dir = opts.String("cwd", ".")
	if !filepath.IsAbs(cmd.dir) {
		cmd.dir = filepath.Join(root, cmd.dir)
	}
	return nil
}

// variables reads the option env; a nil value takes the variable away.
func variables(c *Call, env *lua.LTable) (map[string]*string, error) {
	set := map[string]*string{}
	if env == nil {
		return set, nil
	}
	var wrong error
	env.ForEach(func(key, value lua.LValue) {
		name, isText := key.(lua.LString)
		text, isValue := value.(lua.LString)
		switch {
		case !isText || name == "" || strings.ContainsAny(string(name), "=\x00"):
			wrong = c.Mistake("option %q: got %s as a name, want text without = and zero bytes", "env", show(key))
		case value == lua.LFalse:
			set[string(name)] = nil
		case !isValue || strings.ContainsRune(string(text), 0):
			wrong = c.Mistake("option %q: %s: got %s, want a string, or false to take it away", "env", string(name), show(value))
		default:
			s := string(text)
			set[string(name)] = &s
		}
	})
	return set, wrong
}
