package luabind

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// shell makes a command for /bin/sh in a folder of its own.
func shell(t *testing.T, text string) *command {
	return &command{
		argv: []string{"/bin/sh", "-c", text}, dir: t.TempDir(),
		env: []string{"PATH=" + os.Getenv("PATH")}, maxBytes: 1 << 16, grace: 50 * time.Millisecond,
	}
}

// theStarter is the one goroutine that stays: it starts commands. It runs from
// here on, so that no test takes it for its own.
var theStarter = goleak.IgnoreAnyFunction("github.com/knl-run/knl/luabind.starting")

func init() { starter() }

func mustRun(t *testing.T, c *command) commandResult {
	t.Helper()
	r, err := c.run(context.Background())
	require.NoError(t, err)
	return r
}

func TestCommandResults(t *testing.T) {
	defer goleak.VerifyNone(t, theStarter)
	for text, want := range map[string]commandResult{
		"echo out; echo err >&2; exit 3":         {code: 3, stdout: "out\n", stderr: "err\n"},
		"true":                                   {},
		"kill -9 $$":                             {code: 137},
		"printf '\\377\\000x'":                   {stdout: "\xff\x00x"},
		"no_such_command_here 2>/dev/null":       {code: 127},
		"read x; echo \"<$x>\"":                  {stdout: "<>\n"},
		"echo $HOME$SHLVLX":                      {stdout: "\n"},
		"seq 3 | while read n; do echo $n; done": {stdout: "1\n2\n3\n"},
	} {
		assert.Equal(t, want, mustRun(t, shell(t, text)), text)
	}
	c := shell(t, "pwd; echo $PWD; cat")
	c.stdin = "from stdin"
	assert.Equal(t, c.dir+"\n"+c.dir+"\nfrom stdin", mustRun(t, c).stdout)

	c = shell(t, "")
	c.argv = []string{"printenv", "PWD"}
	assert.Equal(t, c.dir+"\n", mustRun(t, c).stdout)

	c = shell(t, "true") // reads nothing of a stdin larger than any pipe
	c.stdin = strings.Repeat("x", 1<<20)
	assert.Equal(t, commandResult{}, mustRun(t, c))

	c = shell(t, "cat")
	c.stdin, c.maxBytes = strings.Repeat("x", 1<<20), 1<<21
	assert.Equal(t, c.stdin, mustRun(t, c).stdout)

	c = shell(t, "seq 1 100000; seq 1 100000 >&2")
	c.maxBytes = 10
	r := mustRun(t, c)
	assert.Equal(t, "1\n2\n3\n[... 588885 bytes cut ...]\n0000\n", strings.Replace(r.stdout, "\n\n[", "\n[", 1))
	assert.Equal(t, r.stdout, r.stderr)
}

func TestCommandsThatDoNotStart(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plain"), []byte("x"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "script"), []byte("#!/no/such/interpreter\n"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "works"), []byte("#!/bin/sh\necho $1\n"), 0o755))
	huge := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		argv             []string
		dir, kind, wrong string
	}{
		{[]string{"no_such_command_here"}, dir, "not_found", `"no_such_command_here": command not found in PATH`},
		{[]string{"./none"}, dir, "not_found", `"./none": no such file or folder`},
		{[]string{"./plain"}, dir, "denied", `"./plain": not executable: permission denied`},
		{[]string{"./script"}, dir, "not_found", `"./script": no such file or folder`},
		{[]string{"true"}, dir + "/none", "not_found", `cwd "` + dir + `/none": no such folder`},
		{[]string{"true"}, dir + "/plain", "not_found", `cwd "` + dir + `/plain": no such folder`},
		{[]string{"true", huge, huge, huge}, dir, "io", `"true": arguments and environment are longer than the system takes, stdin has no such limit`},
	} {
		_, err := (&command{argv: c.argv, dir: c.dir}).run(context.Background())
		assert.EqualError(t, err, c.wrong)
		fault, ok := stdFault(err)
		assert.True(t, ok)
		assert.Equal(t, c.kind, fault.Kind, c.wrong)
	}
	r, err := (&command{argv: []string{"./works", "a b"}, dir: dir, maxBytes: 100}).run(context.Background())
	require.NoError(t, err)
	assert.Equal(t, "a b\n", r.stdout)
}

