package luabind

import (
	"path/filepath"

	lua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/cassette"
)

var cassetteFunc = Func{
	Name: "cassette", Returns: "ports.port",
	Args: []Arg{{Name: "opts", Kind: Table, Fields: []Arg{
		{Name: "path", Kind: Text, Doc: "of the file, from the project root"},
		{Name: "port", Kind: Userdata, Optional: true, Type: "ports.port", Doc: "what is recorded; not needed to play"},
		{Name: "record", Kind: Flag, Optional: true, Doc: "true: begin the file anew, false: it must be there (default: record when it is not)"},
	}}},
	Doc: "A port that records another one to a file and, once the file is there, plays it without the other: the n-th call " +
		"that asks some model the same gets the n-th answer to it. A request that was not recorded fails and says what changed.",
	Fn: cassettePort,
}

func cassettePort(c *Call) (int, error) {
	st, opts := c.State().(*portsState), c.Options(1)
	o := cassette.Options{Path: filepath.Clean(opts.String("path", "")), Note: c.VM().config.Warn}
	conf := port.Conf{}
	if opts.Has("port") {
		ud := opts.Value("port").(*lua.LUserData)
		if !isPort(ud) {
			return 0, c.Mistake("option \"port\": got %s, want a port", show(ud))
		}
		inner := ud.Value.(*openPort)
		o.Port, conf = inner.port, inner.conf
	}
	if opts.Has("record") {
		record := opts.Bool("record", false)
		o.Record = &record
	}
	if st.Mask != nil {
		o.Mask = st.Mask.MaskJSON
	}
	var err error
	if o.Dir, err = filepath.Abs(c.VM().Config().Project); err != nil {
		return 0, err
	}
	if filepath.IsAbs(o.Path) {
		if o.Path, err = filepath.Rel(o.Dir, o.Path); err != nil {
			return 0, err
		}
	}
	if !filepath.IsLocal(o.Path) || o.Path == "." {
		return 0, c.Mistake("option \"path\": got %q, want a file below the project root %q", opts.String("path", ""), o.Dir)
	}
	p, err := cassette.New(o)
	if err != nil {
		return 0, c.Mistake("%s", err)
	}
	return c.Return(st.vm.Wrap(portType, &openPort{cassette.Name, p, conf}))
}
