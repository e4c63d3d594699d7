package anthropic

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"

	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/internal/field"
	"github.com/knl-run/knl/port/internal/wire"
)

// wireError is how the provider says that something failed.
type wireError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// UnmarshalJSON implements json.Unmarshaler: some gateways write the text alone.
func (e *wireError) UnmarshalJSON(raw []byte) error {
	type plain wireError
	if !field.Lenient(raw, (*plain)(e)) {
		e.Message = field.Plain(raw)
	}
	return nil
}

// errorIn reads an error that came with status 200. Some gateways write its words
// beside the type.
func errorIn(body []byte) wireError {
	var said struct {
		Error   wireError       `json:"error"`
		Message json.RawMessage `json:"message"`
	}
	_ = field.Lenient(body, &said)
	if said.Error == (wireError{}) {
		said.Error.Message = field.Plain(said.Message)
	}
	return said.Error
}

// spoken answers the provider's word and its message. A body that is no error
// of the provider's, a page of a proxy say, is quoted as far as a line goes.
func spoken(api *sdk.Error) (code, message string) {
	var body struct{ Error wireError }
	if json.Unmarshal([]byte(api.RawJSON()), &body) == nil && body.Error != (wireError{}) {
		return body.Error.Type, body.Error.Message
	}
	page := wire.FirstWords(api.RawJSON())
	if page == "" {
		return "", ""
	}
	return "", strings.TrimSpace("the server answered "+strconv.Itoa(api.StatusCode)+" "+http.StatusText(api.StatusCode)) + ": " + page
}

// inside answers an error that came with status 200.
func inside(e wireError) error {
	f := port.Failure{Code: e.Type, Message: e.Message}
	if f.Filtered() {
		return &wire.Refusal{Detail: e.Message}
	}
	return port.Classify(f, time.Now())
}