// pidsIn reads the numbers that a command wrote into the file pids.
func pidsIn(t *testing.T, dir string) []int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "pids"))
	require.NoError(t, err)
	pids := []int{}
	for _, word := range strings.Fields(string(data)) {
		pid, err := strconv.Atoi(word)
		require.NoError(t, err)
		pids = append(pids, pid)
	}
	return pids
}

// assertGone asserts that no process of that number runs. One that is dead but
// not yet collected by the system's first process is gone too.
func assertGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		assert.Eventually(t, func() bool {
			if syscall.Kill(pid, 0) == syscall.ESRCH {
				return true
			}
			stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
			return err == nil && strings.Contains(string(stat), ") Z ")
		}, 10*time.Second, 5*time.Millisecond, "process %d is left", pid)
	}
}

// Each command writes its processes to pids: a child, a grandchild, and one
// that ignores TERM.
const family = `
	sh -c 'echo $$ >>pids; sleep 300 & echo $! >>pids; wait' &
	sh -c 'trap "" TERM; echo $$ >>pids; while :; do sleep 0.05; done' &
	echo $$ >>pids
	while [ $(wc -l <pids) -lt 4 ]; do sleep 0.01; done
	touch ready
`

// stopWhenReady runs c up to the file ready and then ends it as a timeout does.
func stopWhenReady(t *testing.T, c *command) commandResult {
	t.Helper()
	p, err := c.start()
	require.NoError(t, err)
	assert.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(c.dir, "ready"))
		return err == nil
	}, 30*time.Second, time.Millisecond)
	over, stop := context.WithCancel(context.Background())
	stop()
	return p.finish(over, c.grace)
}

func TestTimeout(t *testing.T) {
	defer goleak.VerifyNone(t, theStarter)
	c := shell(t, "sleep 300")
	c.timeout = 100 * time.Millisecond
	assert.Equal(t, commandResult{code: 143, timedOut: true}, mustRun(t, c))
}

func TestStoppingEndsTheWholeGroup(t *testing.T) {
	defer goleak.VerifyNone(t, theStarter)
	c := shell(t, "echo begun; "+family+"wait")
	r := stopWhenReady(t, c)
	assert.True(t, r.timedOut)
	assert.Equal(t, 143, r.code)
	assert.Equal(t, "begun\n", r.stdout)
	pids := pidsIn(t, c.dir)
	require.Len(t, pids, 4)
	assertGone(t, pids)
}

func TestStoppingKillsWhatIgnoresTerm(t *testing.T) {
	c := shell(t, `trap "" TERM; echo $$ >pids; touch ready; while :; do sleep 0.05; done`)
	assert.Equal(t, 137, stopWhenReady(t, c).code)
	assertGone(t, pidsIn(t, c.dir))
}

func TestTermLetsACommandCleanUp(t *testing.T) {
	c := shell(t, `exec 2>/dev/null; trap 'echo cleaned; exit 7' TERM; touch ready; while :; do sleep 0.01; done`)
	c.grace = 30 * time.Second
	assert.Equal(t, commandResult{code: 7, stdout: "cleaned\n", timedOut: true}, stopWhenReady(t, c))
}

func TestCancelEndsTheCommand(t *testing.T) {
	defer goleak.VerifyNone(t, theStarter)
	c := shell(t, "echo $$ >pids; touch ready; sleep 300")
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for _, err := os.Stat(filepath.Join(c.dir, "ready")); err != nil; _, err = os.Stat(filepath.Join(c.dir, "ready")) {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	_, err := c.run(ctx)
	assert.ErrorIs(t, err, context.Canceled)
	assertGone(t, pidsIn(t, c.dir))
}

func TestBackgroundJobsEndWithTheCommand(t *testing.T) {
	defer goleak.VerifyNone(t, theStarter)
	c := shell(t, family+"echo done")
	assert.Equal(t, commandResult{stdout: "done\n"}, mustRun(t, c))
	assertGone(t, pidsIn(t, c.dir))

	c = shell(t, "sleep 300 >/dev/null 2>&1 & echo $! >pids; exit 4")
	assert.Equal(t, commandResult{code: 4}, mustRun(t, c))
	assertGone(t, pidsIn(t, c.dir))
}

// A process that left the group keeps the pipes open; the command ends anyway.
func TestAPipeHeldElsewhereDoesNotHang(t *testing.T) {
	defer goleak.VerifyNone(t, theStarter)
	c := shell(t, `setsid sh -c 'echo $$ >pids; touch ready; exec sleep 300' & while [ ! -e ready ]; do sleep 0.01; done; echo done`)
	c.stdin = strings.Repeat("x", 1<<20)
	r := mustRun(t, c)
	assert.Equal(t, "done\n", r.stdout)
	for _, pid := range pidsIn(t, c.dir) {
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL), "it is out of reach of its command, not of the test")
	}
}

