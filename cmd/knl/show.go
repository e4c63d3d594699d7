package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/knl-run/knl/kernel"
)

const showUsage = `Shows the conversation of a session, or with --beat one beat: the request as the
model got it, rebuilt from the log and checked against its hash, and the events
of the beat. ID is a whole id, a unique beginning or ending of one, or "last";
B is the same of a beat, or its number from 1. Works beside a
running knl run.

JSON:
  { "session": { …as in knl sessions }, "messages": [ { "role", "content" } ] }
with --beat:
  { "session": id, "beat": id, "request": {…} | null, "events": [ …as in knl log ] }`

func showCommand(a *app) *cobra.Command {
	var beat string
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show the conversation of a session, or one beat of it",
		Long:  showUsage,
		Args:  a.wantArgs("session ID"),
		RunE: a.command(func(ctx context.Context, args []string) error {
			return a.look(ctx, func(p *place) error {
				id, err := p.session(ctx, args[0])
				if err != nil {
					return err
				}
				s, err := p.kernel.Attach(ctx, id)
				if err != nil {
					return err
				}
				if beat == "" {
					return a.showSession(ctx, p, s)
				}
				return a.showBeat(ctx, p, s, beat)
			})
		}),
	}
	cmd.Flags().StringVar(&beat, "beat", "", "show this beat")
	return cmd
}

func (a *app) showSession(ctx context.Context, p *place, s *kernel.Session) error {
	events, err := s.Events(ctx, 1)
	if err != nil {
		return err
	}
	row, err := p.row(ctx, s.ID())
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.ui.json(showDoc{row, nonNil(kernel.FoldEvents(events, nil).Messages)})
	}
	if err := a.ui.line("%s  %s, %d events, %d calls, left %s, owner %s", a.ui.style(bold, row.Session), stateOf(row),
		row.Events, row.Calls, left(row), visible(row.Owner)); err != nil {
		return err
	}
	for _, ev := range events {
		if err := a.showEvent(ev); err != nil {
			return err
		}
	}
	return nil
}

// showEvent prints what an event says to a reader of the conversation; the
// bookkeeping is left to knl log.
func (a *app) showEvent(ev *kernel.Event) error {
	head, text := conversationLine(ev)
	if head == "" {
		return nil
	}
	where := fmt.Sprintf("  #%d", ev.Seq)
	if ev.Beat != "" {
		where += " beat " + ev.Beat
	}
	if err := a.ui.line("\n%s%s", a.ui.style(bold, visible(head)), a.ui.style(faint, visible(where))); err != nil || text == "" {
		return err
	}
	return a.ui.line("%s", indent(text))
}

// eventText are the fields that the conversation shows.
type eventText struct {
	Content    json.RawMessage `json:"content"`
	StopReason string          `json:"stop_reason"`
	Error      string          `json:"error"`
	Kind       string          `json:"kind"`
	CallID     string          `json:"call_id"`
	OK         bool            `json:"ok"`
	Result     json.RawMessage `json:"result"`
	Stage      string          `json:"stage"`
	Reason     string          `json:"reason"`
	Detail     string          `json:"detail"`
}

func conversationLine(ev *kernel.Event) (head, text string) {
	var d eventText
	_ = json.Unmarshal(ev.Data, &d) // a caller's event may have other types there
	switch ev.Kind {
	case kernel.MsgUser:
		return "user", contentText(d.Content)
	case kernel.LLMResponse:
		return "assistant" + bracketed(d.StopReason), contentText(d.Content)
	case kernel.LLMCallFailed:
		return "call failed" + bracketed(d.Kind), d.Error
	case kernel.ToolResult:
		if d.OK {
			return "result" + bracketed(d.CallID), plainText(d.Result)
		}
		return "result, not ok" + bracketed(d.CallID), plainText(d.Result)
	case kernel.BeatInterrupted:
		return "interrupted" + bracketed(d.Stage), ""
	case kernel.SessionClosed:
		return "closed" + bracketed(d.Reason), d.Detail
	}
	return "", ""
}

func bracketed(word string) string {
	if word == "" {
		return ""
	}
	return " (" + word + ")"
}

// plainText answers a JSON string as its text, everything else as it stands.
func plainText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// contentText answers the content of a message for a reader: its text, and
// other blocks by what they are.
func contentText(raw json.RawMessage) string {
	var blocks []json.RawMessage
	if json.Unmarshal(raw, &blocks) != nil {
		return plainText(raw)
	}
	var parts []string
	for _, block := range blocks {
		if text := blockText(block); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n")
}

func blockText(raw json.RawMessage) string {
	var b struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		Thinking string          `json:"thinking"`
		Name     string          `json:"name"`
		ID       string          `json:"id"`
		ToolUse  string          `json:"tool_use_id"`
		Input    json.RawMessage `json:"input"`
		Content  json.RawMessage `json:"content"`
	}
	if json.Unmarshal(raw, &b) != nil {
		return string(raw)
	}
	switch b.Type {
	case "text":
		return b.Text
	case "thinking":
		return "[thinking] " + b.Thinking
	case "tool_use":
		return "[call " + b.Name + bracketed(b.ID) + "] " + string(b.Input)
	case "tool_result":
		return "[result" + bracketed(b.ToolUse) + "] " + contentText(b.Content)
	}
	return cut(string(raw), 160)
}

// showDoc is the JSON of a session.
type showDoc struct {
	Session  *kernel.SessionRow `json:"session"`
	Messages []json.RawMessage  `json:"messages"`
}

// beatDoc is the JSON of one beat.
type beatDoc struct {
	Session string          `json:"session"`
	Beat    string          `json:"beat"`
	Request json.RawMessage `json:"request"`
	Events  []eventDoc      `json:"events"`
}

func (a *app) showBeat(ctx context.Context, p *place, s *kernel.Session, prefix string) error {
	beat, err := p.beat(ctx, s.ID(), prefix)
	if err != nil {
		return err
	}
	rows, _, err := s.Scan(ctx, kernel.Where{Beats: []string{beat}})
	if err != nil {
		return err
	}
	doc := beatDoc{Session: s.ID(), Beat: beat, Request: json.RawMessage("null")}
	for _, r := range rows {
		doc.Events = append(doc.Events, docOf(r.Event))
	}
	req, err := s.Request(ctx, beat)
	switch {
	case err == nil:
		doc.Request = req.Canonical()
	case kernel.KindOf(err) != kernel.Validation: // that one says that the beat asked nothing
		return err
	}
	if a.flags.json {
		return a.ui.json(doc)
	}
	if err := a.showRequest(doc, req); err != nil {
		return err
	}
	for _, r := range rows {
		if err := a.event(r.Event); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) showRequest(doc beatDoc, req *kernel.Request) error {
	if err := a.ui.line("%s  session %s", a.ui.style(bold, "beat "+doc.Beat), doc.Session); err != nil || req == nil {
		return err
	}
	if err := a.ui.line("\n%s", a.ui.style(bold, fmt.Sprintf("request: %s, %s, %s",
		count(int64(len(req.Messages)), "message"), count(int64(len(req.Tools)), "tool"), count(int64(len(doc.Request)), "byte")))); err != nil {
		return err
	}
	for _, raw := range req.Messages {
		var m struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		}
		_ = json.Unmarshal(raw, &m) // a script's own fold may answer anything
		if err := a.ui.line("%s\n%s", a.ui.style(bold, visible(m.Role)), indent(contentText(m.Content))); err != nil {
			return err
		}
	}
	return a.ui.line("\n%s", a.ui.style(bold, "events"))
}
