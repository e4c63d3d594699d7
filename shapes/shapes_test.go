package shapes

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
)

// kernelWords answers the string constants of a file of the kernel whose names
// begin with a prefix, and the first arguments of the calls of fn.
func kernelWords(t *testing.T, file, prefix, fn string) (words []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), "../kernel/"+file, nil, 0)
	require.NoError(t, err)
	add := func(e ast.Expr) {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			word, err := strconv.Unquote(lit.Value)
			require.NoError(t, err)
			words = append(words, word)
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			if n.Tok != token.CONST {
				return false
			}
		case *ast.ValueSpec:
			for i, id := range n.Names {
				if prefix != "" && id.IsExported() && strings.HasPrefix(id.Name, prefix) && i < len(n.Values) {
					add(n.Values[i])
				}
			}
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && fn != "" && id.Name == fn {
				add(n.Args[0])
			}
		}
		return true
	})
	slices.Sort(words)
	return slices.Compact(words)
}

// TestClosedListsAreTheKernels: I2. A list that the kernel has only as constants
// is held against its source.
func TestClosedListsAreTheKernels(t *testing.T) {
	sorted := func(words []string) []string { return slices.Sorted(slices.Values(words)) }
	assert.Equal(t, kernelWords(t, "outcome.go", "Status", ""), sorted(outcomeStatus))
	assert.Equal(t, kernelWords(t, "outcome.go", "Stage", ""), sorted(outcomeStages))
	assert.Equal(t, kernelWords(t, "beat.go", "", "Stopped"), sorted(stoppedReasons))
	kinds := kernelWords(t, "event.go", "", "")
	require.Empty(t, kinds)
	for _, prefix := range []string{"Msg", "LLM", "Tool", "Session", "Budget", "Beat", "Driver"} {
		kinds = append(kinds, kernelWords(t, "event.go", prefix, "")...)
	}
	assert.Equal(t, sorted(kinds), sorted(eventKinds))
	for name, want := range map[string]any{"error_kinds": kernel.Kinds, "call_error_kinds": kernel.CallKinds, "stop_reasons": kernel.StopReasons} {
		assert.Equal(t, fmt.Sprint(want), fmt.Sprint(kernelSet().at[name].Values), name)
	}
}

// TestEveryFieldIsShown: I1. A field that a kernel struct gains is in its Form,
// or here with the reason.
func TestEveryFieldIsShown(t *testing.T) {
	apart := map[string]string{
		"Answer.Refused": "tells the variants apart", "Answer.RefusalKind": "in refusal", "Answer.RefusalDetail": "in refusal",
		"Answer.Usage": "with counters that may be left out", "Reply.RefusalKind": "in refusal", "Reply.RefusalDetail": "in refusal",
		"CallError.Retry": "retryable, with what the kind says", "Detail.Err": "of Go",
		"Request.HasTools": "tools is there", "Request.Window": "what a fold left out is not asked",
		"Request.Extra":       "fields of their own",
		"ToolContext.Session": "a handle", "ToolContext.Deadline": "a number", "CallOptions.Deadline": "a number", "CallOptions.OnDelta": "a function",
		"TreeRow.SessionRow": "its fields",
	}
	for name, form := range kernelSet().byName {
		shown := map[string]bool{}
		for _, f := range form.Fields {
			shown[form.Type.FieldByIndex(f.Index).Name] = true
		}
		for i := range form.Type.NumField() {
			field := form.Type.Field(i)
			place := form.Type.Name() + "." + field.Name
			if field.IsExported() && !shown[field.Name] && apart[place] == "" {
				t.Errorf("%s: %s is not shown: add it to the form, or to this list with the reason", name, place)
			}
		}
	}
}

func TestSchemasOfStructs(t *testing.T) {
	type inner struct {
		N int `json:"n"`
	}
	type outer struct {
		Text  string          `json:"text"`
		Kind  kernel.CallKind `json:"kind,omitempty"`
		List  []inner         `json:"list"`
		Count *int64          `json:"count,omitempty"`
		By    map[string]bool `json:"by"`
		Plain float64
		Skip  string
	}
	f := &forms{prefix: "x.", words: map[reflect.Type]*Schema{reflect.TypeFor[kernel.CallKind](): OneOf("a")}}
	form := f.build("outer", "", outer{}, []string{"Plain plain", "Text - what it says"})
	assert.Equal(t, Shape(map[string]*Schema{
		"text":  String.Described("what it says"),
		"kind":  OneOf("a").Optional(),
		"list":  ArrayOf(Shape(map[string]*Schema{"n": Integer}, true)),
		"count": Integer.Optional(),
		"by":    MapOf(String, Boolean),
		"plain": Number,
	}, true), form.Schema())
	assert.PanicsWithValue(t, "BUG: shapes: shapes.outer has no field Wrong", func() { f.build("", "", outer{}, []string{"Wrong wrong"}) })
	assert.Panics(t, func() { f.build("", "", struct{ C chan int }{}, []string{"C c"}) })
}

