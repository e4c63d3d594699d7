package wiretest

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/knl-run/knl/port"
)

// chatKeys lists what a Chat Completions body may hold; serverKeys, what the
// servers that resemble OpenAI take on top.
var (
	chatKeys = words("audio frequency_penalty logit_bias logprobs max_completion_tokens messages metadata modalities model n " +
		"parallel_tool_calls prediction presence_penalty prompt_cache_key reasoning_effort response_format safety_identifier seed " +
		"service_tier stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity")
	responsesKeys = words("background conversation include input instructions max_output_tokens max_tool_calls metadata model " +
		"parallel_tool_calls previous_response_id prompt prompt_cache_key reasoning safety_identifier service_tier store stream " +
		"stream_options temperature text tool_choice tools top_logprobs top_p truncation user")
)

// likeness is how one server that resembles OpenAI differs on the wire. Where a
// client finds it is URL + "/" + name: "/ollama/v1" has ollama's, "/v1" OpenAI's.
type likeness struct {
	name     string
	keys     map[string]bool // beside chatKeys
	thinking string          // the field of a message that holds what was thought
	details  bool            // and reasoning_details beside it
	whole    bool            // a call comes in one piece
	stops    bool            // a choice has a stop_reason
	efforts  map[string]bool // what reasoning_effort, or reasoning.effort, may be
}

var likenesses = []likeness{
	{name: "openai", efforts: words("none minimal low medium high xhigh")},
	{name: "vllm", keys: words("max_tokens top_k min_p chat_template_kwargs guided_json"), thinking: "reasoning", stops: true, efforts: words("low medium high")},
	{name: "llamacpp", keys: words("max_tokens top_k min_p chat_template_kwargs"), thinking: "reasoning_content", efforts: words("low medium high")},
	{name: "ollama", keys: words("max_tokens"), thinking: "reasoning", whole: true, efforts: words("none low medium high")},
	{name: "openrouter", keys: words("max_tokens top_k min_p reasoning models provider transforms usage"), thinking: "reasoning", details: true, efforts: words("none minimal low medium high xhigh")},
}

func mountOpenAI(s *Server, mux *http.ServeMux) {
	for _, l := range likenesses {
		at := "/" + l.name
		mux.HandleFunc("POST "+at+"/v1/chat/completions", s.chat(l))
		mux.HandleFunc("GET "+at+"/v1/models", s.list)
	}
	mux.HandleFunc("POST /v1/chat/completions", s.chat(likenesses[0]))
	mux.HandleFunc("POST /v1/responses", s.respond)
	mux.HandleFunc("GET /openrouter/v1/key", s.list)
	mux.HandleFunc("GET /llamacpp/props", s.props)
	mux.HandleFunc("GET /ollama/api/ps", s.running)
	mux.HandleFunc("POST /ollama/api/show", s.show)
}

// chat answers one call of Chat Completions.
func (s *Server) chat(l likeness) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		target := s.target(port.OpenAI)
		reply, in, ok := s.asked(w, r, l, func(body []byte) error {
			if err := known(body, chatKeys, l.keys); err != nil {
				return err
			}
			if err := l.takes(body); err != nil {
				return err
			}
			return port.Check(target, body)
		})
		switch {
		case !ok:
		case in.Stream:
			s.streamChat(s.open(w, r, reply), chat{l, reply, in.Model, in.Options.Usage})
		default:
			s.whole(w, reply, http.StatusOK, marshal(chat{l, reply, in.Model, true}.whole()))
		}
	}
}

// takes wants an effort that the server knows.
func (l likeness) takes(body []byte) error {
	var in struct {
		Effort    string `json:"reasoning_effort"`
		Reasoning struct {
			Effort string `json:"effort"`
		} `json:"reasoning"`
	}
	_ = json.Unmarshal(body, &in)
	for _, effort := range []string{in.Effort, in.Reasoning.Effort} {
		if effort != "" && !l.efforts[effort] {
			return fmt.Errorf("reasoning effort: got %q, which %s does not take", effort, l.name)
		}
	}
	return nil
}

// respond answers one call of the Responses API.
func (s *Server) respond(w http.ResponseWriter, r *http.Request) {
	target := s.target(port.Responses)
	reply, in, ok := s.asked(w, r, likenesses[0], func(body []byte) error {
		if err := known(body, responsesKeys); err != nil {
			return err
		}
		if err := likenesses[0].takes(body); err != nil {
			return err
		}
		return port.Check(target, body)
	})
	switch {
	case !ok:
	case in.Stream:
		s.streamResponse(s.open(w, r, reply), response{reply, in.Model})
	default:
		s.whole(w, reply, http.StatusOK, marshal(response{reply, in.Model}.whole()))
	}
}

