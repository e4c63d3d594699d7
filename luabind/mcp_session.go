package luabind

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpSession is a session with a server, and the wire under it.
type mcpSession struct {
	*mcp.ClientSession
	wire *mcpWire
}

// joined answers the session of the client, nil before the first.
func (c *mcpClient) joined() *mcpSession {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// current answers the session to ask in. When that is still the one that is
// over, another is begun: by one who asks, for all.
func (c *mcpClient) current(ctx context.Context, over *mcpSession) (*mcpSession, error) {
	if s := c.joined(); s != over {
		return s, nil
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s := c.joined(); s != over {
		return s, nil
	}
	s, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.session = s
	c.mu.Unlock()
	c.run(func() { _ = over.Close() }) // what is left of it
	return s, nil
}

// untaken says whether the session is over and the server has not taken what was
// asked in it, so that it can be asked in another: the server knows no such
// session, or the connection had broken before. A server behind a pipe has only
// one session.
func (c *mcpClient) untaken(ctx context.Context, err error) bool {
	reply := replyTo(ctx)
	if c.server != nil || err == nil || reply.refusal() != nil {
		return false
	}
	var web *mcpWebFault
	if errors.As(err, &web) {
		return web.forgotten
	}
	return errors.Is(err, mcp.ErrConnectionClosed) && c.life.Err() == nil
}
