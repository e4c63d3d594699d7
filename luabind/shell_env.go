package luabind

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// What the name of a variable says of a credential: words of it, between
// underlines and without the digits and the plural behind them, endings of such
// words, and texts anywhere in it.
var (
	secretWords   = []string{"PAT", "AUTH", "AUTHORIZATION", "BEARER", "COOKIE", "DSN", "CRED", "AWS"}
	secretEndings = []string{"KEY", "TOKEN", "PASS", "PWD", "PW", "JWT"}
	secretTexts   = []string{"SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL"}
)

// openNames look like credentials and are none: working folders, and the way to
// an agent that gives no key away. openWords end as if they were.
var (
	openNames = []string{"PWD", "OLDPWD", "SSH_AUTH_SOCK"}
	openWords = []string{"ASKPASS", "BYPASS", "COMPASS"}
)

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
	return isSecretSingular(word) || isSecretSingular(strings.TrimSuffix(word, "S"))
}

func isSecretSingular(word string) bool {
	return !slices.Contains(openWords, word) && (slices.Contains(secretWords, word) ||
		slices.ContainsFunc(secretEndings, func(s string) bool { return strings.HasSuffix(word, s) }))
}

// isCount says whether a variable counts tokens, as MAX_TOKENS does, and has none.
func isCount(name, value string) bool {
	_, err := strconv.ParseFloat(value, 64)
	return err == nil && strings.HasSuffix(strings.ToUpper(name), "TOKENS")
}

// What the value of a variable says of a credential, whatever its name is.
var (
	// Of a URL: who is asking, and by which password, which may hold a slash.
	withUser       = regexp.MustCompile(`^([^/\s:@]*)(?::([^\s@]+))?@`)
	beginsWithPort = regexp.MustCompile(`^[0-9]{1,5}/`)
	likeAToken     = regexp.MustCompile(`^[A-Za-z0-9_-]{20,}$`)
	urlBeginning   = regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*://`)

	// user:password@host without a scheme, as database drivers have it. The
	// password of a path list would begin with a slash.
	likeAnAddress = regexp.MustCompile(`^([\w.+%-]+):[^\s@/\\~.][^\s@]*@(?:/|\w+\(|[A-Za-z0-9][\w.-]*(?:[:/?]|$))`)

	// Password=…, as in lists of a connection's options and in queries. Short
	// names count alone only.
	secretField = regexp.MustCompile(`(?i)(?:(?:password|passwd|passphrase|secret|accountkey|sharedaccesskey|sharedaccesssignature|authorization)|` +
		`(?:^|[?&;,\s"'])(?:pwd|pass|pw|sig|jwt|token|auth|bearer|(?:api|access|private|auth|refresh|id|session)[_-]?(?:key|token))|[?&;]key)` +
		`(?:["']?\s*=\s*|["']\s*:\s*|:\s+)["']?[^\s;&"'=:,]`)

	// What the services make keys look like.
	serviceKey = regexp.MustCompile(`\b(?:gh[opsur]_[A-Za-z0-9]{20}|github_pat_\w{20}|glpat-[\w-]{20}|xox[abeprs]-[\w-]{10}|` +
		`sk-[\w-]{32}|A[KS]IA[A-Z0-9]{16}|eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.|AIza[\w-]{30})|-----BEGIN [A-Z ]*PRIVATE KEY`)
)

// openSchemes go in front of a colon and are no users.
var openSchemes = []string{"acct", "docker", "jsr", "mailto", "npm", "sip", "xmpp"}

// isSecretValue says whether a value holds a credential whatever its name is.
func isSecretValue(value string) bool {
	for _, at := range urlBeginning.FindAllStringIndex(value, -1) {
		if isSecretURL(value[at[1]:]) {
			return true
		}
	}
	if m := likeAnAddress.FindStringSubmatch(value); m != nil && isUser(m[1], value) {
		return true
	}
	return secretField.MatchString(value) || serviceKey.MatchString(value)
}

// isUser tells who is asking from other words in front of a colon: an image of
// containers has its digest behind the @.
func isUser(word, value string) bool {
	return !slices.Contains(openSchemes, strings.ToLower(word)) && !strings.Contains(value, "@sha")
}

// isSecretURL says whether a URL that goes on so has a password, or a token in
// its place.
func isSecretURL(rest string) bool {
	m := withUser.FindStringSubmatch(rest)
	switch {
	case m == nil:
		return false
	case m[2] != "":
		return !beginsWithPort.MatchString(m[2])
	}
	return likeAToken.MatchString(m[1]) && strings.ContainsAny(m[1], "0123456789")
}

func isSecret(name, value string) bool {
	return isSecretName(name) && !isCount(name, value) || isSecretValue(value)
}

// childEnv answers the environment of a command: ours without what looks like a
// credential by its name or value, or holds a value known as secret, then what
// the script sets. A nil value takes a variable away.
func childEnv(ours []string, secrets *Masker, set map[string]*string) []string {
	env := []string{}
	for _, entry := range ours {
		name, value, _ := strings.Cut(entry, "=")
		if _, given := set[name]; !given && !isSecret(name, value) && !secrets.holds(value) {
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
