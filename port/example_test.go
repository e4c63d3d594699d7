package port_test

import (
	"encoding/json"
	"fmt"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
)

// A fold that is cut to its tail begins with an answer. The provider wants the
// user first and last, so the body has both.
func ExampleLower() {
	req := &kernel.Request{Messages: []json.RawMessage{
		json.RawMessage(`{"content":"The tests pass.","role":"assistant"}`),
	}}
	target := port.Target{Dialect: port.OpenAI}
	wire, err := port.Lower(target, req, port.Conf{Model: "m"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(wire.Body))
	fmt.Println(port.Check(target, wire.Body))
	// Output:
	// {"messages":[{"content":"Continue.","role":"user"},{"content":"The tests pass.","role":"assistant"},{"content":"Continue.","role":"user"}],"model":"m"}
	// <nil>
}
