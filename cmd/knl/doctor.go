package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/pebblestore"
	"github.com/knl-run/knl/luabind"
	"github.com/knl-run/knl/port"
)

const doctorUsage = `Says what is set up and what of it can be reached: knl itself, the store, the
providers, the terminal. A key is never shown, only whether its variable is set.
Without --online nothing is called; with it each provider whose key is set, or
that wants none, is asked whether it would answer, for at most ten seconds.

Exits 1 when the store cannot be read, or a provider does not take its key.

JSON:
  { "ok", "knl": { "version", "go", "os", "arch", "cpus" },
    "store": { "path", "state": "none" | "free" | "held" | "unreadable" | "memory",
      "sessions"?, "holder"?, "problem"? },
    "ports": [ { "name", "key_variable"?, "key_set", "key_problem"?, "base_url", "base_variable"?,
      "online": "not asked" | "reached" | "failed", "problem"? } ],
    "terminal": { "stdin", "stdout", "stderr", "columns"?, "colours" } }`

func doctorCommand(a *app) *cobra.Command {
	var online bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is set up and what can be reached",
		Long:  doctorUsage,
		Args:  a.wantArgs(),
		RunE: a.command(func(ctx context.Context, _ []string) error {
			ctx, stop := interruptible(ctx)
			defer stop()
			d := &doctorDoc{OK: true, Knl: machineFacts(), Terminal: terminalFacts(), Ports: []portDoc{}}
			d.Store = a.storeDoc(ctx)
			d.OK = d.Store.State != "unreadable"
			for _, name := range providers.Providers() {
				p := portFacts(name, os.LookupEnv)
				if online {
					p.ask(ctx, providers[name], keyMask(os.LookupEnv, nil))
				}
				d.OK = d.OK && !(p.Online == "failed" && p.KeySet) // a server on this machine may be off
				d.Ports = append(d.Ports, p)
			}
			return a.showDoctor(d)
		}),
	}
	cmd.Flags().BoolVar(&online, "online", false, "ask each provider whose key is set")
	return cmd
}

// doctorDoc is the JSON of knl doctor.
type doctorDoc struct {
	OK       bool        `json:"ok"`
	Knl      machineDoc  `json:"knl"`
	Store    storeDoc    `json:"store"`
	Ports    []portDoc   `json:"ports"`
	Terminal terminalDoc `json:"terminal"`
}

type machineDoc struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	CPUs    int    `json:"cpus"`
}

func machineFacts() machineDoc {
	return machineDoc{version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0)}
}

type terminalDoc struct {
	Stdin   bool   `json:"stdin"`
	Stdout  bool   `json:"stdout"`
	Stderr  bool   `json:"stderr"`
	Columns int    `json:"columns,omitempty"`
	Colours string `json:"colours"`
}

func terminalFacts() terminalDoc {
	is := func(f *os.File) bool { return term.IsTerminal(f.Fd()) }
	d := terminalDoc{Stdin: is(os.Stdin), Stdout: is(os.Stdout), Stderr: is(os.Stderr),
		Colours: strings.ToLower(colorprofile.Detect(os.Stdout, os.Environ()).String())}
	d.Columns, _, _ = term.GetSize(os.Stdout.Fd()) // 0 where there is none
	return d
}

// storeDoc is what is to be said of the store of a command.
type storeDoc struct {
	Path     string `json:"path"`
	State    string `json:"state"`
	Sessions *int   `json:"sessions,omitempty"`
	Holder   int    `json:"holder,omitempty"` // pid
	Problem  string `json:"problem,omitempty"`
}

func (a *app) storeDoc(ctx context.Context) storeDoc {
	d := storeDoc{Path: a.flags.store, State: "free"}
	if d.Path == memory {
		d.State = "memory"
		return d
	}
	if entries, err := os.ReadDir(d.Path); errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		d.State = "none"
		return d
	}
	d.Holder = storeHolder(d.Path)
	err := a.look(ctx, func(p *place) error {
		if p.shared {
			d.State = "held"
		}
		rows, err := p.store.Streams(ctx, "", 0)
		n := len(rows)
		d.Sessions = &n
		return err
	})
	if err != nil {
		d.State, d.Problem = "unreadable", err.Error()
	}
	return d
}

// storeHolder answers the pid of the process that holds a store, 0 for none.
func storeHolder(dir string) int {
	st, err := pebblestore.Open(dir, pebblestore.Options{ReadOnly: true})
	var held *pebblestore.Held
	if errors.As(err, &held) {
		return held.PID
	}
	if err == nil {
		_ = st.Close()
	}
	return 0
}

// portDoc is what is to be said of a provider.
type portDoc struct {
	Name         string `json:"name"`
	KeyVariable  string `json:"key_variable,omitempty"`
	KeySet       bool   `json:"key_set"`
	KeyProblem   string `json:"key_problem,omitempty"` // why no run sends it
	BaseURL      string `json:"base_url"`
	BaseVariable string `json:"base_variable,omitempty"`
	Online       string `json:"online"`
	Problem      string `json:"problem,omitempty"`
}

