package kernel_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
)

func TestNewDeviceRefuses(t *testing.T) {
	ok := gives(`"x"`)
	one := func(tool kernel.Tool) kernel.Config { return kernel.Config{Tools: map[string]kernel.Tool{"t": tool}} }
	tests := map[string]struct {
		config kernel.Config
		want   string
	}{
		"width":               {kernel.Config{Parallel: -1}, "parallel: got -1, want a whole number ≥ 1"},
		"a filter":            {kernel.Config{Filters: []kernel.Filter{func(_ context.Context, r *kernel.Request) (*kernel.Request, error) { return r, nil }, nil}}, "filters[2]: got nil, want a function"},
		"system":              {kernel.Config{System: raw(`{`)}, "system: got text that is not JSON"},
		"no name":             {kernel.Config{Tools: map[string]kernel.Tool{"": {Handler: ok}}}, "tools.: got an empty name"},
		"no handler":          {one(kernel.Tool{}), "tools.t: handler: got nil, want a function"},
		"timeout":             {one(kernel.Tool{Handler: ok, Timeout: -1}), "tools.t: timeout: got -1ns, want more than 0"},
		"effects":             {one(kernel.Tool{Handler: ok, Effects: "reads"}), `tools.t: effects: got "reads", want read, write or external`},
		"strict by nothing":   {one(kernel.Tool{Handler: ok, Strict: true}), "tools.t: strict: needs an input_schema to validate by"},
		"a schema in shreds":  {one(kernel.Tool{Handler: ok, InputSchema: raw(`{"type":`)}), "tools.t: input_schema: got text that is not JSON"},
		"a schema that lists": {one(kernel.Tool{Handler: ok, InputSchema: raw(`[]`)}), "tools.t: input_schema: got an array, want an object"},
		"no schema at all":    {one(kernel.Tool{Handler: ok, Strict: true, InputSchema: raw(`{"type":"intejer"}`)}), "tools.t: input_schema: "},
		"a type nobody knows": {one(kernel.Tool{Handler: ok, InputSchema: raw(`{"properties":{"n":{"type":"int"}},"type":"object"}`)}), "at '/properties/n/type': value must be one of 'array'"},
		"draft 4":             {one(kernel.Tool{Handler: ok, InputSchema: raw(`{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"n":{"exclusiveMinimum":true}},"type":"object"}`)}), "at '/properties/n/exclusiveMinimum': got boolean, want number"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := kernel.NewDevice(tt.config)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestNewDeviceFillsIn(t *testing.T) {
	d := device(t, kernel.Config{Tools: map[string]kernel.Tool{"t": {Handler: gives(`1`)}}})
	require.Equal(t, kernel.External, d.Tools["t"].Effects, "the careful reading")
	require.Equal(t, 4, d.Parallel)
	require.NotNil(t, d.Fold)
	require.Nil(t, d.Cost)
	require.Nil(t, d.LLM)
}

// A device has its own copy of what it was made of.
func TestDeviceIsFrozen(t *testing.T) {
	tools := only("look")
	filters := []kernel.Filter{func(_ context.Context, r *kernel.Request) (*kernel.Request, error) { return r, nil }}
	system := raw(`"a"`)
	d := device(t, kernel.Config{Tools: tools, Filters: filters, System: system})
	tools["send"], filters[0] = toolbox()["send"], nil
	copy(system, `"b"`)
	require.Len(t, d.Tools, 1)
	require.NotNil(t, d.Filters[0])
	require.Equal(t, `"a"`, string(d.System))
}

func TestDeviceWith(t *testing.T) {
	d := device(t, kernel.Config{Tools: only("look"), System: raw(`"a"`)})
	e, err := d.With(func(c *kernel.Config) { c.System, c.Tools = nil, only("send") })
	require.NoError(t, err)
	require.Nil(t, e.System)
	require.Contains(t, e.Tools, "send")
	require.Equal(t, `"a"`, string(d.System))
	require.Contains(t, d.Tools, "look")
	_, err = d.With(func(c *kernel.Config) { c.Parallel = -1 })
	require.ErrorContains(t, err, "parallel")
}

// Tools are told to the model sorted and with canonical schemas, however the
// maps were made.
func TestRequestBytesAreCanonical(t *testing.T) {
	schemas := []string{`{"type":"object","properties":{"b":{},"a":{}}}`, "{ \"properties\" : {\"a\":{},\"b\":{}},\n\"type\":\"object\"}"}
	var got []string
	for _, schema := range schemas {
		d := device(t, kernel.Config{Tools: map[string]kernel.Tool{
			"z": {Handler: gives(`1`)}, "b": {Handler: gives(`1`), InputSchema: raw(schema)}, "a": {Handler: gives(`1`), Description: "A <tool> & more."}}})
		req := kernel.FoldEvents(nil, d)
		require.Equal(t, req.Hash(), mustParse(t, req.Canonical()).Hash())
		got = append(got, string(req.Canonical()))
	}
	require.Equal(t, `{"messages":[],"tools":[{"description":"A <tool> & more.","name":"a"},`+
		`{"input_schema":{"properties":{"a":{},"b":{}},"type":"object"},"name":"b"},{"name":"z"}]}`, got[0])
	require.Equal(t, got[0], got[1])
}

func mustParse(t *testing.T, text json.RawMessage) *kernel.Request {
	req, err := kernel.ParseRequest(text)
	require.NoError(t, err)
	return req
}

func TestParseRequest(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                         "request: got an array, want an object",
		`{}`:                         "request.messages: got nothing, want an array",
		`{"messages":7}`:             "request.messages: got a number, want an array",
		`{"messages":[{},"x"]}`:      "request.messages[1]: got a string, want an object",
		`{"messages":[],"tools":{}}`: "request.tools: got an object, want an array",
		`{"messages":[`:              "request",
		``:                           "request: got nothing, want an object",
	} {
		_, err := kernel.ParseRequest(raw(text))
		require.ErrorContains(t, err, want, text)
	}
	full := `{"max":7,"messages":[{"content":"a","role":"user"}],"params":{"seed":1},"system":"s","tool_choice":"none","tools":[{"name":"t"}]}`
	req := mustParse(t, raw(full))
	require.Equal(t, full, string(req.Canonical()))
	require.Equal(t, `7`, string(req.Extra["max"]))
	require.Empty(t, mustParse(t, raw(`{"messages":{}}`)).Messages, "the empty table of a script")
}

// A schema that no argument is validated by may hold what only a model reads.
func TestASchemaForTheModelAlone(t *testing.T) {
	for _, schema := range []string{
		`{"properties":{"n":{"pattern":"^(?!x)","type":"string"}},"type":"object"}`,
		`{"$schema":"https://schemas.example/own","type":"object","x-order":["n"]}`,
		`{"properties":{"n":{"format":"no-such-format","type":"string"}}}`,
	} {
		for range 2 { // the second finds it compiled
			_, err := kernel.NewDevice(kernel.Config{Tools: map[string]kernel.Tool{"look": {Handler: gives(`""`), InputSchema: raw(schema)}}})
			require.NoError(t, err, schema)
		}
	}
}

func TestASchemaStaysWithinItself(t *testing.T) {
	for _, ref := range []string{"file:///etc/hostname", "http://127.0.0.1:1/x", "other.json"} {
		_, err := kernel.NewDevice(kernel.Config{Tools: map[string]kernel.Tool{"look": {
			Handler: gives(`""`), Strict: true, InputSchema: json.RawMessage(`{"$ref":"` + ref + `"}`)}}})
		require.ErrorContains(t, err, "leads out of the schema", ref)
	}
	_, err := kernel.NewDevice(kernel.Config{Tools: map[string]kernel.Tool{"look": {
		Handler: gives(`""`), Strict: true, InputSchema: json.RawMessage(`{"$defs":{"a":{"type":"string"}},"$ref":"#/$defs/a"}`)}}})
	require.NoError(t, err)
	_, err = kernel.NewDevice(kernel.Config{Tools: map[string]kernel.Tool{"a\xff": {Handler: gives(`""`)}}})
	require.ErrorContains(t, err, "not UTF-8")
}

// The hash of a request is that of its canonical text with the sum of each
// message in the message's place.
func TestRequestHash(t *testing.T) {
	r := mustParse(t, raw(`{"tools":[{"name":"t"}],"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"ho"}],"zone":1}`))
	one, two := sha256.Sum256([]byte(`{"role":"user","content":"hi"}`)), sha256.Sum256([]byte(`{"role":"assistant","content":"ho"}`))
	want := sha256.Sum256(fmt.Appendf(nil, `{"messages":["%x","%x"],"tools":[{"name":"t"}],"zone":1}`, one, two))
	require.Equal(t, want, r.Hash())
	require.Equal(t, sha256.Sum256([]byte(`{"messages":[]}`)), (&kernel.Request{}).Hash())
}
