package kernel_test

import (
	"encoding/json"
	"fmt"

	"github.com/knl-run/knl/kernel"
)

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type contentBlock struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
}

func blocksOf(content json.RawMessage) []contentBlock {
	var items []json.RawMessage
	if json.Unmarshal(content, &items) != nil {
		return nil
	}
	out := make([]contentBlock, len(items))
	for i, it := range items {
		_ = json.Unmarshal(it, &out[i])
	}
	return out
}

// unpaired answers what is wrong with a request's calls and results by F1–F3,
// read from its messages alone, or "".
func unpaired(req *kernel.Request) string {
	seen := map[string]bool{}
	var open []string
	for i, m := range req.Messages {
		var msg message
		if err := json.Unmarshal(m, &msg); err != nil {
			return fmt.Sprintf("message %d is not JSON: %s", i, err)
		}
		uses, results := usesAndResults(msg)
		switch {
		case msg.Role == "assistant" && len(results) > 0:
			return fmt.Sprintf("F2: message %d: the assistant says a result", i)
		case msg.Role == "user" && len(uses) > 0:
			return fmt.Sprintf("F1: message %d: the user makes a call", i)
		case fmt.Sprint(results) != fmt.Sprint(open):
			return fmt.Sprintf("F1/F2: message %d has the results %q, want %q", i, results, open)
		}
		for _, id := range uses {
			if id == "" || seen[id] {
				return fmt.Sprintf("F3: message %d: call id %q is empty or not new", i, id)
			}
			seen[id] = true
		}
		open = uses
	}
	if len(open) > 0 {
		return fmt.Sprintf("F1: the last calls %q have no results", open)
	}
	return ""
}

func usesAndResults(msg message) (uses, results []string) {
	for _, b := range blocksOf(msg.Content) {
		switch b.Type {
		case "tool_use":
			uses = append(uses, b.ID)
		case "tool_result":
			results = append(results, b.ToolUseID)
		}
	}
	return uses, results
}
