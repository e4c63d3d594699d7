package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
)

// A log does not hold what a port counted, but what came of it: how many tokens
// the request of each beat took, the most that a request might take, what its
// beats reserved, and what was refused. The counts of a replay come to the same.

// sizes is what the log says of the size of a request.
type sizes struct {
	window   window
	reserved int64 // by its beat
}

// window is what a fold reports of what it left out.
type window struct {
	Before  int64    `json:"before"` // tokens of a request of the whole log; 0: not counted
	After   int64    `json:"after"`  // tokens of the request
	Limit   int64    `json:"limit"`  // and the most that it might take; 0: the fold did not count
	Reserve int64    `json:"reserve"`
	Dropped []string `json:"dropped"`
}

// UnmarshalJSON implements json.Unmarshaler: a script's own fold may report what
// it likes.
func (w *window) UnmarshalJSON(raw []byte) error {
	type plain window
	if json.Unmarshal(raw, (*plain)(w)) != nil || w.Limit < 0 || w.After < 0 || w.Reserve < 0 {
		*w = window{}
	}
	return nil
}

// cut says whether the log did not fit whole.
func (w window) cut() bool { return w.Limit > 0 && (len(w.Dropped) > 0 || w.Before > w.Limit) }

// caveat says where a difference may come from besides the script.
func (s sizes) caveat() []string {
	if !s.window.cut() {
		return nil
	}
	return []string{fmt.Sprintf("window: the recorded request was cut to %d of %d tokens; the log holds no counts of other cuts, and a filter or a fold that counts more than messages may cut elsewhere", s.window.After, s.window.Limit)}
}

// Count answers what the recorded run's port counted, as far as the log says it:
// a request that was sent takes what it took, a longer one than was sent next did
// not fit, a shorter one did, and a reservation that was refused is refused again.
// Other requests are estimated, at the rate of the one that was sent next.
func (r *Replay) Count(ctx context.Context, req *kernel.Request, _ port.Conf) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	estimate := port.Estimate(req)
	if r.kernel == nil || r.load(ctx) != nil {
		return estimate, nil // the call itself will say what is wrong
	}
	if c := r.recorded(fmt.Sprintf("%x", req.Hash())); c != nil {
		return c.tokens(estimate), nil
	}
	for _, s := range r.tree {
		if n, ok := s.count(ctx, req); ok {
			return n, nil
		}
	}
	return estimate, nil
}

// count answers the tokens of a request that is made for s, where it is one: it
// ends as the one that s sent next did, or all of s is played and it goes on.
func (s *source) count(ctx context.Context, req *kernel.Request) (int64, bool) {
	c, ended := s.next(), false
	if c == nil && holds(req, s.said) {
		c, ended = s.calls[len(s.calls)-1], true
	}
	if c == nil {
		return 0, false
	}
	was, err := s.request(ctx, c)
	switch {
	case err != nil || was == nil || !ended && !bytes.Equal(end(was), end(req)):
		return 0, false
	case !ended:
		return c.against(was, req), true
	}
	n := c.rate(was, req)
	if alike(s.refused, n) {
		n = s.refused
	}
	return n, true
}

// recorded answers the call of a request, one that was not played before one that
// was.
func (r *Replay) recorded(hash string) (found *call) {
	for _, s := range r.tree {
		for _, c := range s.calls {
			if c.hash == hash && (found == nil || found.played && !c.played) {
				found = c
			}
		}
	}
	return found
}

// tokens answers what the call's request took: by its fold, by its beat where
// that reserved tokens, by the provider's count.
func (c *call) tokens(estimate int64) int64 {
	var d callData
	_ = json.Unmarshal(c.data, &d)
	counted := d.Usage.Input + d.Usage.CacheRead + d.Usage.CacheWrite
	if counted > 0 {
		estimate = counted
	}
	switch w := c.sizes.window; {
	case w.Limit > 0 && w.After > 0:
		return w.After
	case alike(c.sizes.reserved, estimate):
		return c.sizes.reserved
	}
	return estimate
}

// alike says whether n may be a count of the same tokens, and not one of beats.
func alike(n, tokens int64) bool { return n > 1 && n >= tokens/4 && n <= tokens*4 }

// against answers the tokens of a request that was made in place of was, the
// recorded one.
func (c *call) against(was, req *kernel.Request) int64 {
	n := c.rate(was, req)
	switch w := c.sizes.window; {
	case w.Limit == 0:
		return n
	case w.cut() && len(req.Messages) > len(was.Messages):
		return max(n, w.Limit+1)
	default:
		return min(n, w.Limit)
	}
}

// rate answers the tokens of req, at those that was took for its size.
func (c *call) rate(was, req *kernel.Request) int64 {
	size := max(port.Estimate(was), 1)
	return int64(float64(port.Estimate(req)) * float64(c.tokens(size)) / float64(size))
}

// Profile answers the sizes that conf declares, else those that hold what the
// recorded folds report, else those of a scripted model.
func (r *Replay) Profile(ctx context.Context, conf port.Conf) (port.Profile, error) {
	p := port.Profile{ContextWindow: conf.ContextWindow, MaxOutput: conf.MaxTokens}
	if w := r.window(ctx); w.Limit > 0 {
		return w.profile(p), nil
	}
	if p.ContextWindow == 0 {
		p.ContextWindow = 200_000
	}
	if p.MaxOutput == 0 {
		p.MaxOutput = min(8192, p.ContextWindow/4)
	}
	return p, nil
}

// profile fills p so that a request may take the limit: the window less the
// longest reply, or less the reserve when that is more.
func (w window) profile(p port.Profile) port.Profile {
	switch {
	case p.ContextWindow == 0 && p.MaxOutput == 0:
		p.MaxOutput = max(1, min(8192, w.Limit/4))
		p.ContextWindow = w.Limit + max(p.MaxOutput, w.Reserve)
	case p.ContextWindow == 0:
		p.ContextWindow = w.Limit + max(p.MaxOutput, w.Reserve)
	case p.MaxOutput == 0:
		p.MaxOutput = max(0, p.ContextWindow-w.Limit)
	}
	return p
}

// window answers what the fold of the call reported that is played next, among
// the folds that count.
func (r *Replay) window(ctx context.Context) (w window) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kernel == nil || r.load(ctx) != nil {
		return w
	}
	for _, s := range r.tree {
		for _, c := range s.calls {
			if c.sizes.window.Limit > 0 && (w.Limit == 0 || !c.played) {
				w = c.sizes.window
			}
			if w.Limit > 0 && !c.played {
				return w
			}
		}
	}
	return w
}

// play marks a call as played, with what was asked.
func (c *call) play(s *source, req *kernel.Request) {
	c.played, s.said = true, end(req)
}

// end answers the last message, which no cut of a conversation leaves out.
func end(req *kernel.Request) json.RawMessage {
	if len(req.Messages) == 0 {
		return nil
	}
	return req.Messages[len(req.Messages)-1]
}

// holds says whether a message stands in a request.
func holds(req *kernel.Request, message json.RawMessage) bool {
	for _, m := range req.Messages {
		if message != nil && bytes.Equal(m, message) {
			return true
		}
	}
	return false
}
