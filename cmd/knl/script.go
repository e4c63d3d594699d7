package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/knl-run/knl/lua"
	"github.com/knl-run/knl/luabind"
)

// script is one Lua file to be run in a VM of its own.
type script struct {
	path    string
	args    []string
	session string // offered as arg.session
	limits  luabind.Limits
	beside  []string                    // folders that require looks in too
	env     func(string) (string, bool) // nil: the process's
	stdout  io.Writer
	host    *host
}

// result is what a script came to.
type result struct {
	value json.RawMessage // what it returned, as JSON; nil when JSON cannot say it
	odd   error           // why value is nil
	verdict
	err error // what it raised
}

// verdict are the fields of a returned table that decide the exit code.
type verdict struct {
	OK     *bool  `json:"ok"`
	Status string `json:"status"`
	Kind   string `json:"kind"`
	Reason string `json:"reason"`
	Tag    string `json:"tag"`
	Detail string `json:"detail"`
}

// judge is Lua that takes from a returned value what decides the exit code; the
// rest of the value may be more than JSON can say.
const judge = `local pcall, type, ipairs = pcall, type, ipairs
return function(v)
  local function field(of, k, want)
    local there, x = pcall(function() return of[k] end)
    if there and type(x) == want then return x end
  end
  if type(v) ~= "table" then return {} end
  local detail = v
  for _, k in ipairs{ "detail", "refusal" } do detail = field(detail, k, "table") or detail end
  return {
    ok = field(v, "ok", "boolean"), status = field(v, "status", "string"), kind = field(v, "kind", "string"),
    reason = field(v, "reason", "string"), tag = field(v, "tag", "string"),
    detail = field(detail, "message", "string") or field(detail, "detail", "string"),
  }
end`

// run runs the script to its end.
func (s *script) run(ctx context.Context) (r result) {
	vm, source, err := s.open(ctx)
	if err != nil {
		return result{err: err}
	}
	defer func() { r.err = errors.Join(r.err, vm.Close()) }()
	judges, err := vm.RunString(ctx, "=judge", judge) // before the script can change a global
	if err != nil {
		return result{err: err}
	}
	values, err := vm.RunString(ctx, s.path, source)
	if err != nil || len(values) == 0 {
		return result{value: json.RawMessage("null"), err: err}
	}
	r.value, r.odd = luabind.AppendJSON(nil, values[0], &luabind.Encoding{Name: "result", ListFields: true})
	if r.odd != nil {
		r.value = nil
	}
	// What an interrupt let end by itself is judged too.
	if values, r.err = vm.Run(context.WithoutCancel(ctx), judges[0], values[0]); r.err != nil {
		return r
	}
	r.verdict = verdictOf(luabind.AppendJSON(nil, values[0], nil))
	return r
}

// open makes the VM of the script, with its arg, and reads the source.
func (s *script) open(ctx context.Context) (vm *luabind.VM, source string, err error) {
	text, err := os.ReadFile(s.path)
	if err != nil {
		return nil, "", err
	}
	if vm, err = luabind.New(s.config()); err != nil {
		return nil, "", err
	}
	vm.SetArgs(s.path, s.args)
	if s.session != "" {
		if _, err := vm.RunString(ctx, "=resume", "arg.session = "+luaText(s.session)); err != nil {
			return nil, "", errors.Join(err, vm.Close())
		}
	}
	return vm, string(text), nil
}

func (s *script) config() luabind.Config {
	return luabind.Config{
		Stdout:    s.host.masked(s.stdout),
		Stderr:    s.host.masked(s.host.app.ui.err),
		Embedded:  lua.FS,
		Project:   ".",
		ScriptDir: filepath.Dir(s.path),
		Beside:    s.beside,
		Env:       s.env,
		Modules:   s.host.modules(),
		Limits:    s.limits,
		Warn:      func(text string) { s.host.app.ui.note("knl: %s", s.host.mask.Mask(text)) },
	}
}

// verdictOf reads what judge answered.
func verdictOf(text []byte, err error) (v verdict) {
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		panic("BUG: the judge answers no verdict: " + err.Error())
	}
	return v
}

// scriptFault answers why the file at path cannot be a script, or nil.
func scriptFault(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return misuse("", "%s: no such file%s", path, near(path, luaFiles(filepath.Dir(path))))
	case err != nil:
		return misuse("", "%s", err)
	case info.IsDir():
		return misuse("name one of its .lua files", "%s: is a folder, want a Lua file", path)
	}
	return nil
}

func luaFiles(dir string) []string {
	names, _ := filepath.Glob(filepath.Join(dir, "*.lua")) // the pattern is well-formed
	return names
}

// scriptTrace answers the Lua frames that err came through, innermost first, one
// a line.
func scriptTrace(err error) string {
	var raised *luabind.LuaError
	var limit *luabind.LimitError
	var abort *luabind.AbortError
	text := ""
	switch {
	case errors.As(err, &raised):
		text = raised.Traceback
	case errors.As(err, &limit):
		text = limit.Traceback
	case errors.As(err, &abort):
		text = abort.Traceback
	}
	return strings.TrimSpace(strings.ReplaceAll(text, "\n\t", "\n"))
}

// reason answers what a run ends with: the exit code and, unless it is done,
// why.
func (r *result) reason(stopped bool) (code int, why string) {
	var limit *luabind.LimitError
	switch {
	case stopped:
		return exitInterrupted, "interrupted: sessions that have not ended can be resumed"
	case errors.As(r.err, &limit):
		return exitStopped, limit.Message
	case r.err != nil:
		return exitRaised, r.err.Error()
	case r.OK != nil && !*r.OK:
		return exitVerdict, join("the script's verdict is not ok", r.Reason, r.Detail)
	}
	return r.outcome()
}

// outcome judges a returned Outcome; every other value is a good end.
func (r *result) outcome() (code int, why string) {
	switch {
	case r.Status == "stopped" && r.Reason != "":
		return exitStopped, join("stopped", r.Reason, r.Tag)
	case r.Status == "refused" && r.Reason != "":
		return exitStopped, join("the model refused", r.Reason, r.Detail)
	case r.Status == "error" && r.Kind != "":
		return exitRaised, join("the last Outcome is an error", r.Kind, r.Detail)
	}
	return exitDone, ""
}

// join puts words together with colons, leaving out what is empty.
func join(words ...string) string {
	var out []string
	for _, w := range words {
		if w != "" {
			out = append(out, w)
		}
	}
	return strings.Join(out, ": ")
}
