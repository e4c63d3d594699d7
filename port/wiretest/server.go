package wiretest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/knl-run/knl/port"
)

// Server is a provider of models on 127.0.0.1. It is safe for concurrent use.
type Server struct {
	URL string // without a path: "http://127.0.0.1:…"

	t    testing.TB
	done chan struct{}

	mu       sync.Mutex
	replies  []Reply
	requests []Request
	models   []Model
	prefill  bool
	lenient  bool
	tokens   int64
	by       func(Request) (Reply, bool)
	counter  func(Request) int64
}

// Request is a call as it arrived.
type Request struct {
	Method, Path string
	Header       http.Header
	Body         json.RawMessage
	Fault        error // the rule that the body breaks, or nil
}

// Model is one that the server lists. Sizes are tokens; 0 says nothing.
type Model struct {
	ID                string
	Window, MaxOutput int64
}

// mounts lists what each wire form serves.
var mounts = []func(*Server, *http.ServeMux){mountAnthropic, mountOpenAI}

// New starts a server that stops with the test.
func New(t testing.TB) *Server {
	s := &Server{t: t, done: make(chan struct{}), tokens: 42}
	mux := http.NewServeMux()
	for _, mount := range mounts {
		mount(s, mux)
	}
	server := httptest.NewServer(mux)
	s.URL = server.URL
	t.Cleanup(func() {
		close(s.done)
		server.CloseClientConnections()
		server.Close()
	})
	return s
}

// Reply queues what the next model calls get.
func (s *Server) Reply(replies ...Reply) *Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies = append(s.replies, replies...)
	return s
}

// By sets who chooses the replies in place of their order; false says that there
// is none for the request. Calls may come from several goroutines.
func (s *Server) By(choose func(Request) (Reply, bool)) *Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by = choose
	return s
}

// Serves lists the models that the server knows.
func (s *Server) Serves(models ...Model) *Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.models = models
	return s
}

// Counts sets what counting the tokens of any prompt answers.
func (s *Server) Counts(tokens int64) *Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = tokens
	return s
}

// CountsBy sets who counts the tokens of a prompt, in place of a number for any.
func (s *Server) CountsBy(count func(Request) int64) *Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counter = count
	return s
}

// Prefill says whether requests may end with an assistant message.
func (s *Server) Prefill(on bool) *Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prefill = on
	return s
}

// Lenient lets a test send bodies that break a rule: they are refused all the
// same.
func (s *Server) Lenient() *Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lenient = true
	return s
}

// Requests answers every request so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Last answers the request that arrived last.
func (s *Server) Last() Request {
	all := s.Requests()
	if len(all) == 0 {
		s.t.Fatal("wiretest: no request arrived")
	}
	return all[len(all)-1]
}

// Bodies answers the bodies of the requests to path.
func (s *Server) Bodies(path string) []json.RawMessage {
	var out []json.RawMessage
	for _, r := range s.Requests() {
		if r.Path == path {
			out = append(out, r.Body)
		}
	}
	return out
}

// keep reads a request and remembers it with what check says of its body.
func (s *Server) keep(r *http.Request, check func(body []byte) error) (Request, bool) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return Request{}, false
	}
	req := Request{Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
	if check != nil {
		req.Fault = check(body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, req)
	if req.Fault != nil && !s.lenient {
		s.t.Errorf("wiretest: %s refused: %v\n%s", req.Path, req.Fault, clip(body))
	}
	return req, true
}

// next takes the reply to a model call and waits as long as it says.
func (s *Server) next(r *http.Request, req Request) (*Reply, bool) {
	s.mu.Lock()
	choose := s.by
	s.mu.Unlock()
	if choose == nil {
		choose = s.inOrder
	}
	reply, ok := choose(req)
	if !ok {
		s.t.Errorf("wiretest: a model call to %s came, want no more: there is no reply to it\n%s", req.Path, clip(req.Body))
		return nil, false
	}
	return &reply, s.wait(r, reply.Delay)
}

// inOrder takes the next of the replies.
func (s *Server) inOrder(Request) (Reply, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.replies) == 0 {
		return Reply{}, false
	}
	reply := s.replies[0]
	s.replies = s.replies[1:]
	return reply, true
}

// wait sleeps unless the client goes or the test ends before.
func (s *Server) wait(r *http.Request, d time.Duration) bool {
	if d == 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
	case <-s.done:
	}
	return false
}

// target is what a body of dialect d is held against.
func (s *Server) target(d port.Dialect) port.Target {
	s.mu.Lock()
	defer s.mu.Unlock()
	return port.Target{Dialect: d, Prefill: s.prefill}
}

// model finds a listed model. A server that lists none knows every one.
func (s *Server) model(id string) (Model, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.models {
		if m.ID == id {
			return m, true
		}
	}
	return Model{ID: id}, len(s.models) == 0
}

// listed answers the models in their order.
func (s *Server) listed() []Model {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Model(nil), s.models...)
}

// whole writes a body that is no stream, cut where the reply says.
func (s *Server) whole(w http.ResponseWriter, r *Reply, status int, body []byte) {
	kind := r.Type
	if kind == "" {
		kind = "application/json"
	}
	w.Header().Set("content-type", kind)
	for key, value := range r.Header {
		w.Header().Set(key, value)
	}
	if r.Cut > 0 && r.Cut < len(body) {
		w.Header().Set("content-length", fmt.Sprint(len(body)))
		w.WriteHeader(status)
		_, _ = w.Write(body[:r.Cut])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// marshal answers v as JSON; what the server writes always encodes.
func marshal(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // raw blocks go out byte for byte
	if err := enc.Encode(v); err != nil {
		panic("BUG: wiretest: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func clip(body []byte) []byte {
	if len(body) > 2000 {
		return append(body[:2000:2000], "…"...)
	}
	return body
}
