package port_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
)

// targets lists every dialect, with and without prefill.
func targets() []port.Target {
	var out []port.Target
	for _, d := range port.Dialects {
		out = append(out, port.Target{Dialect: d}, port.Target{Dialect: d, Prefill: true})
	}
	return out
}

// awkward is text that providers and careless folds disagree about.
var awkward = rapid.SampledFrom([]string{
	"", " ", "\n\t", "\u00a0", "\x1c", "\u2028", "hello", " hello ", "Ünï ✓ 🙂", "a\x00b", `{"json":true}`, "ends in space ",
})

var awkwardID = rapid.SampledFrom([]string{
	"", "toolu_01A", "call_0", "call_0", "01JABCDEFGHJKMNPQRSTVWXYZ0/1", "a b", "ü", "x.y", "x_y",
	"a-very-long-identifier-that-no-provider-would-take-because-it-has-far-too-many-letters",
})

var awkwardName = rapid.SampledFrom([]string{
	"", "read", "write", "server.tool/do it", "ü", "mcp__a__b", "a.b", "a_b",
	"a_tool_name_that_is_longer_than_sixty_four_letters_as_some_servers_do_have_them",
})

// someJSON draws a value that a log may hold where content should stand.
var someJSON = rapid.SampledFrom([]string{`null`, `{}`, `[]`, `42`, `true`, `"text"`, `{"type":"vidoe"}`, `{"type":7}`, `[1,"x",null]`, `{"type":"image"}`, `""`})

const (
	picture = `{"source":{"data":"aGk=","media_type":"image/png","type":"base64"},"type":"image"}`
	paper   = `{"source":{"data":"aGk=","media_type":"application/pdf","type":"base64"},"type":"document"}`
	linked  = `{"source":{"type":"url","url":"https://example.com/a.pdf"},"type":"document"}`
)

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func textBlock(s string) string { return `{"text":` + quote(s) + `,"type":"text"}` }

// private draws a block of the model that is asked, of another, or of nobody.
func private(t *rapid.T) string {
	block := rapid.SampledFrom([]string{
		`{"signature":"c2ln","thinking":"hm","type":"thinking"}`, `{"thinking":"cut","type":"thinking"}`,
		`{"data":"eA==","type":"redacted_thinking"}`, `{"citations":[],"text":"x","type":"text"}`, `{"text":" ","type":"text"}`,
		`{"id":"s","input":{},"name":"web_search","type":"server_tool_use"}`, picture, `{"odd":1}`,
	}).Draw(t, "private")
	model := rapid.SampledFrom([]string{"m", "other", ""}).Draw(t, "whose")
	if model == "" {
		return block
	}
	if rapid.Bool().Draw(t, "openai") {
		return openaiBlock(t, model)
	}
	return `{"provider":{"model":"` + model + `","port":"anthropic"},` + block[1:]
}

// openaiBlock draws what a model of the OpenAI dialects said beside its text,
// whole or broken.
func openaiBlock(t *rapid.T, model string) string {
	from := rapid.SampledFrom([]string{"openai", "responses"}).Draw(t, "from")
	return `{"provider":{"model":"` + model + `","port":"` + from + `",` + rapid.SampledFrom([]string{
		`"field":"reasoning_content"},"thinking":"hm  ","type":"thinking"}`,
		`"field":"reasoning"},"thinking":"","type":"thinking"}`,
		`"field":"reasoning_details","raw":"[{\"type\":\"reasoning.text\"}]"},"thinking":"hm","type":"thinking"}`,
		`"field":"reasoning_details","raw":"[{"},"thinking":"hm","type":"thinking"}`,
		`"field":"item","raw":"{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[],\"encrypted_content\":\"eA\"}"},"thinking":"","type":"thinking"}`,
		`"field":"item","raw":"{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[]}"},"thinking":"","type":"thinking"}`,
		`"field":"item","raw":"{\"type\":\"web_search_call\",\"id\":\"ws_1\"}"},"type":"web_search_call"}`,
		`"field":"item","raw":"{\"type\":\"function_call\",\"call_id\":\"x\"}"},"type":"function_call"}`,
		`"phase":"final_answer"},"text":"done","type":"text"}`,
		`"phase":"final_answer"},"text":" ","type":"text"}`,
	}).Draw(t, "said")
}

// someBlock draws a block that is neither call nor result.
func someBlock(t *rapid.T) string {
	switch rapid.IntRange(0, 5).Draw(t, "block") {
	case 0:
		return someJSON.Draw(t, "json")
	case 1:
		return rapid.SampledFrom([]string{picture, paper, linked}).Draw(t, "media")
	case 2:
		return private(t)
	}
	return textBlock(awkward.Draw(t, "text"))
}

