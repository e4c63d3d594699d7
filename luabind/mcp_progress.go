package luabind

import (
	"context"
	"fmt"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// follow answers a token for the progress of one call, and what it tells. A
// call that is not listened to in time loses progress, not its answer.
func (c *mcpClient) follow() (token string, told chan mcpProgress) {
	told = make(chan mcpProgress, 64)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens++
	token = strconv.FormatInt(c.tokens, 10)
	c.progress[token] = told
	return token, told
}

func (c *mcpClient) unfollow(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.progress, token)
}

func (c *mcpClient) hearProgress(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
	c.mu.Lock()
	told := c.progress[fmt.Sprint(req.Params.ProgressToken)]
	c.mu.Unlock()
	if told == nil {
		return
	}
	select {
	case told <- mcpProgress{Progress: req.Params.Progress, Total: req.Params.Total, Message: req.Params.Message}:
	default:
	}
}
