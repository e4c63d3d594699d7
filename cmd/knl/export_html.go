package main

import (
	"bytes"
	"context"
	"encoding/json"
	"html/template"
	"time"

	"github.com/knl-run/knl/kernel"
)

// pageHead, pageEvent and pageFoot are the page, which is written event by
// event: a session may be larger than memory. The template escapes every text;
// nothing is loaded, and the policy of the page forbids what is not in it.
const pageHead = `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="generator" content="knl {{.Version}}">
<title>session {{.Session}}</title>
<style>
:root{color-scheme:light dark;--line:#8884;--soft:#8882}
body{font:15px/1.5 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.2rem}h1 code{font-size:1rem}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem}dt{opacity:.6}dd{margin:0}
article{border:1px solid var(--line);border-radius:.5rem;margin:.8rem 0;padding:.5rem .8rem}
article.user{background:var(--soft)}article.failed{border-color:#c33}article.note{border-style:dotted;padding:.1rem .8rem;opacity:.75}
header{display:flex;gap:.6rem;font-size:.85rem;opacity:.7}header b{flex:1}
pre,code{font:13px/1.45 ui-monospace,monospace}pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.3rem 0}
p{white-space:pre-wrap;overflow-wrap:anywhere;margin:.4rem 0}summary{cursor:pointer;font-size:.85rem}
.call{border-left:3px solid #58a;padding-left:.6rem}.result{border-left:3px solid #5a5;padding-left:.6rem}.failed .result{border-color:#c33}
</style></head><body>
<h1>session <code>{{.Session}}</code></h1>
<dl>{{range .Facts}}<dt>{{.Name}}</dt><dd>{{.Text}}</dd>{{end}}</dl>
`

const pageEvent = `<article class="{{.Class}}" id="e{{.Seq}}"><header><b>{{.Head}}</b>{{if .Beat}}<span>beat {{.Beat}}</span>{{end}}<span>#{{.Seq}}</span><time>{{.Time}}</time></header>
{{range .Parts}}{{if eq .Kind "text"}}<p>{{.Text}}</p>
{{else if eq .Kind "fold"}}<details><summary>{{.Name}}</summary><pre>{{.Text}}</pre></details>
{{else}}<div class="{{.Kind}}"><code>{{.Name}}</code><pre>{{.Text}}</pre></div>
{{end}}{{end}}</article>
`

const pageFoot = "</body></html>\n"

var pageTemplates = template.Must(template.Must(template.New("head").Parse(pageHead)).New("event").Parse(pageEvent))

// pageFact is a line of the head.
type pageFact struct{ Name, Text string }

// pageCard is an event on the page.
type pageCard struct {
	Class, Head, Beat, Time string
	Seq                     int64
	Parts                   []pagePart
}

// pagePart is a piece of a card: text, fold (behind a click), call or result.
type pagePart struct{ Kind, Name, Text string }

func (e *exporter) page(ctx context.Context) error {
	facts := []pageFact{{"opened", utcClock(e.row.OpenedMS)}, {"state", stateOf(e.row)}, {"owner", e.clean(e.row.Owner)}, {"left", left(e.row)}}
	if e.row.Parent != "" {
		facts = append(facts, pageFact{"parent", e.row.Parent})
	}
	head := map[string]any{"Session": e.row.Session, "Facts": facts, "Version": version()}
	if err := pageTemplates.ExecuteTemplate(e.w, "head", head); err != nil {
		return err
	}
	if err := e.each(ctx, func(ev *kernel.Event) error { return pageTemplates.ExecuteTemplate(e.w, "event", e.card(ev)) }); err != nil {
		return err
	}
	_, err := e.w.WriteString(pageFoot)
	return err
}

func utcClock(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05 UTC") }

// clean answers text without secrets and without control characters.
func (e *exporter) clean(text string) string { return shown(e.mask.Mask(text)) }

// card answers an event as the page shows it: what belongs to the conversation
// openly, the bookkeeping behind a click.
func (e *exporter) card(ev *kernel.Event) *pageCard {
	c := &pageCard{Class: "note", Head: e.clean(ev.Kind), Beat: e.clean(ev.Beat), Time: utcClock(ev.EpochMS), Seq: ev.Seq}
	var d eventText
	_ = json.Unmarshal(ev.Data, &d) // a caller's event may have other types there
	switch ev.Kind {
	case kernel.MsgUser:
		c.Class, c.Head, c.Parts = "user", "user", e.blocks(d.Content)
	case kernel.LLMResponse:
		c.Class, c.Head, c.Parts = "assistant", e.clean("assistant"+bracketed(d.StopReason)), e.blocks(d.Content)
	case kernel.LLMCallFailed:
		c.Class, c.Head, c.Parts = "failed", e.clean("call failed"+bracketed(d.Kind)), []pagePart{{"text", "", e.clean(d.Error)}}
	case kernel.ToolResult:
		c.Class, c.Head = "tool", "tool result"
		if !d.OK {
			c.Class, c.Head = "failed", "tool result, not ok"
		}
		c.Parts = []pagePart{{"result", e.clean(d.CallID), e.clean(plainText(d.Result))}}
	default:
		c.Parts = []pagePart{{"fold", "data", e.indented(ev.Data)}}
	}
	return c
}

// blocks answers the content of a message as parts.
func (e *exporter) blocks(raw json.RawMessage) (out []pagePart) {
	var blocks []json.RawMessage
	if json.Unmarshal(raw, &blocks) != nil {
		return []pagePart{{"text", "", e.clean(plainText(raw))}}
	}
	for _, block := range blocks {
		out = append(out, e.block(block))
	}
	return out
}

func (e *exporter) block(raw json.RawMessage) pagePart {
	var b struct {
		Type, Text, Thinking, Name, ID string
		Input                          json.RawMessage
	}
	_ = json.Unmarshal(raw, &b) // another form is shown as it stands
	switch b.Type {
	case "text":
		return pagePart{"text", "", e.clean(b.Text)}
	case "thinking":
		return pagePart{"fold", "thinking", e.clean(b.Thinking)}
	case "tool_use":
		return pagePart{"call", e.clean(b.Name + bracketed(b.ID)), e.indented(b.Input)}
	case "":
		return pagePart{"fold", "block", e.indented(raw)}
	}
	return pagePart{"fold", e.clean(b.Type), e.indented(raw)}
}

func (e *exporter) indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return e.clean(string(raw))
	}
	return e.clean(b.String())
}