func portFacts(name string, env func(string) (string, bool)) portDoc {
	at := providers[name].(port.Placed).Place()
	d := portDoc{Name: name, KeyVariable: at.KeyVariable, BaseURL: at.Base, Online: "not asked"}
	if at.KeyVariable != "" {
		key, _ := env(at.KeyVariable)
		if d.KeySet = strings.TrimSpace(key) != ""; d.KeySet {
			d.KeyProblem = keyFault(name, at, env)
		}
	}
	if base, _ := env(at.BaseVariable); base != "" {
		d.BaseURL, d.BaseVariable = shownURL(base), at.BaseVariable
	}
	if _, err := providers[name].Open(port.Conf{Model: "any"}); err != nil { // it asks nobody
		d.Online, d.Problem = "failed", err.Error()
	}
	return d
}

// keyFault answers why no run sends the key of the environment, or nothing. The
// provider's port says it, of a call to nowhere.
func keyFault(name string, at port.Place, env func(string) (string, bool)) string {
	if at.BaseVariable == "" {
		return ""
	}
	nowhere := func(variable string) (string, bool) {
		if variable == at.BaseVariable {
			return "http://127.0.0.1:0", true
		}
		return env(variable)
	}
	var fault *kernel.CallError
	err := registry(port.Host{Env: nowhere})[name].Health(context.Background(), port.Conf{})
	if errors.As(err, &fault) && fault.Kind == kernel.Auth {
		return fault.Message
	}
	return ""
}

// shownURL answers an address without what may be a secret in it.
func shownURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "(not a URL)"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// patience is how long a provider may take to answer the doctor.
const patience = 10 * time.Second

// ask asks the provider, if there is a key for it or it wants none.
func (d *portDoc) ask(ctx context.Context, p port.Port, mask *luabind.Masker) {
	if d.KeyVariable != "" && !d.KeySet {
		return
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	d.Online = "reached"
	err := p.Health(ctx, port.Conf{})
	switch {
	case err == nil:
		return
	case errors.Is(ctx.Err(), context.DeadlineExceeded): // whatever the port made of it
		err = fmt.Errorf("no answer in %d s", patience/time.Second)
	}
	d.Online, d.Problem = "failed", mask.Mask(err.Error())
}

// keyMask hides the keys of the providers that stand in the environment; warn is
// told of one that will hide more than itself.
func keyMask(env func(string) (string, bool), warn func(string)) *luabind.Masker {
	m := &luabind.Masker{Warn: warn}
	for _, p := range providers {
		if key, _ := env(p.(port.Placed).Place().KeyVariable); key != "" {
			m.Add(key)
		}
	}
	return m
}

func (a *app) showDoctor(d *doctorDoc) error {
	show := a.doctorLines
	if a.flags.json {
		show = func(d *doctorDoc) error { return a.ui.json(d) }
	}
	if err := show(d); err != nil || d.OK {
		return err
	}
	return &fault{code: exitRaised}
}

func (a *app) doctorLines(d *doctorDoc) error {
	k, t := d.Knl, d.Terminal
	rows := [][]string{
		{"knl", fmt.Sprintf("%s, %s, %s/%s, %d CPUs", k.Version, k.Go, k.OS, k.Arch, k.CPUs)},
		{"store", d.Store.line()},
	}
	for i := range d.Ports {
		rows = append(rows, []string{d.Ports[i].Name, d.Ports[i].line()})
	}
	if len(d.Ports) == 0 {
		rows = append(rows, []string{"ports", "this knl has no provider"})
	}
	rows = append(rows, []string{"terminal", fmt.Sprintf("stdin %s, stdout %s, stderr %s, colours: %s", tty(t.Stdin), tty(t.Stdout), tty(t.Stderr), t.Colours)})
	return a.ui.table([]string{"WHAT", "STATE"}, rows)
}

func tty(is bool) string {
	if is {
		return "is one"
	}
	return "is none"
}

func (d *storeDoc) line() string {
	text := d.Path + ": " + map[string]string{
		"none": "not there yet, knl run makes it", "free": "nobody holds it", "held": "another process holds it",
		"unreadable": "cannot be read: " + d.Problem, "memory": "lives as long as a run"}[d.State]
	if d.Holder != 0 {
		text += fmt.Sprintf(" (pid %d)", d.Holder)
	}
	if d.Sessions != nil {
		text += ", " + count(int64(*d.Sessions), "session")
	}
	return text
}

func (d *portDoc) line() string {
	key := "wants no key"
	if d.KeyVariable != "" {
		key = d.KeyVariable + " is not set"
		if d.KeySet {
			key = d.KeyVariable + " is set"
		}
		if d.KeyProblem != "" {
			key = d.KeyProblem
		}
	}
	text := key + ", " + d.BaseURL
	if d.BaseVariable != "" {
		text += " (" + d.BaseVariable + ")"
	}
	switch d.Online {
	case "reached":
		text += ", answers"
	case "failed":
		text += ", " + d.Problem
	}
	return text
}
