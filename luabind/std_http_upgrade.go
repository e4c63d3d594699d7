package luabind

import (
	"errors"
	"net/http"
)

// unupgraded sends requests of clients that speak nothing but HTTP. The body of
// a 101 is the connection itself, which net/http then leaves alone: no context
// ends a read of it. None was asked for, so the connection is closed.
type unupgraded struct{ base http.RoundTripper }

var errUpgrade = errors.New("the server switches to another protocol (101), which was not asked for")

// RoundTrip sends one request.
func (u unupgraded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := u.base.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusSwitchingProtocols {
		resp.Body.Close()
		return nil, errUpgrade
	}
	return resp, err
}
