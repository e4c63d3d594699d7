package luabind

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpRole names the variable that makes this test binary a server: what it does
// is the role.
const mcpRole = "KNL_TEST_MCP_ROLE"

func init() {
	if role, set := os.LookupEnv(mcpRole); set {
		playMCP(role)
		os.Exit(0)
	}
}

// playMCP is the main of a server that runs as a child of a test.
func playMCP(role string) {
	notePID(os.Getpid())
	switch role {
	case "good":
	case "banner":
		fmt.Print("Listening on stdio\n\n{\"level\":\"info\"}\n" + strings.Repeat("x", 1<<20) + "\n")
	case "garbage":
		for {
			if _, err := fmt.Print("\x00\xff garbage ", strings.Repeat("y", 1000), "\n"); err != nil {
				return
			}
		}
	case "broken":
		fmt.Println(`{"jsonrpc":"2.0","result":`)
		fmt.Println(`{"jsonrpc":"2.0"}`)
		time.Sleep(time.Hour)
	case "silent":
		fmt.Fprintln(os.Stderr, "waiting for a database")
		time.Sleep(time.Hour)
	case "exit":
		fmt.Fprintln(os.Stderr, "no configuration")
		os.Exit(3)
	case "endless": // a message without an end
		for line := "{" + strings.Repeat(" ", 1<<20); ; {
			if _, err := fmt.Print(line); err != nil {
				time.Sleep(time.Hour)
			}
			line = line[1:]
		}
	case "mute": // lives on without a stdout
		os.Stdout.Close()
		time.Sleep(time.Hour)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		child := exec.Command("/bin/sh", "-c", "trap '' TERM; while :; do sleep 0.1; done")
		child.Stdout = os.Stdout
		if child.Start() == nil {
			notePID(child.Process.Pid)
		}
		_ = testMCP().Run(context.Background(), &mcp.StdioTransport{})
		time.Sleep(time.Hour)
	case "modern":
		s := testMCP()
		s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if method == "initialize" {
					return nil, fmt.Errorf("unknown method")
				}
				return next(ctx, method, req)
			}
		})
		_ = s.Run(context.Background(), &mcp.StdioTransport{})
		return
	case "env":
		fmt.Fprintln(os.Stderr, strings.Join(os.Environ(), "\n"))
		return
	}
	_ = testMCP().Run(context.Background(), &mcp.StdioTransport{})
}

// notePID tells the test which processes there are.
func notePID(pid int) {
	if path := os.Getenv("KNL_TEST_MCP_PIDS"); path != "" {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			fmt.Fprintln(f, pid)
			f.Close()
		}
	}
}

type toolFunc = func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error)

func saying(c ...mcp.Content) toolFunc {
	return func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: c}, nil
	}
}

func textContent(text string) mcp.Content { return &mcp.TextContent{Text: text} }

// testMCP is the server of the tests.
func testMCP() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{PageSize: 3})
	object := json.RawMessage(`{"type":"object"}`)
	add := func(name string, annotations *mcp.ToolAnnotations, fn toolFunc) {
		s.AddTool(&mcp.Tool{Name: name, Description: "does " + name, InputSchema: object, Annotations: annotations}, fn)
	}
	add("echo", nil, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{textContent(string(req.Params.Arguments))}}, nil
	})
	add("fs.read", &mcp.ToolAnnotations{ReadOnlyHint: true}, saying(textContent("read")))
	add("fs_read", &mcp.ToolAnnotations{IdempotentHint: true}, saying())
	add("mixed", nil, saying(textContent("a picture"), &mcp.ImageContent{MIMEType: "image/png", Data: []byte("png")},
		&mcp.AudioContent{MIMEType: "audio/wav", Data: []byte("wave")}, &mcp.ResourceLink{URI: "file:///x", Name: "x"},
		&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "mem://a", Text: "inside"}},
		&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "mem://b", MIMEType: "application/pdf", Blob: []byte("%PDF")}}))
	add("structured", nil, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: map[string]any{"n": 3, "list": []int{}}}, nil
	})
	add("fails", nil, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{textContent("no such row")}}, nil
	})
	add("refuses", nil, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, fmt.Errorf("out of order")
	})
	add("die", nil, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "panic: nil map")
		os.Exit(7)
		return nil, nil
	})
	add("hang", nil, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-ctx.Done()
		notePID(-1) // the cancellation has come
		return nil, ctx.Err()
	})
	add("big", nil, saying(textContent(strings.Repeat("0123456789", 1<<20))))
	add("steps", nil, steps)
	s.AddResource(&mcp.Resource{URI: "mem://note", Name: "note", MIMEType: "text/plain", Size: 5}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "mem://note", Text: "hello"}, {URI: "mem://raw", Blob: []byte{0, 255}}}}, nil
	})
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "mem://{name}", Name: "any"}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	})
	s.AddPrompt(&mcp.Prompt{Name: "greet", Arguments: []*mcp.PromptArgument{{Name: "who", Required: true}}}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Description: "greets", Messages: []*mcp.PromptMessage{{Role: "user", Content: textContent("hello " + req.Params.Arguments["who"])}}}, nil
	})
	s.AddReceivingMiddleware(badTools)
	return s
}

// steps tells of its progress and waits until the last word was heard: the
// script makes the file.
func steps(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if token := req.Params.GetProgressToken(); token != nil {
		for i := 1.0; i <= 2; i++ {
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: i, Total: 2, Message: "step"})
		}
		for ctx.Err() == nil {
			if _, err := os.Stat("heard"); err == nil {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	return &mcp.CallToolResult{Content: []mcp.Content{textContent("done")}}, nil
}

// badTools lists tools that no server of the SDK would.
func badTools(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		r, err := next(ctx, method, req)
		list, ok := r.(*mcp.ListToolsResult)
		if !ok || list.NextCursor != "" {
			return r, err
		}
		schema := func(text string) json.RawMessage { return json.RawMessage(text) }
		list.Tools = append(list.Tools,
			&mcp.Tool{Name: "a string", InputSchema: schema(`{"type":"string"}`)},
			&mcp.Tool{Name: "old draft", InputSchema: schema(`{"type":"object","properties":{"n":{"minimum":1,"exclusiveMinimum":true}}}`)},
			&mcp.Tool{Name: "outside", InputSchema: schema(`{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`)},
			&mcp.Tool{Name: "echo", InputSchema: schema(`{"type":"object"}`)},
			&mcp.Tool{Name: "composed", InputSchema: schema(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","anyOf":[{"required":["a"]}],"properties":{"a":{"type":"string","pattern":"^(?!x)"}}}`)},
		)
		return list, err
	}
}

// hangingListener accepts connections and answers nothing.
func hangingListener() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }
