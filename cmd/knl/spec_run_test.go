package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/luabind"
)

// specOf runs a spec file with this source.
func specOf(t *testing.T, source string, f specFlags) []specCase {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x_spec.lua")
	require.NoError(t, os.WriteFile(path, []byte(source), 0o600))
	f.shuffle, f.timeout = -1, time.Minute
	a := &app{ui: &ui{out: io.Discard, err: io.Discard}, flags: globals{durability: "output"}}
	return a.specCases(context.Background(), path, f)
}

// A case that hits a limit ends its file and is told where it was.
func TestSpecCaseAtALimit(t *testing.T) {
	for _, row := range []struct {
		limits     luabind.Limits
		body, want string
	}{
		{luabind.Limits{Instructions: 200_000}, `while true do end`, "limit of 200000 instructions reached"},
		{luabind.Limits{Memory: 100 << 20}, `local t = {} while true do pcall(function() t[#t + 1] = ("x"):rep(1e6) .. #t end) end`, "memory limit of 100 MiB reached"},
	} {
		cases := specOf(t, `it("is before", function() end)
			it("takes all", function()
				`+row.body+`
			end)
			it("is behind", function() end)`, specFlags{limits: row.limits})
		require.Len(t, cases, 3)
		require.Equal(t, []string{casePassed, caseFailed, caseNotRun}, []string{cases[0].Status, cases[1].Status, cases[2].Status})
		require.Contains(t, cases[1].Message, row.want)
		require.Equal(t, 3, cases[1].Line)
		require.Equal(t, `not run: "takes all" ended the file`, cases[2].Message)
	}
}

// A report of any text is well-formed XML.
func TestSpecJUnitIsWellFormed(t *testing.T) {
	var b bytes.Buffer
	f := specFile{File: "a<&>\x00_spec.lua", Cases: []specCase{
		{Name: "\x1b[0m ]]> \xff", Status: caseFailed, Message: "]]>\x00\ufffe\u2028 first\nsecond", Traceback: "x"},
		{Name: "n", Status: caseNotRun, Message: `"<>&'`},
	}}
	require.NoError(t, (&junitReport{out: &b}).end(&specDoc{Files: []specFile{f}}))
	dec := xml.NewDecoder(&b)
	for {
		if _, err := dec.Token(); err == io.EOF {
			break
		} else {
			require.NoError(t, err)
		}
	}
}