// askedFor is what of a body decides how it is answered.
type askedFor struct {
	Model   string
	Stream  bool
	Options struct {
		Usage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// asked takes a call and its reply, and answers what fails. ok says that the
// reply is still to be written.
func (s *Server) asked(w http.ResponseWriter, r *http.Request, l likeness, check func([]byte) error) (reply *Reply, in askedFor, ok bool) {
	req, ok := s.keep(r, check)
	if !ok {
		return nil, in, false
	}
	if l.name == "openai" && r.Header.Get("authorization") == "" {
		s.whole(w, &Reply{}, http.StatusUnauthorized, marshal(l.fault("invalid_api_key", "You didn't provide an API key.", 401)))
		return nil, in, false
	}
	if req.Fault != nil {
		s.whole(w, &Reply{}, http.StatusBadRequest, marshal(l.fault("invalid_request_error", req.Fault.Error(), 400)))
		return nil, in, false
	}
	_ = json.Unmarshal(req.Body, &in)
	reply, ok = s.next(r, req)
	switch {
	case !ok:
		s.whole(w, &Reply{}, http.StatusInternalServerError, marshal(l.fault("server_error", "no reply is left", 500)))
	case reply.Raw != "":
		s.whole(w, reply, max(reply.Status, http.StatusOK), []byte(reply.Raw))
	case reply.failed(), reply.Error != "" && !in.Stream:
		s.whole(w, reply, max(reply.Status, http.StatusOK), marshal(l.fault(reply.Error, reply.Say, reply.Status)))
	default:
		return reply, in, true
	}
	return nil, in, false
}

// fault is the body of a failure, as each server spells it.
func (l likeness) fault(word, message string, status int) map[string]any {
	switch l.name {
	case "vllm":
		return map[string]any{"error": map[string]any{"message": message, "type": word, "param": nil, "code": status}}
	case "llamacpp":
		return map[string]any{"error": map[string]any{"code": status, "message": message, "type": word}}
	case "ollama":
		return map[string]any{"error": map[string]any{"message": message, "type": word, "param": nil, "code": nil}}
	case "openrouter":
		return map[string]any{"error": map[string]any{"code": status, "message": message, "metadata": map[string]any{"error_type": word}}, "user_id": "u"}
	}
	return map[string]any{"error": map[string]any{"message": message, "type": word, "param": nil, "code": word}}
}

// props is what llama.cpp was started with: the first model's window.
func (s *Server) props(w http.ResponseWriter, r *http.Request) {
	if _, ok := s.keep(r, nil); !ok {
		return
	}
	window := int64(0)
	for _, m := range s.listed() {
		window = m.Window
	}
	s.whole(w, &Reply{}, http.StatusOK, marshal(map[string]any{"default_generation_settings": map[string]any{"n_ctx": window}, "total_slots": 1}))
}

// running lists the models that ollama holds: those with an output size.
func (s *Server) running(w http.ResponseWriter, r *http.Request) {
	if _, ok := s.keep(r, nil); !ok {
		return
	}
	models := []any{}
	for _, m := range s.listed() {
		if m.MaxOutput > 0 {
			models = append(models, map[string]any{"name": m.ID, "model": m.ID, "context_length": m.MaxOutput})
		}
	}
	s.whole(w, &Reply{}, http.StatusOK, marshal(map[string]any{"models": models}))
}

// show tells what ollama knows of a model.
func (s *Server) show(w http.ResponseWriter, r *http.Request) {
	req, ok := s.keep(r, nil)
	if !ok {
		return
	}
	var in struct{ Model string }
	_ = json.Unmarshal(req.Body, &in)
	m, found := s.model(in.Model)
	if !found {
		s.whole(w, &Reply{}, http.StatusNotFound, marshal(map[string]any{"error": fmt.Sprintf("model %q not found", in.Model)}))
		return
	}
	info := map[string]any{"general.architecture": "qwen3", "qwen3.context_length": m.Window}
	s.whole(w, &Reply{}, http.StatusOK, marshal(map[string]any{"parameters": "stop \"<|im_end|>\"", "model_info": info}))
}
