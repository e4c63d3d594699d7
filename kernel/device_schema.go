package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemaURL is where a schema stands for its own references.
const schemaURL = "knl:///schema"

// keptSchemas is how many compiled schemas are remembered: devices are made anew
// for every beat, of the same tools.
const keptSchemas = 1024

var (
	schemasMu sync.Mutex
	schemas   = map[string]*jsonschema.Schema{} // by how they were compiled and their text
)

// compiledSchema compiles a schema in canonical form. One that arguments are not
// validated by is held to what providers hold it to: JSON Schema of 2020-12,
// whatever its $schema says, with patterns of any language.
func compiledSchema(text []byte, strict bool) (*jsonschema.Schema, error) {
	key := fmt.Sprint(strict, " ", string(text))
	schemasMu.Lock()
	defer schemasMu.Unlock()
	if s := schemas[key]; s != nil {
		return s, nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if top, ok := doc.(map[string]any); ok && !strict {
		delete(top, "$schema")
		c.UseRegexpEngine(anyPattern)
	}
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, SchemaFault(err)
	}
	s, err := c.Compile(schemaURL)
	if err != nil {
		return nil, SchemaFault(err)
	}
	if len(schemas) == keptSchemas {
		clear(schemas)
	}
	schemas[key] = s
	return s, nil
}

// CompileSchema compiles a JSON Schema as providers read it: of 2020-12, whatever its
// $schema says, with patterns of any language. A $ref may not lead out of it. The
// error names the places, in a line.
func CompileSchema(text []byte) (*jsonschema.Schema, error) { return compiledSchema(text, false) }

// SchemaFault answers the places that an error of a schema names, in a line, be it of
// its compilation or of a value.
func SchemaFault(err error) error {
	text := err.Error()
	if head, places, more := strings.Cut(text, "\n"); more && strings.Contains(head, schemaURL) {
		text = places
	}
	return errors.New(strings.TrimPrefix(strings.Join(strings.Fields(text), " "), "- "))
}

// noLoader keeps a schema to itself: a $ref may not read a file or the network.
type noLoader struct{}

// Load refuses.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("$ref %q leads out of the schema: write what it names under $defs", url)
}

// everyText matches everything.
type everyText string

// MatchString answers true.
func (everyText) MatchString(string) bool { return true }

// String answers the pattern.
func (e everyText) String() string { return string(e) }

// anyPattern takes a pattern that Go cannot read: the model may.
func anyPattern(pattern string) (jsonschema.Regexp, error) {
	if re, err := regexp.Compile(pattern); err == nil {
		return re, nil
	}
	return everyText(pattern), nil
}
