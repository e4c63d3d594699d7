package luabind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"

	lua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/kernel/store"
)

// Config says what a VM may see. The zero value runs plain Lua with the default
// limits, no modules and no files.
type Config struct {
	Stdout, Stderr io.Writer                   // default: those of the process
	Embedded       fs.FS                       // modules that ship with the host
	Project        string                      // root folder; its lua/ is searched by require
	ScriptDir      string                      // searched first; RunFile sets it when empty
	Beside         []string                    // folders searched after it
	Env            func(string) (string, bool) // default os.LookupEnv
	Modules        []*Module
	Limits         Limits
	// Warn gets what no one asked for: the error of a task that nobody joined.
	// The default writes a line to Stderr.
	Warn func(text string)
}

// VM runs one script or spec file. Its methods may be called by any goroutine;
// [VM.Close] after the last run.
type VM struct {
	config     Config
	dev        bool
	root       *lua.LState // holds the globals; runs no Lua
	baton      baton
	meter      meter
	idle       []*thread // guarded by the baton
	idleStrand *strand   // for Lua that the host itself needs
	running    sync.Mutex

	states    map[*Module]any
	metas     map[*Type]*lua.LTable
	errorMeta *lua.LTable
	mirrors   *mirrorMetas
	book      *book // what the modules publish, once it was looked at
	tostring  lua.LValue
	loader    loader
	coros     coroutines
	tasks     map[*Task]struct{} // spawned and not ended; guarded by the baton
	closers   []func() error
	unjoined  lua.LValue // what is told of errors that nobody joined; nil: Config.Warn
	taskIDs   atomic.Int64
	random    *rand.Rand
}

// New makes a VM with the libraries and the host modules of config. A module
// that does not open is the only error.
func New(config Config) (*VM, error) {
	vm := &VM{config: config.withDefaults(), states: map[*Module]any{}, metas: map[*Type]*lua.LTable{}, tasks: map[*Task]struct{}{}}
	if v, set := vm.config.Env("LSHAPE_CHECK"); set && v == "1" {
		vm.dev = true
	}
	vm.root = lua.NewState(lua.Options{
		SkipOpenLibs: true, CallStackSize: 256, RegistrySize: 256, RegistryMaxSize: registryMax, RegistryGrowStep: registryGrow,
	})
	vm.root.Options = lua.Options{ // what NewThread gives to every thread
		CallStackSize: callDepth, MinimizeStackMemory: true,
		RegistrySize: registryStart, RegistryMaxSize: registryMax, RegistryGrowStep: registryGrow,
	}
	vm.root.G.MainThread, vm.root.G.CurrentThread = vm.root, vm.root
	vm.idleStrand = newStrand(context.Background(), nil, nil)
	vm.meter.begin(context.Background(), func(error) {}, vm.config.Limits)
	vm.errorMeta = vm.newErrorMeta()
	vm.openLibraries()
	vm.openMirrors()
	if err := vm.openModules(); err != nil {
		return nil, errors.Join(err, vm.Close())
	}
	vm.openShapes()
	return vm, nil
}

func (c Config) withDefaults() Config {
	if c.Stdout == nil {
		c.Stdout = os.Stdout
	}
	if c.Stderr == nil {
		c.Stderr = os.Stderr
	}
	if c.Env == nil {
		c.Env = os.LookupEnv
	}
	if c.Warn == nil {
		stderr := c.Stderr
		c.Warn = func(text string) { fmt.Fprintln(stderr, "knl: "+text) }
	}
	c.Limits = c.Limits.withDefaults()
	return c
}

// Dev says whether the run checks shapes at its boundaries (LSHAPE_CHECK).
func (vm *VM) Dev() bool { return vm.dev }

// Config answers what the VM was made with, defaults filled in.
func (vm *VM) Config() Config { return vm.config }

// Root answers the state that holds the globals: for making values, not for
// running Lua.
func (vm *VM) Root() *lua.LState { return vm.root }

// SetArgs sets the global arg, a list whose index 0 is the script.
func (vm *VM) SetArgs(script string, args []string) {
	t := vm.root.CreateTable(len(args), 0)
	for i, a := range args {
		t.RawSetInt(i+1, lua.LString(a))
	}
	t.RawSet(lua.LNumber(0), lua.LString(script))
	vm.root.G.Global.RawSetString("arg", t)
}

// SetGlobal sets a global of the scripts. It must not be called during a run.
func (vm *VM) SetGlobal(name string, v lua.LValue) {
	vm.root.G.Global.RawSetString(name, v)
}

// RunFile runs the script at path with args as its arg, and answers what it
// returned. The run lasts until every task has ended. Done ctx ends blocking
// calls and then the Lua itself.
func (vm *VM) RunFile(ctx context.Context, path string, args []string) ([]lua.LValue, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading script: %w", err)
	}
	if vm.config.ScriptDir == "" {
		vm.config.ScriptDir = dirOf(path)
	}
	vm.SetArgs(path, args)
	return vm.RunString(ctx, path, string(source))
}

// RunString runs source under the name that errors show.
func (vm *VM) RunString(ctx context.Context, name, source string) ([]lua.LValue, error) {
	proto, err := compile(name, source)
	if err != nil {
		return nil, err
	}
	return vm.Run(ctx, vm.root.NewFunctionFromProto(proto))
}

// Run calls fn as the main task.
func (vm *VM) Run(ctx context.Context, fn lua.LValue, args ...lua.LValue) ([]lua.LValue, error) {
	vm.running.Lock()
	defer vm.running.Unlock()
	if d := vm.config.Limits.Time; d > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, d, errTime)
		defer stop()
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	vm.baton.take()
	defer vm.baton.pass()
	vm.meter.begin(ctx, end, vm.config.Limits)
	task := vm.newTask(store.Within(ctx, ctx), "main")
	out, r := task.body(fn, args)
	vm.endTasks()
	if r != nil {
		return nil, vm.goError(r)
	}
	if err := vm.meter.spent; err != nil {
		return nil, err
	}
	return out, nil
}

// Enter runs fn with the baton, for Go code that was called from Lua, has left
// it through [Call.Block] and must call back: a model asking for a tool whose
// handler is a Lua function. It may be called by many goroutines at once. ctx
// must come from the context that Block gave; when it ends, the Lua under fn
// gets a second to end by itself.
func (vm *VM) Enter(ctx context.Context, fn func(*Call) error) error {
	parent, _ := ctx.Value(strandKey{}).(*strand)
	if parent == nil {
		return errors.New("luabind: Enter: the context does not come from a running script")
	}
	if ctx.Err() != nil || vm.baton.takeWithin(ctx) != nil {
		return cancelled(ctx)
	}
	defer vm.baton.pass()
	s := newStrand(ctx, parent.task, parent.home)
	s.entry, s.from = true, parent.home.top
	depth := 0
	if s.from != nil {
		depth = s.from.depth + 1
	}
	return vm.entered(vm.borrow(s, nil, depth), fn)
}

// entered calls fn on t; what it raises is its error.
func (vm *VM) entered(t *thread, fn func(*Call) error) (err error) {
	c := &Call{L: t.L, thread: t, fn: &Func{Name: "enter"}, at: &bound{place: "enter"}}
	s := t.strand
	defer func() {
		var r *raised
		if p := recover(); p != nil {
			r = t.caught(p)
			err = vm.goError(r)
		} else {
			t.giveBack()
		}
		s.endBase(vm, r)
	}()
	return fn(c)
}

// StateOf answers what m's Open made for vm.
func (vm *VM) StateOf(m *Module) any { return vm.states[m] }

func (vm *VM) onClose(fn func() error) { vm.closers = append(vm.closers, fn) }

// Close ends the coroutines that are still suspended and closes the modules,
// the last opened first.
func (vm *VM) Close() error {
	vm.running.Lock()
	defer vm.running.Unlock()
	vm.baton.take()
	vm.coros.endAll()
	vm.baton.pass()
	var errs []error
	for i := len(vm.closers) - 1; i >= 0; i-- {
		errs = append(errs, vm.closers[i]())
	}
	vm.closers = nil
	return errors.Join(errs...)
}
