package anthropic

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/internal/field"
	"github.com/knl-run/knl/port/internal/wire"
)

// counted lists what of a call counts as its prompt.
var counted = []string{"messages", "model", "output_config", "system", "thinking", "tool_choice", "tools"}

// Count asks the provider how many tokens req takes as a prompt. The same
// prompt is asked once while it is remembered. Where a server cannot count, or
// cannot now, the answer is [port.Estimate]: a count that failed would end a run
// whose calls go through.
func (p *Port) Count(ctx context.Context, req *kernel.Request, conf port.Conf) (int64, error) {
	if conf.Model == "" {
		return 0, errors.New("conf.model: got nothing, want the name of a model")
	}
	m, err := p.open(conf)
	if err != nil {
		return 0, err
	}
	_, top, err := m.fitted(req)
	if err != nil {
		return 0, err
	}
	prompt := field.Map{}
	for _, key := range counted {
		if top[key] != nil {
			prompt[key] = top[key]
		}
	}
	n, err := m.count(ctx, prompt.JSON())
	var failed *kernel.CallError
	if errors.As(err, &failed) && ctx.Err() == nil && (failed.Retryable() || m.cannotCount(failed.Status)) {
		p.warn("%s: %s did not count tokens, they were estimated", Name, m.server.base)
		return port.Estimate(req), nil
	}
	return n, err
}

// cannotCount says whether a server of another provider answers so where it has
// no such call.
func (m *model) cannotCount(status int) bool {
	return m.server.base != home && (status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented)
}

func (m *model) count(ctx context.Context, prompt []byte) (int64, error) {
	sum := sha256.Sum256(prompt)
	key := m.server.base + " " + string(sum[:])
	if n, known := m.port.counts.get(key); known {
		return n, nil
	}
	ctx, cancel := m.within(ctx, time.Time{})
	defer cancel()
	body, err := m.server.fetch(ctx, call{method: "POST", path: "v1/messages/count_tokens", body: prompt})
	if err != nil {
		return 0, err
	}
	var answer struct {
		Tokens *int64 `json:"input_tokens"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Tokens == nil || *answer.Tokens < 0 {
		return 0, wire.Unreadable("the server answered no count of tokens", string(body))
	}
	m.port.counts.put(key, *answer.Tokens)
	return *answer.Tokens, nil
}

// remembered is how many answers a recent keeps.
const remembered = 256

// recent remembers the newest values under their keys. The zero value is empty
// and ready; it is safe for concurrent use.
type recent[T any] struct {
	mu     sync.Mutex
	values map[string]T
	order  []string // the oldest first
}

func (r *recent[T]) get(key string) (T, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, known := r.values[key]
	return v, known
}

func (r *recent[T]) put(key string, v T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.values[key]; known {
		return
	}
	if r.values == nil {
		r.values = map[string]T{}
	}
	if len(r.order) == remembered {
		delete(r.values, r.order[0])
		r.order = append(r.order[:0], r.order[1:]...)
	}
	r.values[key] = v
	r.order = append(r.order, key)
}
