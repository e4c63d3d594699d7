package wiretest

import "net/http"

// Both wire forms list models at the same place and in forms of their own. Who
// names an anthropic-version gets that provider's.

func isAnthropic(r *http.Request) bool { return r.Header.Get("anthropic-version") != "" }

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	req, ok := s.keep(r, nil)
	if !ok || isAnthropic(r) && refusedAnthropic(s, w, r, req) {
		return
	}
	data := []any{}
	for _, m := range s.listed() {
		data = append(data, m.wire(r))
	}
	s.whole(w, &Reply{}, http.StatusOK, marshal(map[string]any{"object": "list", "data": data, "has_more": false}))
}

func (s *Server) one(w http.ResponseWriter, r *http.Request) {
	req, ok := s.keep(r, nil)
	if !ok || isAnthropic(r) && refusedAnthropic(s, w, r, req) {
		return
	}
	m, found := s.model(r.PathValue("id"))
	if !found {
		anthropicFault(s, w, &Reply{}, http.StatusNotFound, "not_found_error", "model: "+r.PathValue("id"))
		return
	}
	s.whole(w, &Reply{}, http.StatusOK, marshal(m.wire(r)))
}

// wire answers m in the form that the request speaks.
func (m Model) wire(r *http.Request) map[string]any {
	if isAnthropic(r) {
		return map[string]any{
			"type": "model", "id": m.ID, "display_name": m.ID, "created_at": "2026-01-01T00:00:00Z", "lifecycle": "active",
			"max_input_tokens": m.Window, "max_tokens": m.MaxOutput,
		}
	}
	out := map[string]any{"id": m.ID, "object": "model", "created": 1767225600, "owned_by": "wiretest"}
	if m.Window > 0 {
		out["max_model_len"], out["context_length"] = m.Window, m.Window
	}
	return out
}
