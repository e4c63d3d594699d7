package sockstore

import (
	"context"
	"fmt"

	"github.com/knl-run/knl/kernel/store"
)

// answer runs a call that is one question and one answer.
func (l *line) answer(ctx context.Context, k kind, r *reader) ([]byte, error) {
	ask, known := questions[k]
	if !known {
		return nil, fmt.Errorf("call of kind %d is not known", k)
	}
	return ask(l, ctx, r)
}

type question func(l *line, ctx context.Context, r *reader) ([]byte, error)

var questions = map[kind]question{
	kWait: wait, kHead: head, kPage: page, kGroups: groups, kFindGroup: findGroup,
	kMarked: marked, kBlob: blob, kStreams: streams, kChildren: children,
}

func wait(l *line, ctx context.Context, r *reader) ([]byte, error) {
	l.applying.Lock()
	last := l.last
	l.applying.Unlock()
	if err := r.done(); err != nil || last == nil {
		return nil, err
	}
	return nil, last.Wait(ctx)
}

func head(l *line, ctx context.Context, r *reader) ([]byte, error) {
	stream := r.text()
	if err := r.done(); err != nil {
		return nil, err
	}
	h, err := l.st.Head(ctx, stream)
	return putHead(newBody(), h), err
}

// How much a page holds at most; one record of any size goes into it.
const (
	pageBytes = 1 << 20
	pageRows  = 1024
)

// page answers where the read ends and its next records. The first page asks
// with to 0 and learns the end, the others ask for it.
func page(l *line, ctx context.Context, r *reader) ([]byte, error) {
	stream, from, to := r.text(), r.int(), r.int()
	if err := r.done(); err != nil {
		return nil, err
	}
	h, err := l.st.Head(ctx, stream)
	if to <= 0 || to > h.Seq {
		to = h.Seq
	}
	if err != nil || from > to {
		return putRecords(putInt(newBody(), to), nil), err
	}
	var rows []store.Record
	size := 0
	for row, err := range l.st.Records(ctx, stream, from, to) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
		if size += len(row.Body); size >= pageBytes || len(rows) == pageRows {
			break
		}
	}
	return putRecords(putInt(newBody(), to), rows), nil
}

func groups(l *line, ctx context.Context, r *reader) ([]byte, error) {
	stream, n := r.text(), r.int()
	if err := r.done(); err != nil {
		return nil, err
	}
	rows, err := l.st.Groups(ctx, stream, int(n))
	b := putInt(newBody(), int64(len(rows)))
	for _, g := range rows {
		b = putInt(putText(b, g.ID), g.First)
	}
	return b, err
}

func findGroup(l *line, ctx context.Context, r *reader) ([]byte, error) {
	stream, group := r.text(), r.text()
	if err := r.done(); err != nil {
		return nil, err
	}
	seq, err := l.st.FindGroup(ctx, stream, group)
	return putInt(newBody(), seq), err
}

func marked(l *line, ctx context.Context, r *reader) ([]byte, error) {
	stream, name := r.text(), r.text()
	if err := r.done(); err != nil {
		return nil, err
	}
	taken, err := l.st.Marked(ctx, stream, name)
	n := int64(0)
	if taken {
		n = 1
	}
	return putInt(newBody(), n), err
}

func blob(l *line, ctx context.Context, r *reader) ([]byte, error) {
	hash := r.hash()
	if err := r.done(); err != nil {
		return nil, err
	}
	data, err := l.st.Blob(ctx, hash)
	return putBytes(newBody(), data), err
}

func streams(l *line, ctx context.Context, r *reader) ([]byte, error) {
	after, limit := r.text(), r.int()
	if err := r.done(); err != nil {
		return nil, err
	}
	rows, err := l.st.Streams(ctx, after, int(limit))
	b := putInt(newBody(), int64(len(rows)))
	for _, row := range rows {
		b = putHead(putText(b, row.Stream), row.Head)
	}
	return b, err
}

func children(l *line, ctx context.Context, r *reader) ([]byte, error) {
	parent := r.text()
	if err := r.done(); err != nil {
		return nil, err
	}
	names, err := l.st.Children(ctx, parent)
	b := putInt(newBody(), int64(len(names)))
	for _, name := range names {
		b = putText(b, name)
	}
	return b, err
}
