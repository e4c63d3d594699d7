package luabind

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// watching is what the watcher runs: it keeps the sessions that it is told of,
// one a line, and kills what is left of them when nobody can tell it more. It
// needs no other program. A process that starts another while it is killed is
// looked for again.
const watching = `
left=' '
while read -r what session; do
	case $what in
	begun) left="$left$session " ;;
	over) case $left in *" $session "*) left="${left%% "$session" *} ${left#* "$session" }" ;; esac ;;
	esac
done
for session in $left; do kill -KILL "-$session"; done
[ "$left" = ' ' ] && exit
found=1 pass=0
while [ $found = 1 ] && [ $pass -lt 100 ]; do
	found=0 pass=$((pass + 1))
	for stat in /proc/[0-9]*/stat; do
		read -r line <"$stat" || continue
		pid=${line%% *}
		set -- ${line##*) }
		case $1 in [ZX]) continue ;; esac
		case $left in *" ${4:-none} "*) found=1; kill -KILL "$pid" ;; esac
	done
done
`

// watcher is a small process beside this one for what this one cannot do: end
// the commands when it is itself ended without warning, as by kill -9. It leads a
// session of its own, knows nothing of our environment, and ends with us. Where
// the system has no /bin/sh there is none.
type watcher struct {
	cmd  *exec.Cmd
	pipe *os.File // ours alone: no child gets it, so it ends with us
}

func newWatcher() (*watcher, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd := exec.Command("/bin/sh", "-c", watching, "knl-watcher")
	cmd.Dir, cmd.Env, cmd.Stdin = "/", []string{}, r
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		w.Close()
		return nil, err
	}
	return &watcher{cmd, w}, nil
}

// tell says whether the watcher could be told.
func (w *watcher) tell(what string, session int) bool {
	w.pipe.SetWriteDeadline(time.Now().Add(time.Second))
	_, err := fmt.Fprintf(w.pipe, "%s %d\n", what, session)
	return err == nil
}

// end ends a watcher that can no longer be told anything.
func (w *watcher) end() {
	w.cmd.Process.Kill()
	w.cmd.Wait()
	w.pipe.Close()
}
