package wiretest

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// stream writes server-sent events and breaks off where its reply says.
type stream struct {
	s     *Server
	w     http.ResponseWriter
	r     *http.Request
	reply *Reply
	sent  int
	gone  bool // nobody reads any more
}

// open begins a stream with its headers.
func (s *Server) open(w http.ResponseWriter, r *http.Request, reply *Reply) *stream {
	w.Header().Set("content-type", "text/event-stream; charset=utf-8")
	w.Header().Set("cache-control", "no-cache")
	for key, value := range reply.Header {
		w.Header().Set(key, value)
	}
	w.WriteHeader(http.StatusOK)
	return &stream{s: s, w: w, r: r, reply: reply}
}

// send writes one event; an event without a name has data alone.
func (st *stream) send(name string, data []byte) {
	text := string(data)
	if st.reply.Mangle != nil {
		if name, text = st.reply.Mangle(name, text); text == "" {
			return
		}
	}
	if st.gone || !st.s.wait(st.r, st.reply.Pace) {
		st.gone = true
		return
	}
	var b strings.Builder
	if name != "" {
		fmt.Fprintf(&b, "event: %s\n", name)
	}
	fmt.Fprintf(&b, "data: %s\n\n", text)
	_, err := st.w.Write([]byte(b.String()))
	st.gone = err != nil
	_ = http.NewResponseController(st.w).Flush()
	if st.sent++; st.sent == st.reply.Cut {
		panic(http.ErrAbortHandler)
	}
}

// forever sends an event again and again until the client goes.
func (st *stream) forever(name string, data []byte) {
	for !st.gone && st.s.wait(st.r, 5*time.Millisecond) {
		st.send(name, data)
	}
}
