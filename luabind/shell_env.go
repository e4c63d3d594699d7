package luabind

import (
	"regexp"
	"slices"
	"strings"
)

// What the name of a variable says of a credential: words of it, between
// underlines and without the digits behind them, endings of such words, and texts
// anywhere in it.
var (
	secretWords = []string{
		"KEYS", "PASS", "SSHPASS", "PWD", "PAT", "AUTH", "AUTHORIZATION",
		"BEARER", "COOKIE", "COOKIES", "DSN", "CREDS", "AWS",
	}
	secretEndings = []string{"KEY", "TOKEN"}
	secretTexts   = []string{"SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL"}
)

// openNames look like credentials and are none: the working folder, and the way
// to an agent that gives no key away.
var openNames = []string{"PWD", "SSH_AUTH_SOCK"}

// isSecretName says whether a variable of that name is kept from commands.
func isSecretName(name string) bool {
	name = strings.ToUpper(name)
	if slices.Contains(openNames, name) {
		return false
	}
	return slices.ContainsFunc(strings.FieldsFunc(name, betweenWords), isSecretWord) ||
		slices.ContainsFunc(secretTexts, func(s string) bool { return strings.Contains(name, s) })
}

func betweenWords(r rune) bool { return !(r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') }

func isSecretWord(word string) bool {
	word = strings.TrimRight(word, "0123456789")
	return slices.Contains(secretWords, word) ||
		slices.ContainsFunc(secretEndings, func(s string) bool { return strings.HasSuffix(word, s) })
}

// withPassword finds a URL that says who is asking, and by which password.
var withPassword = regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*://[^/\s:@]*:[^/\s@]+@`)

// isSecretValue says whether a value holds a credential whatever its name is.
func isSecretValue(value string) bool { return withPassword.MatchString(value) }

// childEnv answers the environment of a command: ours without what looks like a
// credential by its name or value, or holds a value known as secret, then what
// the script sets. A nil value takes a variable away.
func childEnv(ours []string, secrets *Masker, set map[string]*string) []string {
	env := []string{}
	for _, entry := range ours {
		name, value, _ := strings.Cut(entry, "=")
		if _, given := set[name]; !given && !isSecretName(name) && !isSecretValue(value) && !secrets.holds(value) {
			env = append(env, entry)
		}
	}
	for name, value := range set {
		if value != nil {
			env = append(env, name+"="+*value)
		}
	}
	slices.Sort(env)
	return env
}