func message(role string, blocks []string) json.RawMessage {
	return json.RawMessage(`{"content":[` + join(blocks) + `],"role":"` + role + `"}`)
}

func join(list []string) string {
	b := ""
	for i, s := range list {
		if i > 0 {
			b += ","
		}
		b += s
	}
	return b
}

// result draws a result of a call.
func result(t *rapid.T, id string) string {
	content := ""
	switch rapid.IntRange(0, 3).Draw(t, "result") {
	case 0:
		content = `"content":` + quote(awkward.Draw(t, "said")) + `,`
	case 1:
		content = `"content":[` + join(rapid.SliceOfN(rapid.Custom(someBlock), 0, 3).Draw(t, "shown")) + `],`
	case 2:
		content = `"content":` + someJSON.Draw(t, "value") + `,`
	}
	failed := rapid.SampledFrom([]string{"", `"is_error":true,`}).Draw(t, "failed")
	return `{` + content + failed + `"tool_use_id":` + quote(id) + `,"type":"tool_result"}`
}

// calling draws an answer with calls and their results, in as many messages as
// a careless fold may spread them over.
func calling(t *rapid.T) []json.RawMessage {
	said := rapid.SliceOfN(rapid.Custom(someBlock), 0, 3).Draw(t, "said")
	var calls, results []string
	for range rapid.IntRange(1, 3).Draw(t, "calls") {
		id, name := awkwardID.Draw(t, "id"), awkwardName.Draw(t, "name")
		input := rapid.SampledFrom([]string{`{}`, `{"a":1}`, `null`, `"{\"a\":"`, `[1]`}).Draw(t, "input")
		calls = append(calls, `{"id":`+quote(id)+`,"input":`+input+`,"name":`+quote(name)+`,"type":"tool_use"}`)
		results = append(results, result(t, id))
	}
	after := rapid.SliceOfN(rapid.Custom(someBlock), 0, 2).Draw(t, "after")
	if rapid.Bool().Draw(t, "reversed") {
		for i, j := 0, len(results)-1; i < j; i, j = i+1, j-1 {
			results[i], results[j] = results[j], results[i]
		}
	}
	if rapid.Bool().Draw(t, "together") {
		return []json.RawMessage{message("assistant", append(said, calls...)), message("user", append(after, results...))}
	}
	var out []json.RawMessage
	for _, c := range append(said, calls...) {
		out = append(out, message("assistant", []string{c}))
	}
	for _, r := range append(results, after...) {
		out = append(out, message("user", []string{r}))
	}
	return out
}

// exchange draws messages whose calls are closed.
func exchange(t *rapid.T) []json.RawMessage {
	role := rapid.SampledFrom([]string{"user", "assistant", "system"}).Draw(t, "role")
	switch rapid.IntRange(0, 3).Draw(t, "exchange") {
	case 0:
		return []json.RawMessage{json.RawMessage(`{"content":` + quote(awkward.Draw(t, "plain")) + `,"role":"` + role + `"}`)}
	case 1:
		return []json.RawMessage{json.RawMessage(`{"content":` + someJSON.Draw(t, "content") + `,"role":"` + role + `"}`)}
	case 2:
		return []json.RawMessage{message(role, rapid.SliceOfN(rapid.Custom(someBlock), 0, 3).Draw(t, "blocks"))}
	}
	return calling(t)
}

var someTools = rapid.SampledFrom([][]string{
	nil,
	{`{"name":"read"}`},
	{`{"description":"d","input_schema":{"properties":{"a":{"type":"string"}},"type":"object"},"name":"read"}`, `{"name":"a.b","input_schema":[]}`, `{"name":"a_b"}`},
	{`{"input_schema":{"anyOf":[{"properties":{"x":{"type":"string"}}},{"properties":{"y":{}}}]},"name":"pick"}`, `{"input_schema":{"properties":null,"type":["object","null"]},"name":"write"}`},
})

func someRequest(t *rapid.T) *kernel.Request {
	req := &kernel.Request{}
	for range rapid.IntRange(0, 6).Draw(t, "exchanges") {
		req.Messages = append(req.Messages, exchange(t)...)
	}
	for _, tool := range someTools.Draw(t, "tools") {
		req.Tools = append(req.Tools, json.RawMessage(tool))
	}
	if rapid.Bool().Draw(t, "system") {
		req.System = json.RawMessage(rapid.SampledFrom([]string{`""`, `"be brief"`, `[{"text":"a","type":"text"},{"text":" ","type":"text"}]`, `null`}).Draw(t, "prompt"))
	}
	if rapid.Bool().Draw(t, "choice") {
		choice := rapid.SampledFrom([]string{`"auto"`, `"none"`}).Draw(t, "mode")
		if len(req.Tools) > 0 && rapid.Bool().Draw(t, "forced") {
			choice = rapid.SampledFrom([]string{`"required"`, forced(req.Tools[0])}).Draw(t, "force")
		}
		req.ToolChoice = json.RawMessage(choice)
	}
	return req
}

