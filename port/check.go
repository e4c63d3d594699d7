package port

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Rule names a rule of a provider that a body broke.
type Rule string

// The rules of [Check], as they are defined in the package comment.
const (
	RuleForm     Rule = "form"
	RuleRoles    Rule = "roles"
	RuleSystem   Rule = "system"
	RuleText     Rule = "text"
	RulePairs    Rule = "pairs"
	RuleIDs      Rule = "ids"
	RuleLast     Rule = "last"
	RuleThinking Rule = "thinking"
	RuleTools    Rule = "tools"
	RuleCache    Rule = "cache"
)

// Violation is the first place where a body breaks a rule.
type Violation struct {
	Rule   Rule
	At     string // "messages[3].content[0]"; its first index is the message's
	Detail string
}

// Error answers "<at>: <detail> (rule <rule>)".
func (v *Violation) Error() string {
	return fmt.Sprintf("%s: %s (rule %s)", v.At, v.Detail, v.Rule)
}

// Check answers nil when the provider of t would take body, else a *Violation.
// It knows nothing of how a body was made.
func Check(t Target, body []byte) error {
	if !utf8.Valid(body) {
		return breaks(RuleForm, "body", "not UTF-8")
	}
	switch t.Dialect {
	case Anthropic:
		return checkAnthropic(t, body)
	case OpenAI:
		return checkOpenAI(t, body)
	case Responses:
		return checkResponses(t, body)
	}
	return t.unknown()
}

func breaks(rule Rule, at, format string, args ...any) error {
	return &Violation{Rule: rule, At: at, Detail: fmt.Sprintf(format, args...)}
}

// decode reads raw strictly: one value, no key twice.
func decode(at string, raw []byte, dst any) error {
	if err := jsonv2.Unmarshal(raw, dst); err != nil {
		return breaks(RuleForm, at, "%v", err)
	}
	return nil
}

// checkKeys refuses a key that the provider does not know.
func checkKeys(at string, raw []byte, known ...string) error {
	var have map[string]jsontext.Value
	if err := decode(at, raw, &have); err != nil {
		return err
	}
	var strange []string
	for key := range have {
		if !strings.Contains(" "+strings.Join(known, " ")+" ", " "+key+" ") {
			strange = append(strange, key)
		}
	}
	if len(strange) == 0 {
		return nil
	}
	sort.Strings(strange)
	return breaks(RuleForm, at, "got the key %q, want none but %s", strange[0], strings.Join(known, ", "))
}

func checkText(at, text string) error {
	if blank(text) {
		return breaks(RuleText, at, "got %q, want text that is not only space", text)
	}
	return nil
}

// pairing follows the calls of a body: which ids were used, which are open.
type pairing struct {
	limit int
	used  map[string]string // id → where
	open  []string          // ids of the last assistant message that wait for a result
	from  string            // where that message is
}

func newPairing(limit int) *pairing { return &pairing{limit: limit, used: map[string]string{}} }

func (p *pairing) call(at, id, name string) error {
	if !legalWord.MatchString(id) || len(id) > p.limit {
		return breaks(RuleIDs, at, "got the id %q, want 1 to %d letters, digits, _ or -", id, p.limit)
	}
	if where, used := p.used[id]; used {
		return breaks(RuleIDs, at, "the id %q was used at %s already, want each id once", id, where)
	}
	if err := checkName(at, name); err != nil {
		return err
	}
	p.used[id] = at
	p.open, p.from = append(p.open, id), at
	return nil
}

func (p *pairing) result(at, id string) error {
	for i, open := range p.open {
		if open == id {
			p.open = append(p.open[:i:i], p.open[i+1:]...)
			return nil
		}
	}
	if _, used := p.used[id]; used {
		return breaks(RulePairs, at, "the call %q is answered already or stands further up, want one result right behind its message", id)
	}
	return breaks(RulePairs, at, "the result %q has no call, want one in the message before", id)
}

// closed says that what comes next must not come before the open calls are
// answered.
func (p *pairing) closed() error {
	if len(p.open) == 0 {
		return nil
	}
	return breaks(RulePairs, p.from, "the call %q has no result in the next message", p.open[0])
}

func checkName(at, name string) error {
	if !legalWord.MatchString(name) || len(name) > nameLimit {
		return breaks(RuleTools, at, "got the name %q, want 1 to %d letters, digits, _ or -", name, nameLimit)
	}
	return nil
}

// declared checks one tool and remembers its name.
func declared(at, name string, schema jsontext.Value, seen map[string]bool) error {
	if err := checkName(at, name); err != nil {
		return err
	}
	if seen[name] {
		return breaks(RuleTools, at, "the name %q is used twice", name)
	}
	seen[name] = true
	var top map[string]jsontext.Value
	if schema.Kind() != '{' || jsonv2.Unmarshal(schema, &top) != nil {
		return breaks(RuleTools, at, "got no schema object, want { type = \"object\", … }")
	}
	if string(bytes.TrimSpace(top["type"])) != `"object"` {
		return breaks(RuleTools, at, "got a schema of type %s, want \"object\"", orNothing(top["type"]))
	}
	for _, key := range composers {
		if top[key] != nil {
			return breaks(RuleTools, at, "got %s at the top of the schema, want it under a property", key)
		}
	}
	return nil
}

func orNothing(raw jsontext.Value) string {
	if raw == nil {
		return "nothing"
	}
	return string(raw)
}