func TestEndProcessesEndsEveryGroupAtOnce(t *testing.T) {
	defer goleak.VerifyNone(t, theStarter)
	all := []*command{shell(t, family+"wait"), shell(t, `trap "" TERM; echo $$ >pids; touch ready; while :; do sleep 0.05; done`)}
	over := make(chan commandResult, len(all))
	for _, c := range all {
		go func() {
			r, _ := c.run(context.Background())
			over <- r
		}()
	}
	for _, c := range all {
		require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(c.dir, "ready")); return err == nil }, 30*time.Second, time.Millisecond)
	}
	EndProcesses()
	for _, c := range all {
		assert.Equal(t, 137, (<-over).code)
		assertGone(t, pidsIn(t, c.dir))
	}
	live.Lock()
	defer live.Unlock()
	assert.Empty(t, live.leaders)
}

func TestChildEnvKeepsCredentialsBack(t *testing.T) {
	value := func(s string) *string { return &s }
	secrets := &Masker{}
	secrets.Add("hunter22")
	secrets.Add("root")
	ours := []string{
		"PATH=/bin", "HOME=/root", "LANG=C", "MAX_TOKENS=5", "KEYBOARD=us", "SSH_AUTH_SOCK=/s", "EMPTY=",
		"OPENAI_API_KEY=a", "api_key=a", "GITHUB_TOKEN=a", "TOKEN=a", "CLIENT_SECRET=a", "PGPASSWORD=a", "DB_PASSWORD_FILE=a",
		"AWS_REGION=a", "AWS_SECRET_ACCESS_KEY=a", "STRIPE_SECRET_KEY=a", "GOOGLE_APPLICATION_CREDENTIALS=a", "GPG_PASSPHRASE=a",
		"OPENAI_API_KEY_2=a", "STRIPE_KEY=a", "AZURE_OPENAI_KEY=a", "SSHKEY=a", "GH_PAT=a", "GITHUB_TOKEN_RO=a", "TOKEN_GITHUB=a", "TOKEN2=a",
		"NPM_AUTH=a", "npm_config_//registry/:_auth=a", "MYSQL_PWD=a", "DB_PASS=a", "COOKIE=a", "SENTRY_DSN=a", "SSHPASS=a",
		"DATABASE_URL=postgres://u:p@h/db", "HTTPS_PROXY=http://u:p@proxy:8080", "REDIS_URL=redis://:p@h", "PLAIN=hunter22", "USER=root",
		"PWD=/w", "OLDPWD=/w", "SSH_ASKPASS=/bin/ask", "GIT_AUTHOR_NAME=a", "XAUTHORITY=/x", "TOKENIZERS_PARALLELISM=1", "http_proxy=http://proxy:8080", "URL=https://u@h/a:b", "AT=http://h:80/x@y",
	}
	got := childEnv(ours, secrets, map[string]*string{
		"GITHUB_TOKEN": value("given"), "LANG": nil, "NEW": value("a=b"), "HOME": value("/home"),
	})
	assert.Equal(t, []string{
		"AT=http://h:80/x@y", "EMPTY=", "GITHUB_TOKEN=given", "GIT_AUTHOR_NAME=a", "HOME=/home", "KEYBOARD=us", "MAX_TOKENS=5", "NEW=a=b",
		"OLDPWD=/w", "PATH=/bin", "PWD=/w", "SSH_ASKPASS=/bin/ask", "SSH_AUTH_SOCK=/s", "TOKENIZERS_PARALLELISM=1", "URL=https://u@h/a:b", "XAUTHORITY=/x", "http_proxy=http://proxy:8080",
	}, got)
}

