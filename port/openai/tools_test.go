package openai_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/openai"
)

// OpenAI refuses a request with a longer description; servers like it do not.
func TestLongDescriptions(t *testing.T) {
	long := strings.Repeat("é", 1500)
	req := requestOf(ask)
	for name, text := range map[string]string{"long": long, "fits": long[:2*1024], "none": ""} {
		tool, err := json.Marshal(map[string]any{"name": name, "description": text, "input_schema": map[string]any{"type": "object"}})
		require.NoError(t, err)
		req.Tools = append(req.Tools, tool)
	}
	sent := func(conf port.Conf) (lengths map[string]int) {
		var body struct {
			Tools []struct {
				Function    *struct{ Name, Description string }
				Name        string
				Description string
			}
		}
		require.NoError(t, json.Unmarshal(openai.BodyFor(t, nil, conf, req), &body))
		lengths = map[string]int{}
		for _, tool := range body.Tools {
			if tool.Function != nil {
				tool.Name, tool.Description = tool.Function.Name, tool.Function.Description
			}
			lengths[tool.Name] = utf8.RuneCountInString(tool.Description)
		}
		return lengths
	}
	require.Equal(t, map[string]int{"long": 1024, "fits": 1024, "none": 0}, sent(port.Conf{Model: "gpt-5"}))
	require.Equal(t, map[string]int{"long": 1500, "fits": 1024, "none": 0},
		sent(port.Conf{Model: "m", Dialect: "vllm", BaseURL: "http://127.0.0.1:1"}))
}
