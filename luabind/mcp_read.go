package luabind

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	lua "github.com/yuin/gopher-lua"
)

// Resources and prompts of a server.

type mcpResource struct {
	URI         string
	Name        string
	Title       string
	Description string
	MIMEType    string
	Size        int64
}

type mcpTemplate struct {
	URI         string
	Name        string
	Title       string
	Description string
	MIMEType    string
}

type mcpContents struct {
	URI      string
	MIMEType string
	Text     *string
	Bytes    *string
}

type mcpPrompt struct {
	Name        string
	Title       string
	Description string
	Arguments   []mcpArgument
}

type mcpArgument struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required"`
}

// errMCPTooMany says that a list has no end that is worth waiting for.
var errMCPTooMany = fmt.Errorf("it lists more than %d", mcpListLimit)

// mcpPages collects the pages of a list.
func mcpPages[T any](pages iter.Seq2[T, error]) (all []T, err error) {
	for item, err := range pages {
		if err != nil {
			return nil, err
		}
		if len(all) == mcpListLimit {
			return nil, errMCPTooMany
		}
		all = append(all, item)
	}
	return all, nil
}

// clientResources is client:resources().
func clientResources(c *Call) (int, error) {
	h := Self[*mcpHandle](c)
	var resources []*mcp.Resource
	var templates []*mcp.ResourceTemplate
	if err := c.Block(func(ctx context.Context) (err error) {
		resources, templates, err = h.client.resources(ctx)
		return err
	}); err != nil {
		return 0, err
	}
	list := TagArray(c.L, c.L.CreateTable(len(resources), 0))
	for _, r := range resources {
		list.Append(c.VM().structTable(c.L, mcpForms().resource, mcpResource{r.URI, r.Name, r.Title, r.Description, r.MIMEType, r.Size}))
	}
	patterns := TagArray(c.L, c.L.CreateTable(len(templates), 0))
	for _, t := range templates {
		patterns.Append(c.VM().structTable(c.L, mcpForms().template, mcpTemplate{t.URITemplate, t.Name, t.Title, t.Description, t.MIMEType}))
	}
	return c.Return(list, patterns)
}

func (c *mcpClient) resources(ctx context.Context) ([]*mcp.Resource, []*mcp.ResourceTemplate, error) {
	if caps := c.joined().InitializeResult().Capabilities; caps == nil || caps.Resources == nil {
		return nil, nil, nil
	}
	resources, err := mcpAsk(ctx, c, question{act: "resources/list", limit: c.call}, func(ctx context.Context, s *mcpSession) ([]*mcp.Resource, error) {
		return mcpPages(s.Resources(ctx, nil))
	})
	if err != nil {
		return nil, nil, err
	}
	templates, err := mcpAsk(ctx, c, question{act: "resources/templates/list", limit: c.call}, func(ctx context.Context, s *mcpSession) ([]*mcp.ResourceTemplate, error) {
		return mcpPages(s.ResourceTemplates(ctx, nil))
	})
	if unknown := refusalIn(err); unknown != nil && unknown.Code == jsonrpc.CodeMethodNotFound { // many have none
		return resources, nil, nil
	}
	return resources, templates, err
}

// clientRead is client:read(uri).
func clientRead(c *Call) (int, error) {
	h, uri := Self[*mcpHandle](c), c.String(1)
	var parts []mcpContents
	if err := c.Block(func(ctx context.Context) (err error) {
		parts, err = mcpAsk(ctx, h.client, question{act: "resources/read " + uri, limit: h.client.call}, func(ctx context.Context, s *mcpSession) ([]mcpContents, error) {
			_, err := s.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
			return readContents(replyTo(ctx).last(), uri), err
		})
		return err
	}); err != nil {
		return 0, err
	}
	list := TagArray(c.L, c.L.CreateTable(len(parts), 0))
	for _, part := range parts {
		list.Append(c.VM().structTable(c.L, mcpForms().contents, part))
	}
	return c.Return(list)
}

// clientPrompts is client:prompts().
func clientPrompts(c *Call) (int, error) {
	h := Self[*mcpHandle](c)
	var prompts []*mcp.Prompt
	if err := c.Block(func(ctx context.Context) (err error) {
		prompts, err = h.client.prompts(ctx)
		return err
	}); err != nil {
		return 0, err
	}
	list := TagArray(c.L, c.L.CreateTable(len(prompts), 0))
	for _, p := range prompts {
		out := mcpPrompt{Name: p.Name, Title: p.Title, Description: p.Description}
		for _, a := range p.Arguments {
			out.Arguments = append(out.Arguments, mcpArgument{a.Name, a.Description, a.Required})
		}
		list.Append(c.VM().structTable(c.L, mcpForms().prompt, out))
	}
	return c.Return(list)
}

func (c *mcpClient) prompts(ctx context.Context) ([]*mcp.Prompt, error) {
	if caps := c.joined().InitializeResult().Capabilities; caps == nil || caps.Prompts == nil {
		return nil, nil
	}
	return mcpAsk(ctx, c, question{act: "prompts/list", limit: c.call}, func(ctx context.Context, s *mcpSession) ([]*mcp.Prompt, error) {
		return mcpPages(s.Prompts(ctx, nil))
	})
}

// clientPrompt is client:prompt(name, args?).
func clientPrompt(c *Call) (int, error) {
	h, name := Self[*mcpHandle](c), c.String(1)
	args, err := promptArguments(c)
	if err != nil {
		return 0, err
	}
	var answer *mcpPromptAnswer
	if err := c.Block(func(ctx context.Context) (err error) {
		answer, err = mcpAsk(ctx, h.client, question{act: "prompts/get " + name, limit: h.client.call}, func(ctx context.Context, s *mcpSession) (*mcpPromptAnswer, error) {
			_, err := s.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: args})
			return readPromptAnswer(replyTo(ctx).last()), err
		})
		return err
	}); err != nil {
		return 0, err
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		return 0, err
	}
	v, err := FromJSON(c.L, raw)
	if err != nil {
		return 0, h.client.says(mcpRefused, err, "prompts/get %s: %s", name, err)
	}
	return c.Return(v)
}

func promptArguments(c *Call) (map[string]string, error) {
	args := map[string]string{}
	if !c.Given(2) {
		return args, nil
	}
	var wrong error
	c.Table(2).ForEach(func(k, v lua.LValue) {
		name, isText := k.(lua.LString)
		value, isValue := v.(lua.LString)
		if !isText || !isValue {
			wrong = c.Mistake("args: got %s = %s, want text by name: the protocol knows nothing else here", show(k), show(v))
			return
		}
		args[string(name)] = string(value)
	})
	return args, wrong
}

// clientClose is client:close().
func clientClose(c *Call) (int, error) {
	h := Self[*mcpHandle](c)
	err := c.Finish(func(context.Context) error {
		h.client.close()
		return nil
	})
	if err != nil {
		return 0, err
	}
	clients := c.State().(*mcpState).clients
	if left := h.client.left(); clients[h.client] && left != "" {
		err = &stdError{kind: denied, text: fmt.Sprintf("mcp server %q: close: %s", h.client.label, left)}
	}
	delete(clients, h.client)
	return 0, err
}
