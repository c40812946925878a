// The Go SDK's client; see ../README.md.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const handshake = "2025-11-25"

var era, url, token, project = os.Args[1], os.Args[2], os.Args[3], os.Args[4]

type authorized struct{}

func (authorized) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+token)
	return http.DefaultTransport.RoundTrip(request)
}

func tell(key string, value any) {
	line, err := json.Marshal(map[string]any{key: value})
	must(err)
	fmt.Println(string(line))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func connection(ctx context.Context, heard func(string)) *mcp.ClientSession {
	options := &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, request *mcp.ProgressNotificationClientRequest) {
			heard(request.Params.Message)
		},
	}
	session := &mcp.ClientSessionOptions{}
	if era == "handshake" {
		session.ProtocolVersion = handshake
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "go", Version: "1"}, options)
	transport := &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: authorized{}}}
	connected, err := client.Connect(ctx, transport, session)
	must(err)
	return connected
}

func call(ctx context.Context, session *mcp.ClientSession, tool string, arguments map[string]any) (string, bool, error) {
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return "", false, err
	}
	return result.Content[0].(*mcp.TextContent).Text, result.IsError, nil
}

func find(ctx context.Context, session *mcp.ClientSession) string {
	text, isError, err := call(ctx, session, "find_symbol", map[string]any{"name_path_pattern": "Cart", "project": project})
	must(err)
	if isError {
		panic(text)
	}
	return text
}

func cancelWhatNeverEnds(ctx context.Context, session *mcp.ClientSession, messages chan string) {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		tell("progress", <-messages)
		cancel()
	}()
	arguments := map[string]any{"name_path": "Cart/total", "project": project}
	params := &mcp.CallToolParams{Name: "find_referencing_symbols", Arguments: arguments}
	params.SetProgressToken("references")
	_, err := session.CallTool(within, params)
	if within.Err() == nil {
		panic(fmt.Sprint("it ended by itself: ", err))
	}
	tell("cancelled", err.Error())
}

func main() {
	ctx := context.Background()
	messages := make(chan string, 100)
	heard := func(message string) {
		select {
		case messages <- message:
		default:
		}
	}
	first, second := connection(ctx, heard), connection(ctx, heard)

	listed, err := first.ListTools(ctx, nil)
	must(err)
	names := []string{}
	for _, tool := range listed.Tools {
		names = append(names, tool.Name)
	}
	tell("tools", names)
	tell("found", find(ctx, first))

	text, isError, err := call(ctx, first, "read_file", map[string]any{"relative_path": "missing.py", "project": project})
	must(err)
	if !isError {
		panic(text)
	}
	tell("refused", text)

	text, isError, err = call(ctx, first, "no_such_tool", nil)
	if err != nil {
		text = err.Error()
	} else if !isError {
		panic(text)
	}
	tell("unknown", text)

	cancelWhatNeverEnds(ctx, first, messages)

	sessions := []string{}
	for _, session := range []*mcp.ClientSession{first, second} {
		text, _, err := call(ctx, session, "get_current_config", nil)
		must(err)
		var config struct{ Session string }
		must(json.Unmarshal([]byte(text), &config))
		sessions = append(sessions, config.Session)
	}
	tell("sessions", sessions)

	tell("ready", true)
	bufio.NewReader(os.Stdin).ReadString('\n')
	tell("again", find(ctx, first))
	first.Close()
	second.Close()
}
