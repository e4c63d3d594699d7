package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/knl-run/knl/kernel/store"
	"github.com/knl-run/knl/luabind"
)

// errSpecTime is the cause of a file's context when its time is over.
var errSpecTime = errors.New("time is over")

const whyInterrupted = "not run: interrupted"

// fileCase is the name of the case that stands for a file itself.
const fileCase = "the file runs"

// specCases runs one file; what keeps it from running is a failed case of the
// file itself.
func (a *app) specCases(ctx context.Context, path string, f specFlags) []specCase {
	h := a.newHost()
	h.stores.dir, h.stores.mem = memory, store.NewMem()
	r := specRun{path: path, flags: f, began: time.Now()}
	within, stop := context.WithTimeoutCause(ctx, f.timeout, errSpecTime)
	defer stop()
	err := r.run(within, script{path: path, host: h, stdout: a.ui.err, env: specEnv(!f.prod), limits: f.limits, beside: []string{"."}})
	if err = errors.Join(err, h.stores.close()); err != nil {
		r.fails(fileCase, 0, err)
	}
	for i := range r.done {
		for _, text := range []*string{&r.done[i].Name, &r.done[i].Message, &r.done[i].Traceback} {
			*text = h.mask.Mask(*text)
		}
	}
	return r.done
}

// specRun is the run of one file. Its cases run one by one, each as a run of
// the VM, so that one which never returns takes nothing from those before it.
type specRun struct {
	path  string
	flags specFlags
	began time.Time // of what runs now
	done  []specCase
}

// run runs the file and then its cases.
func (r *specRun) run(ctx context.Context, s script) (err error) {
	source, err := os.ReadFile(s.path)
	if err != nil {
		return err
	}
	vm, err := luabind.New(s.config())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, vm.Close()) }()
	vm.SetArgs(s.path, nil)
	words, err := vocabulary(ctx, vm)
	if err != nil {
		return err
	}
	var raised *luabind.LuaError
	if _, err := vm.RunString(ctx, s.path, string(source)); errors.As(err, &raised) {
		r.fails(fileCase, 0, err) // and what it described before is run
	} else if err != nil {
		return err
	}
	values, err := vm.RunString(ctx, "=spec", fmt.Sprintf(`local spec = require(%q)
		local cases, next_result = spec.plan(%s)
		return { count = spec.count(), cases = cases }, next_result`, words, r.flags.lua()))
	if err != nil {
		return err
	}
	plan, err := readLua[specPlan](luabind.AppendJSON(nil, values[0], nil))
	if err != nil {
		return err
	}
	if plan.Count == 0 && raised == nil {
		r.done = append(r.done, specCase{Name: "the file has a case", Status: caseFailed, File: r.path,
			Message: "it describes none: it(name, function() … end) is one"})
		return nil
	}
	r.cases(plan.Cases, func() (specCase, error) {
		result, err := vm.Run(ctx, values[1])
		if err != nil {
			return specCase{}, err
		}
		return readLua[specCase](luabind.AppendJSON(nil, result[0], nil))
	})
	return nil
}

// vendoredWords is where knl vendor writes the vocabulary.
const vendoredWords = "lua/spec/init.lua"

// startWords begins a file with the vocabulary of this name. It answers nil, or
// where a module came from that is no vocabulary: one offers start(globals),
// count(), and plan{ text, tags?, skip_tags?, shuffle? }, which answers the
// chosen cases and a function that runs the next one and answers how it went.
const startWords = `local spec = require(%q)
for _, word in ipairs{ "start", "count", "plan" } do
  if type(spec) ~= "table" or type(spec[word]) ~= "function" then
    for place, as in pairs(package.places) do
      if as == "spec" then return place end
    end
  end
end
spec.start(_G)
return nil`

// vocabulary loads the words of spec files and answers the name of their
// module: what ships, whatever the project calls spec, or what was vendored.
func vocabulary(ctx context.Context, vm *luabind.VM) (name string, err error) {
	name = "embedded.spec"
	if _, err := os.Stat(vendoredWords); err == nil {
		name = "spec"
	}
	values, err := vm.RunString(ctx, "=spec", fmt.Sprintf(startWords, name))
	if err != nil {
		return "", err
	}
	odd, err := readLua[string](luabind.AppendJSON(nil, values[0], nil))
	switch {
	case err != nil:
		return "", err
	case odd == vendoredWords:
		return "", fmt.Errorf("%s: is no vocabulary of specs: want start, count and plan (knl vendor spec writes one)", odd)
	case odd != "":
		return "", fmt.Errorf("%s: stands in front of the vocabulary %s: rename it", odd, vendoredWords)
	}
	return name, nil
}

// specPlan is what the vocabulary plans for a file.
type specPlan struct {
	Count int        `json:"count"` // cases that were described
	Cases []specCase `json:"cases"` // the chosen ones
}

// cases runs the planned cases with next, as far as it goes.
func (r *specRun) cases(planned []specCase, next func() (specCase, error)) {
	if r.flags.list {
		for _, c := range planned {
			c.Status = caseListed
			r.done = append(r.done, c)
		}
		return
	}
	for i, c := range planned {
		r.began = time.Now()
		result, err := next()
		if err != nil {
			r.ended(planned[i:], err)
			return
		}
		result.Tags, result.Traceback = c.Tags, trimmedTrace(result.Traceback, r.path)
		r.done = append(r.done, result)
	}
}

// ended notes the case that err ended and those behind it.
func (r *specRun) ended(left []specCase, err error) {
	why := fmt.Sprintf("not run: %q ended the file", left[0].Name)
	if errors.Is(err, errInterrupted) {
		why = whyInterrupted
	} else {
		r.fails(left[0].Name, left[0].Line, err)
		r.done[len(r.done)-1].Tags = left[0].Tags
		left = left[1:]
	}
	for _, c := range left {
		c.Status, c.Message = caseNotRun, why
		r.done = append(r.done, c)
	}
}

// fails notes a case that err ended; its place is where the Lua of the file was,
// else line.
func (r *specRun) fails(name string, line int, err error) {
	c := specCase{Name: name, Status: caseFailed, File: r.path, Line: line, MS: time.Since(r.began).Milliseconds()}
	c.Traceback, c.Message = trimmedTrace(scriptTrace(err), r.path), err.Error()
	switch {
	case errors.Is(err, errSpecTime):
		c.Message = "ran longer than " + r.flags.timeout.String()
	case errors.Is(err, errInterrupted):
		c.Status, c.Message, c.Traceback = caseNotRun, whyInterrupted, ""
	}
	if at := lineIn(c.Message+"\n"+c.Traceback, r.path); at > 0 {
		c.Line = at
	}
	r.done = append(r.done, c)
}

// outsideSpec are the frames of the vocabulary and of the shapes, shipped or
// vendored, and of Go.
var outsideSpec = regexp.MustCompile(`^((embedded|lua)/(spec|lshape)/|\[Go\])`)

// trimmedTrace answers a traceback without what lies between the spec file and
// the command, nor what the vocabulary did on the way out.
func trimmedTrace(trace, path string) string {
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(trace, "\n\t", "\n")), "\n")
	last := len(lines)
	for i, line := range lines {
		if strings.HasPrefix(line, filepath.ToSlash(path)+":") {
			last = i + 1
		}
	}
	first := 0
	for first < last && outsideSpec.MatchString(lines[first]) {
		first++
	}
	return strings.Join(lines[first:last], "\n")
}

// lineIn answers the first line of path that text names, 0 when it names none.
func lineIn(text, path string) int {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), filepath.ToSlash(path)+":")
		if !ok {
			continue
		}
		digits, _, _ := strings.Cut(rest, ":")
		if n, err := strconv.Atoi(digits); err == nil {
			return n
		}
	}
	return 0
}

// readLua reads the JSON of a Lua value.
func readLua[T any](text []byte, err error) (v T, _ error) {
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	return v, err
}

// lua answers the choice of cases as a Lua table.
func (f *specFlags) lua() string {
	text, shuffle := "nil", "nil"
	if f.filter != "" {
		text = luaText(f.filter)
	}
	if f.shuffle >= 0 {
		shuffle = strconv.FormatInt(f.shuffle, 10)
	}
	return fmt.Sprintf("{ text = %s, tags = %s, skip_tags = %s, shuffle = %s }", text, luaList(f.tags), luaList(f.skip), shuffle)
}

// luaText answers s as a Lua string.
func luaText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		fmt.Fprintf(&b, `\%03d`, s[i])
	}
	return b.String() + `"`
}

// luaList answers words as a Lua list, nil when there are none.
func luaList(words []string) string {
	if len(words) == 0 {
		return "nil"
	}
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = luaText(w)
	}
	return "{ " + strings.Join(texts, ", ") + " }"
}