func TestParseType(t *testing.T) {
	event := Shape(map[string]*Schema{"kind": String}, true).Named("knl.event")
	lookup := func(name string) *Schema {
		if name == "knl.event" {
			return event
		}
		return nil
	}
	for text, want := range map[string]*Schema{
		"string":                            String,
		"integer?":                          Integer.Optional(),
		"nil|string":                        String.Optional(),
		"string|nil|number?":                AnyOf(String, Number).Optional(),
		"string[]":                          ArrayOf(String),
		"(string|number)[][]":               ArrayOf(ArrayOf(AnyOf(String, Number))),
		"knl.event[]?":                      ArrayOf(event).Optional(),
		`"a"|"b"|true`:                      OneOf[any]("a", "b", true),
		`"a"|string|"b"`:                    AnyOf(OneOf("a", "b"), String),
		"table<string, string|false>":       MapOf(String, AnyOf(String, OneOf(false))),
		"{ a: string, b?: integer[] }":      Shape(map[string]*Schema{"a": String, "b": ArrayOf(Integer).Optional()}, true),
		"[string, number]":                  Tuple(String, Number),
		"fun()":                             Function.Named("fun()"),
		"fun(a: string, b?: any): any, ...": Function.Named("fun(a: string, b?: any): any, ..."),
		"fun(...: any)|string":              AnyOf(Function.Named("fun(...: any)"), String),
	} {
		got, err := ParseType(text, lookup)
		require.NoError(t, err)
		assert.Equal(t, want, got, text)
	}
	for text, why := range map[string]string{
		"":                   `want a type at ""`,
		"strin":              `unknown type "strin"`,
		"event":              `unknown type "event"`,
		"string string":      `got "string" behind the type`,
		"string|":            `want a type at ""`,
		"{ a string }":       `want ":" at "string }"`,
		"{ a: any, a: any }": "want the name of a field, once",
		"table<string>":      `want "," at ">"`,
		"(string":            `want ")" at ""`,
		`"a`:                 "want a closing quote",
		"fun(a)":             `want ":" at ")"`,
		"fun(a: any b: any)": `want , or ) at "b: any)"`,
		"[string":            `want "]" at ""`,
	} {
		_, err := ParseType(text, lookup)
		assert.ErrorContains(t, err, why, text)
	}
}

func TestParseReturns(t *testing.T) {
	none := func(string) *Schema { return nil }
	for text, want := range map[string]string{
		"boolean, string?": "2 false", "...": "0 true", "string, ...": "1 true",
		"fun(): string, integer": "1 false", "(fun(): string), integer": "2 false",
	} {
		list, rest, err := ParseReturns(text, none)
		require.NoError(t, err, text)
		assert.Equal(t, want, fmt.Sprint(len(list), rest), text)
	}
	for _, text := range []string{"any ...", "string,", "..., string", "", "string;"} {
		_, _, err := ParseReturns(text, none)
		assert.Error(t, err, text)
	}
}

// TestPlainData: a schema is what lshape makes: its parts stand in the fields
// that the checks read.
func TestPlainData(t *testing.T) {
	for want, s := range map[string]*Schema{
		"map[kind:prim prim:string]":                 String,
		"map[kind:integer]":                          Integer,
		"map[kind:one_of values:[a b]]":              OneOf("a", "b"),
		"map[cats:knl.x kind:any]":                   Any.Named("knl.x"),
		"map[doc:d inner:prim kind:described]":       String.Described("d"),
		"map[inner:prim kind:optional]":              String.Optional().Optional(),
		"map[inner:integer kind:bounded min:1]":      Integer.AtLeast(1),
		"map[inner:prim kind:bounded min_len:1]":     String.NotEmpty(),
		"map[elem:prim kind:array_of]":               ArrayOf(String),
		"map[key:prim kind:map_of val:any]":          MapOf(String, Any),
		"map[fields:[a] kind:shape open:false]":      Shape(map[string]*Schema{"a": Any}, false),
		"map[kind:any_of variants:[prim any]]":       AnyOf(String, Any),
		"map[items:[prim any] kind:tuple]":           Tuple(String, Any),
		"map[kind:discriminated tag:t variants:[a]]": Discriminated("t", map[string]*Schema{"a": Shape(nil, true)}),
	} {
		data := s.Data()
		for name, v := range data {
			switch v := v.(type) {
			case *Schema:
				data[name] = v.Kind
			case []*Schema:
				kinds := make([]string, len(v))
				for i := range v {
					kinds[i] = v[i].Kind
				}
				data[name] = kinds
			case map[string]*Schema:
				keys := []string{}
				for k := range v {
					keys = append(keys, k)
				}
				data[name] = keys
			}
		}
		assert.Equal(t, want, fmt.Sprint(data))
	}
	assert.Panics(t, func() { (&Schema{Kind: "other"}).Data() })
}
