package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// firstProcess names the variable that makes this test binary a knl that is given
// the orphans of what it starts, as the first process of a container is. Its value
// is the knl.
const firstProcess = "KNL_TEST_FIRST_PROCESS"

func init() {
	if path := os.Getenv(firstProcess); path != "" {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			panic(err)
		}
		panic(syscall.Exec(path, append([]string{"knl"}, os.Args[1:]...), os.Environ()))
	}
}

// orphaning leaves processes behind, which end with their command, and looks until
// they are gone. A dead one that nobody has collected would still take a signal.
const orphaning = `
local std = require("std")
for _ = 1, 3 do
  assert(std.sh.run("sleep 300 >/dev/null 2>&1 & echo $! >>pids; exit 3").code == 3)
end
for _ = 1, 200 do
  if std.sh.run("for p in $(cat pids); do kill -0 $p 2>/dev/null && exit 1; done; exit 0").code == 0 then
    return
  end
  std.time.sleep(0.05)
end
error("nobody has collected them")
`

func TestTheFirstProcessCollectsOrphans(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "script.lua"), []byte(orphaning), 0o600))
	cmd := exec.Command(os.Args[0], "run", "--store", "mem", "script.lua")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), firstProcess+"="+binary)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