func forced(tool json.RawMessage) string {
	var in struct{ Name string }
	_ = json.Unmarshal(tool, &in)
	return `{"name":` + quote(in.Name) + `}`
}

func someConf(t *rapid.T) port.Conf {
	return rapid.SampledFrom([]port.Conf{
		{Model: "m"},
		{Model: "m", Thinking: port.Thinking{On: true}},
		{Model: "m", Thinking: port.Thinking{On: true, Effort: "high", BudgetTokens: 2000}, MaxTokens: 9000},
		{Model: "m", Thinking: port.Thinking{On: true, BudgetTokens: 2000}, Stop: []string{"END"}},
	}).Draw(t, "conf")
}

// lawAccepted: a request whose pairs are closed lowers to a body that the
// provider accepts, and always to the same one.
func lawAccepted(t *rapid.T) {
	req, conf := someRequest(t), someConf(t)
	for _, target := range targets() {
		if target.Dialect == port.Responses {
			conf.Stop = nil // it takes none
		}
		wire, err := port.Lower(target, req, conf)
		require.NoError(t, err)
		require.NoError(t, port.Check(target, wire.Body), "%s", wire.Body)
		again, err := port.Lower(target, req, conf)
		require.NoError(t, err)
		require.Equal(t, string(wire.Body), string(again.Body))
	}
}

func TestLawAccepted(t *testing.T) { rapid.Check(t, lawAccepted) }

func FuzzLawAccepted(f *testing.F) { f.Fuzz(rapid.MakeFuzz(lawAccepted)) }

// lawPrefix: what was sent once stays as it was while the conversation grows,
// but for its end: the last message may be merged with the next, and a filler
// behind an answer goes when the next one comes.
func lawPrefix(t *rapid.T) {
	req := someRequest(t)
	req.System = nil
	grown := *req
	grown.Messages = append(grown.Messages[:len(grown.Messages):len(grown.Messages)], calling(t)...)
	grown.Messages = append(grown.Messages, message("user", []string{textBlock("go on")}))
	for _, d := range port.Dialects {
		before, after := wireMessages(t, d, req), wireMessages(t, d, &grown)
		for i := 0; i < len(before)-2; i++ {
			require.Equal(t, string(before[i]), string(after[i]), "%s: message %d", d, i)
		}
	}
}

func TestLawPrefix(t *testing.T) { rapid.Check(t, lawPrefix) }

func wireMessages(t require.TestingT, d port.Dialect, req *kernel.Request) []json.RawMessage {
	wire, err := port.Lower(port.Target{Dialect: d}, req, port.Conf{Model: "m"})
	require.NoError(t, err)
	var body struct{ Messages, Input []json.RawMessage }
	require.NoError(t, json.Unmarshal(wire.Body, &body))
	return append(body.Messages, body.Input...)
}

// lawNoThirdWay: whatever the messages are, they are refused for ever or
// accepted by the provider.
func lawNoThirdWay(t *testing.T, messages []byte) {
	var list []json.RawMessage
	if json.Unmarshal(messages, &list) != nil {
		return
	}
	req := &kernel.Request{Messages: list}
	for _, target := range targets() {
		wire, err := port.Lower(target, req, port.Conf{Model: "m"})
		if err == nil {
			require.NoError(t, port.Check(target, wire.Body), "%s", wire.Body)
			continue
		}
		var call *kernel.CallError
		require.True(t, errors.As(err, &call))
		require.Equal(t, kernel.InvalidRequest, call.Kind)
	}
}

func FuzzNoThirdWay(f *testing.F) {
	f.Add([]byte(`[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"b","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":""}]}]}]`))
	f.Add([]byte(`[{"role":"assistant","content":[{"type":"text","text":"x"},{"type":"thinking","thinking":"y"}]},{"role":"system","content":"s"}]`))
	f.Add([]byte(fmt.Sprintf(`[{"role":"user","content":[%s,%s,%s,17,"x"]}]`, picture, paper, linked)))
	f.Add([]byte(`[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"thinking","thinking":"y","signature":"s","provider":{"port":"anthropic","model":"m"}},{"type":"text","text":"x"}]}]`))
	f.Fuzz(lawNoThirdWay)
}