func TestWhatLooksLikeACredential(t *testing.T) {
	long := strings.Repeat("a1B2c3D4", 5)
	for _, entry := range []string{
		"GITHUB_TOKENS=a,b", "APIKEYS=a", "OPENAI_APIKEYS=a", "KEYS=a", "DBPASS=a", "PGPASS=a", "DB_PWD2=a", "ROOTPWD=a", "ROOT_PW=a", "DBPW=a",
		"JWT=a", "SESSION_JWTS=a", "GH_PATS=a", "COOKIES=a", "CREDS=a", "DSNS=a", "AUTH_TOKENS=a",
		"U=https://ghp_abcdefghijklmnopqrstuvwxyz0123456789@github.com", "U=https://" + long + "@h/x", "U=redis://:a/b@h", "U=redis://:8a/b@h", "U=redis://:6379@h", "U=https://h/?key=x", "U=a http://h:80/x,https://u:p@h/",
		"U=jdbc:postgresql://h/db?user=a&password=x", "U=u:pw@tcp(h)/db", "U=u:p/w@tcp(h:1)/db", "U=u:pw@/db", "U=u:pw@h:5432/db", "U=u:pw@db.example.com",
		"U=Server=h;Database=d;Password=x;", "U=Server=h; Pwd = x", "U=host=h user=u password='x'", "U=DefaultEndpointsProtocol=https;AccountName=a;AccountKey=x==",
		"U=Endpoint=sb://h/;SharedAccessKey=x=", "U=https://h/?sv=1&sig=x", "U=https://h/?api_key=x", "U=https://h/?access_token=x", "U=-Djavax.net.ssl.keyStorePassword=x",
		"U=Authorization: Basic x", `U={"auth":"x"}`, `U={"client_secret": "x"}`,
		"U=ghp_" + long, "U=glpat-" + long, "U=sk-ant-api03-" + long, "U=AKIAABCDEFGHIJKLMNOP", "U=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.x", "U=-----BEGIN RSA PRIVATE KEY-----",
	} {
		name, value, _ := strings.Cut(entry, "=")
		assert.True(t, isSecret(name, value), entry)
	}
	for _, entry := range []string{
		"PATH=/opt/homebrew/opt/node@20/bin:/usr/bin:/home/me/py@3/bin", "HOME=/root", "LANG=C", "GOPATH=/go", "GOFLAGS=-mod=mod -ldflags=-X=main.v=1", "PWD=/w", "OLDPWD=/w",
		"SSH_AUTH_SOCK=/s", "SSH_ASKPASS=/a", "GIT_ASKPASS=/a", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b.c", "XAUTHORITY=/x", "KUBECONFIG=/k", "KEYCLOAK_HOST=h", "KEYBOARD=us",
		"MAX_TOKENS=4096", "MAX_TOKENS=1e5", "TOKENIZERS_PARALLELISM=1", "PATHS=/a", "COMPASS=n", "HTTP_BYPASS=a", "PATTERN=x", "AUTHOR=a", "PASSENGER=a",
		"U=https://me@dev.azure.com/x", "U=ssh://git@github.com/a/b", "U=git@github.com:a/b.git", "U=postgres://app@db/x", "U=http://h:80/x@y", "U=http://h:8080",
		"U=https://registry:5000/@scope/p", "U=https://production-service-account@h/x", "U=npm:lodash@4.17.21", "U=mailto:me@h.de", "U=alpine:3.19@sha256:abc", "U=/a:b@2/c",
		"LS_COLORS=rs=0:di=01;34:ln=01;36:pi=40;33", "DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/0/bus,guid=a", "U=user=a;database=b", "U=password=", "U=keyboard=us", "U=sslmode=require",
		"PS1=\\u@\\h:\\w", "TERM=xterm-256color", "U=12:30@noon pm", "U=gcr.io/p/secret:latest", "U=a, key=2", "U=http://h:80/@x",
	} {
		name, value, _ := strings.Cut(entry, "=")
		assert.False(t, isSecret(name, value), entry)
	}
}
