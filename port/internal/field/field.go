// Package field reads JSON objects that people write, strictly: every key is
// known, every value has its type, and an error names the path, what was got
// and what was wanted.
//
//	o := field.Open("conf", raw, keys)
//	o.Text("model", &c.Model)
//	o.Whole("max_tokens", &c.MaxTokens, 1)
//	return o.Err()
//
// The first fault sticks: reads after it change nothing, so that a caller asks
// once, at the end.
package field

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Object is an open object and the first fault met in it.
type Object struct {
	path   string
	values map[string]json.RawMessage
	err    error
}

// Open reads an object whose keys are all in keys. A missing raw is an empty
// object.
func Open(path string, raw []byte, keys []string) *Object {
	o := &Object{path: path, values: map[string]json.RawMessage{}}
	if len(raw) == 0 {
		return o
	}
	if KindOf(raw) != '{' {
		o.err = fmt.Errorf("%s: got %s, want an object", path, Got(raw))
		return o
	}
	o.err = Each(raw, func(key string, value json.RawMessage) error {
		if !contains(keys, key) {
			return fmt.Errorf("%s: unknown key %q%s", path, key, Hint(key, keys))
		}
		o.values[key] = value
		return nil
	}, path)
	return o
}

// Each calls fn for every member of an object in its written order. The values
// are parts of raw.
func Each(raw []byte, fn func(key string, value json.RawMessage) error, path string) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw)) // of a Buffer it reads the bytes where they are
	if _, err := dec.ReadToken(); err != nil {
		return fmt.Errorf("%s: not JSON: %w", path, err)
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return fmt.Errorf("%s: not JSON: %w", path, err)
		}
		key := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return fmt.Errorf("%s: not JSON: %w", path, err)
		}
		if err := fn(key, json.RawMessage(slices.Clip(value))); err != nil {
			return err
		}
	}
	return nil
}

// Elements answers the elements of an array; they are parts of raw. null has
// none. What stands in an element is not judged: a block that a provider wrote
// goes back to it as it came.
func Elements(raw []byte) ([]json.RawMessage, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	open, err := dec.ReadToken()
	if err != nil || open.Kind() == 'n' {
		return nil, err
	}
	if open.Kind() != '[' {
		return nil, fmt.Errorf("got %s, want an array", Got(raw))
	}
	var list []json.RawMessage
	for dec.PeekKind() != ']' {
		value, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		list = append(list, json.RawMessage(slices.Clip(value)))
	}
	_, err = dec.ReadToken()
	return list, err
}

// Lenient reads an object as far as it can be read: a member of another type than
// it should have stays empty, for an answer was paid for and most of its members
// are needed by nobody. ok is false for what is no object.
func Lenient(raw []byte, dst any) (ok bool) {
	if KindOf(raw) != '{' {
		return false
	}
	err := json.Unmarshal(raw, dst)
	var odd *json.UnmarshalTypeError
	return err == nil || errors.As(err, &odd)
}

// Plain answers the text that a value is: a string's own, a number's digits.
func Plain(raw json.RawMessage) string {
	var text string
	switch KindOf(raw) {
	case '"':
		_ = json.Unmarshal(raw, &text)
	case '0':
		text = string(raw)
	}
	return text
}

// deepest is how deep a value of an answer may be nested: the log takes 128
// levels, the blocks around it included.
const deepest = 100

// Sound says whether raw is one JSON value that the log of a session can hold: no
// key twice, no half of a character, nested no deeper than it takes.
func Sound(raw []byte) bool {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	for {
		switch _, err := dec.ReadToken(); {
		case err == io.EOF:
			return true
		case err != nil || dec.StackDepth() > deepest:
			return false
		case dec.StackDepth() == 0 && dec.InputOffset() < int64(len(raw)):
			return len(bytes.TrimSpace(raw[dec.InputOffset():])) == 0
		}
	}
}

// Err answers the first fault.
func (o *Object) Err() error { return o.err }

// Has says whether the key was given.
func (o *Object) Has(key string) bool { return o.values[key] != nil }

// Raw answers the value of key, nil when it was not given.
func (o *Object) Raw(key string) json.RawMessage { return o.values[key] }

// At answers the path of the object.
func (o *Object) At() string { return o.path }

// Path answers the path of key, as errors name it.
func (o *Object) Path(key string) string { return o.path + "." + key }

// Want records that the value of key is not what it has to be.
func (o *Object) Want(key, want string) {
	o.fault(fmt.Errorf("%s: got %s, want %s", o.Path(key), Got(o.values[key]), want))
}

// Refuse records a fault that is not about a value's type.
func (o *Object) Refuse(key, text string) {
	o.fault(fmt.Errorf("%s: %s", o.Path(key), text))
}

// Take records a fault met by a reader of a value of this object.
func (o *Object) Take(err error) {
	if err != nil {
		o.fault(err)
	}
}

func (o *Object) fault(err error) {
	if o.err == nil {
		o.err = err
	}
}

// value answers the value of key when it is of one of the kinds.
func (o *Object) value(key, want string, kinds ...jsontext.Kind) (json.RawMessage, bool) {
	raw := o.values[key]
	if raw == nil || o.err != nil {
		return nil, false
	}
	for _, kind := range kinds {
		if KindOf(raw) == kind {
			return raw, true
		}
	}
	o.Want(key, want)
	return nil, false
}

// Text reads a string.
func (o *Object) Text(key string, dst *string) {
	if raw, ok := o.value(key, "a string", '"'); ok {
		*dst = unquote(raw)
	}
}

// Flag reads true or false.
func (o *Object) Flag(key string, dst *bool) {
	if raw, ok := o.value(key, "true or false", 't', 'f'); ok {
		*dst = raw[0] == 't'
	}
}

// Number reads a finite number of at least low.
func (o *Object) Number(key string, dst *float64, low float64) {
	want := "a number >= " + strconv.FormatFloat(low, 'g', -1, 64)
	raw, ok := o.value(key, want, '0')
	if !ok {
		return
	}
	v, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || math.IsInf(v, 0) || v < low {
		o.Want(key, want)
		return
	}
	*dst = v
}

// Whole reads a whole number of at least low.
func (o *Object) Whole(key string, dst *int64, low int64) {
	want := fmt.Sprintf("a whole number >= %d", low)
	raw, ok := o.value(key, want, '0')
	if !ok {
		return
	}
	v, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || v < low {
		o.Want(key, want)
		return
	}
	*dst = v
}

// OneOf reads a string out of choices.
func (o *Object) OneOf(key string, dst *string, choices []string) {
	var v string
	o.Text(key, &v)
	if o.err != nil || !o.Has(key) {
		return
	}
	if !contains(choices, v) {
		o.Refuse(key, fmt.Sprintf("got %q%s, want one of %s", v, Near(v, choices), List(choices)))
		return
	}
	*dst = v
}

// List reads an array.
func (o *Object) List(key, want string) []json.RawMessage {
	raw, ok := o.value(key, want, '[')
	if !ok {
		return nil
	}
	list, err := Elements(raw)
	o.Take(err)
	return list
}

func unquote(raw []byte) string {
	s, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return ""
	}
	return string(s)
}

func contains(list []string, s string) bool {
	for _, have := range list {
		if have == s {
			return true
		}
	}
	return false
}
