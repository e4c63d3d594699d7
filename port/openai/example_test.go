package openai_test

import (
	"context"
	"fmt"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/openai"
)

// A port reads the environment through its host, and looks for the key when a
// call is made.
func Example() {
	p := openai.New(port.Host{Env: func(string) (string, bool) { return "", false }})
	llm, err := p.Open(port.Conf{Model: "gpt-5"})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = llm.Call(context.Background(), &kernel.Request{}, kernel.CallOptions{})
	fmt.Println(err)
	profile, err := p.Profile(context.Background(), port.Conf{Model: "gpt-5"})
	fmt.Println(profile.ContextWindow, err)
	// Output:
	// auth: OPENAI_API_KEY: not set, want the key of the provider there, or in a variable that conf.api_key_env names
	// 400000 <nil>
}
