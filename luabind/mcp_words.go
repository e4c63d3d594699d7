package luabind

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// codeOf answers the code of an error as it is shown; 0 is none.
func codeOf(e *jsonrpc.Error) string {
	if e.Code == 0 {
		return ""
	}
	return fmt.Sprintf(" (code %d)", e.Code)
}

// broughtNothing answers why HTTP brought no answer, without the URL.
func broughtNothing(err error) string {
	var web *url.Error
	if errors.As(err, &web) {
		err = web.Err
	}
	return strings.ReplaceAll(err.Error(), "rejected by transport: ", "")
}

// unreadable answers why an answer cannot be read, without what the SDK puts in
// front of it, which the question has said, and the Go type that it wanted.
func unreadable(err error) string {
	if inner := errors.Unwrap(err); inner != nil && strings.HasPrefix(err.Error(), "calling ") {
		err = inner
	}
	text, _, _ := strings.Cut(err.Error(), " into Go ")
	return text
}

// refusalIn answers the error that the server sent, or nil.
func refusalIn(err error) *jsonrpc.Error {
	var said *mcpError
	if errors.As(err, &said) {
		refusal, _ := said.cause.(*jsonrpc.Error)
		return refusal
	}
	return nil
}
