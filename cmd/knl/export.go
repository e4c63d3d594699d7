package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/luabind"
)

const exportUsage = `Writes a session for other programs and for people. ID is a whole id, a unique
beginning or ending of one, or "last". Works beside a running knl run.

  --as events     one event a line, as JSON: all that is recorded
  --as messages   the conversation as one JSON document that no provider owns
  --as html       one page for a browser; it loads nothing and runs nothing

Keys of providers that stand in the environment are masked.

JSON of events:    { "seq", "epoch_ms", "kind", "beat"?, "meta": {…}, "data": {…} }
JSON of messages:  { "session", "owner", "parent"?, "system"?, "tools"?,
  "messages": [ { "role", "content" } ] }; system and tools are those of the last
  request`

// The forms of an export.
const (
	asEvents   = "events"
	asMessages = "messages"
	asHTML     = "html"
)

func exportCommand(a *app) *cobra.Command {
	var form, out string
	cmd := &cobra.Command{
		Use:   "export ID",
		Short: "Write a session as events, messages or a page",
		Long:  exportUsage,
		Args:  a.wantArgs("session ID"),
		RunE: a.command(func(ctx context.Context, args []string) error {
			switch {
			case form != asEvents && form != asMessages && form != asHTML:
				return misuse("", "--as: got %q, want events, messages or html", form)
			case form == asHTML && a.flags.json:
				return misuse("leave one of them out", "--as html and --json exclude each other")
			}
			return a.look(ctx, func(p *place) error { return a.export(ctx, p, args[0], form, out) })
		}),
	}
	cmd.Flags().StringVar(&form, "as", asEvents, "events, messages or html")
	cmd.Flags().StringVarP(&out, "output", "o", "", "write to this file (default: stdout)")
	return cmd
}

func (a *app) export(ctx context.Context, p *place, prefix, form, out string) error {
	id, err := p.session(ctx, prefix)
	if err != nil {
		return err
	}
	s, err := p.kernel.Attach(ctx, id)
	if err != nil {
		return err
	}
	row, err := p.row(ctx, id)
	if err != nil {
		return err
	}
	e := &exporter{session: s, row: row, mask: keyMask(os.LookupEnv, nil)}
	if out == "" {
		return e.write(ctx, a.ui.out, form)
	}
	if err := e.writeFile(ctx, out, form); err != nil {
		return err
	}
	a.ui.note("wrote %s", out)
	return nil
}

// exporter writes one session.
type exporter struct {
	session *kernel.Session
	row     *kernel.SessionRow
	mask    *luabind.Masker
	w       *bufio.Writer
}

// writeFile writes beside the file and moves the whole into its place.
func (e *exporter) writeFile(ctx context.Context, path, form string) error {
	next := path + ".new"
	f, err := os.OpenFile(next, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = e.write(ctx, f, form)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		_ = os.Remove(next)
	}
	return err
}

func (e *exporter) write(ctx context.Context, w io.Writer, form string) error {
	e.w = bufio.NewWriterSize(w, 64<<10)
	write := map[string]func(context.Context) error{asEvents: e.events, asMessages: e.messages, asHTML: e.page}[form]
	err := write(ctx)
	if flushed := e.w.Flush(); err == nil { // a writer that failed says the same again
		err = flushed
	}
	return err
}

// each calls do with every event, page by page.
func (e *exporter) each(ctx context.Context, do func(*kernel.Event) error) error {
	for next := int64(1); ; {
		rows, more, err := e.session.Scan(ctx, kernel.Where{From: next, Limit: page})
		if err != nil {
			return err
		}
		for _, r := range rows {
			if err := do(r.Event); err != nil {
				return err
			}
			next = r.Event.Seq + 1
		}
		if !more {
			return nil
		}
	}
}

func (e *exporter) events(ctx context.Context) error {
	return e.each(ctx, func(ev *kernel.Event) error {
		doc := docOf(ev)
		doc.Meta, doc.Data = e.hidden(doc.Meta), e.hidden(doc.Data)
		return e.json(doc)
	})
}

func (e *exporter) hidden(raw json.RawMessage) json.RawMessage {
	raw, _ = e.mask.MaskJSON(raw)
	return raw
}

func (e *exporter) json(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("BUG: an export does not encode: " + err.Error())
	}
	_, err := e.w.Write(b.Bytes())
	return err
}

// messagesDoc is a conversation that no provider owns.
type messagesDoc struct {
	Session  string            `json:"session"`
	Owner    string            `json:"owner"`
	Parent   string            `json:"parent,omitempty"`
	System   json.RawMessage   `json:"system,omitempty"`
	Tools    []json.RawMessage `json:"tools,omitempty"`
	Messages []json.RawMessage `json:"messages"`
}

func (e *exporter) messages(ctx context.Context) error {
	events, err := e.session.Events(ctx, 1)
	if err != nil {
		return err
	}
	doc := messagesDoc{Session: e.row.Session, Owner: e.row.Owner, Parent: e.row.Parent, Messages: nonNil(kernel.FoldEvents(events, nil).Messages)}
	last, err := e.lastRequest(ctx, events)
	if err != nil {
		return err
	}
	if last != nil {
		doc.System, doc.Tools = e.hidden(last.System), last.Tools
	}
	for _, list := range [][]json.RawMessage{doc.Tools, doc.Messages} {
		for i := range list {
			list[i] = e.hidden(list[i])
		}
	}
	return e.json(doc)
}

// lastRequest rebuilds the newest request; nil when there is none.
func (e *exporter) lastRequest(ctx context.Context, events []*kernel.Event) (*kernel.Request, error) {
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].Kind != kernel.LLMRequest {
			continue
		}
		req, err := e.session.Request(ctx, events[i].Beat)
		if kernel.KindOf(err) == kernel.Validation { // a caller's event, not a beat's
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("the last request: %w", err)
		}
		return req, nil
	}
	return nil, nil
}
