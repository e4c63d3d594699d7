package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/internal/field"
	"github.com/knl-run/knl/port/internal/wire"
)

// windows are the sizes that OpenAI has published for its models, in tokens; the
// first row that fits a name counts.
var windows = []struct {
	family
	sizes port.Profile
}{
	{family{"gpt-5", "-chat"}, port.Profile{ContextWindow: 128_000, MaxOutput: 16_384}}, // gpt-5.1-chat-latest, too
	{family{"gpt-5-pro", ""}, port.Profile{ContextWindow: 400_000, MaxOutput: 272_000}},
	{family{"gpt-5", ""}, port.Profile{ContextWindow: 400_000, MaxOutput: 128_000}},
	{family{"gpt-4.1", ""}, port.Profile{ContextWindow: 1_047_576, MaxOutput: 32_768}},
	{family{"gpt-4.5", ""}, port.Profile{ContextWindow: 128_000, MaxOutput: 16_384}},
	{family{"gpt-4o-2024-05-13", ""}, port.Profile{ContextWindow: 128_000, MaxOutput: 4_096}},
	{family{"gpt-4o", ""}, port.Profile{ContextWindow: 128_000, MaxOutput: 16_384}},
	{family{"chatgpt-4o", ""}, port.Profile{ContextWindow: 128_000, MaxOutput: 16_384}},
	{family{"gpt-4-turbo", ""}, port.Profile{ContextWindow: 128_000, MaxOutput: 4_096}},
	{family{"gpt-4", "-preview"}, port.Profile{ContextWindow: 128_000, MaxOutput: 4_096}}, // -1106-, -0125-, -vision-
	{family{"gpt-4-32k", ""}, port.Profile{ContextWindow: 32_768, MaxOutput: 32_768}},
	{family{"gpt-4", ""}, port.Profile{ContextWindow: 8_192, MaxOutput: 8_192}},
	{family{"gpt-3.5-turbo-instruct", ""}, port.Profile{ContextWindow: 4_096, MaxOutput: 4_096}},
	{family{"gpt-3.5-turbo", ""}, port.Profile{ContextWindow: 16_385, MaxOutput: 4_096}},
	{family{"gpt-oss", ""}, port.Profile{ContextWindow: 131_072, MaxOutput: 131_072}},
	{family{"o1-mini", ""}, port.Profile{ContextWindow: 128_000, MaxOutput: 65_536}},
	{family{"o1-preview", ""}, port.Profile{ContextWindow: 128_000, MaxOutput: 32_768}},
	{family{"o1", ""}, port.Profile{ContextWindow: 200_000, MaxOutput: 100_000}},
	{family{"o3", ""}, port.Profile{ContextWindow: 200_000, MaxOutput: 100_000}},
	{family{"o4-mini", ""}, port.Profile{ContextWindow: 200_000, MaxOutput: 100_000}},
	{family{"codex-mini", ""}, port.Profile{ContextWindow: 200_000, MaxOutput: 100_000}},
	{family{"computer-use-preview", ""}, port.Profile{ContextWindow: 8_192, MaxOutput: 1_024}},
}

// shipped answers the sizes of a model that the table knows. A name that goes on
// without a sign is another: gpt-45 is no gpt-4.
func shipped(name string) (port.Profile, bool) {
	name = origin(name)
	for _, row := range windows {
		if follows := strings.TrimPrefix(name, row.begins); row.fits(name) && (follows == "" || strings.ContainsAny(follows[:1], "-.:")) {
			return row.sizes, true
		}
	}
	return port.Profile{}, false
}

// hosted says whether a model is one that OpenAI itself serves; gpt-oss is given
// away.
func hosted(model string) bool {
	_, known := shipped(model)
	return known && !strings.HasPrefix(model, "gpt-oss")
}

// Profile answers what the model can do: what conf says, else the shipped table
// for OpenAI, else what the server says of itself, which is asked once.
func (p *Port) Profile(ctx context.Context, conf port.Conf) (port.Profile, error) {
	m, err := p.open(conf)
	if err != nil {
		return port.Profile{}, err
	}
	found, err := m.profile(ctx)
	if err != nil {
		return port.Profile{}, err
	}
	if conf.ContextWindow > 0 {
		found.ContextWindow = conf.ContextWindow
	}
	if conf.MaxTokens > 0 {
		found.MaxOutput = conf.MaxTokens
	}
	if found.ContextWindow == 0 {
		return port.Profile{}, fmt.Errorf("profile of %q: the size of its context is not known, want conf.context_window", conf.Model)
	}
	found.MaxOutput = min(found.MaxOutput, found.ContextWindow)
	return found, nil
}

func (m *model) profile(ctx context.Context) (port.Profile, error) {
	if m.server.dialect.profile == byTable || m.conf.ContextWindow > 0 {
		p, _ := shipped(m.conf.Model)
		return p, nil
	}
	if p, known := m.port.profiles.Load(m.place()); known {
		return p.(port.Profile), nil
	}
	var p port.Profile
	var err error
	certain := true
	switch m.server.dialect.profile {
	case byModels:
		p, err = m.listed(ctx)
	case byProps:
		p, err = m.props(ctx)
	case byShow:
		p, certain, err = m.shown(ctx)
	}
	if err == nil && certain && p.ContextWindow > 0 {
		m.port.profiles.Store(m.place(), p)
	}
	return p, err
}

// read reads a JSON answer of the server's own.
func (m *model) read(ctx context.Context, r request, dst any) error {
	body, err := m.fetch(ctx, r)
	if err != nil {
		return err
	}
	if !field.Lenient(body, dst) {
		return wire.Unreadable("the answer to "+r.path+" is not what "+m.server.dialect.name+" writes", string(body))
	}
	return nil
}

// beside answers a path of the server that does not stand under its version.
func (m *model) beside(path string) string {
	if strings.HasSuffix(m.server.base.Path, "/v1") {
		return "../" + path
	}
	return path
}

// listed reads the list of models, as vllm and openrouter give it.
func (m *model) listed(ctx context.Context) (port.Profile, error) {
	var list struct {
		Data []struct {
			ID      string `json:"id"`
			Length  int64  `json:"max_model_len"`
			Context int64  `json:"context_length"`
			Top     struct {
				Context int64 `json:"context_length"`
				Output  int64 `json:"max_completion_tokens"`
			} `json:"top_provider"`
		} `json:"data"`
	}
	if err := m.read(ctx, request{method: "GET", path: "models"}, &list); err != nil {
		return port.Profile{}, err
	}
	for _, name := range spellings(m.conf.Model) {
		for _, one := range list.Data {
			if name == one.ID || name == strings.ToLower(one.ID) {
				return port.Profile{ContextWindow: firstOf(one.Length, one.Top.Context, one.Context), MaxOutput: one.Top.Output}, nil
			}
		}
	}
	return port.Profile{}, nil
}

// spellings answers what a list may call a model, the nearest first: openrouter takes
// a name in letters of any case, and with a way to choose who serves it (:nitro,
// :floor, :online), which its list does not have.
func spellings(model string) []string {
	small := strings.ToLower(model)
	plain, _, _ := strings.Cut(small, ":")
	return []string{model, small, plain}
}

func firstOf(sizes ...int64) int64 {
	for _, n := range sizes {
		if n > 0 {
			return n
		}
	}
	return 0
}

// props reads what llama.cpp was started with.
func (m *model) props(ctx context.Context) (port.Profile, error) {
	var props struct {
		Settings struct {
			Context int64 `json:"n_ctx"`
		} `json:"default_generation_settings"`
		Context int64 `json:"n_ctx"`
	}
	err := m.read(ctx, request{method: "GET", path: m.beside("props")}, &props)
	return port.Profile{ContextWindow: firstOf(props.Settings.Context, props.Context)}, err
}

var contextParameter = regexp.MustCompile(`(?m)^\s*num_ctx\s+(\d+)`)

// shown reads what ollama says: the context that the model runs with, else the
// one that it is configured with, else what the model was trained for. ollama
// cuts a longer prompt without a word, so the last is not certain: a model that is
// not loaded yet may be given less.
func (m *model) shown(ctx context.Context) (p port.Profile, certain bool, err error) {
	if p.ContextWindow, err = m.running(ctx); err != nil || p.ContextWindow > 0 {
		return p, true, err
	}
	var show struct {
		Parameters string                     `json:"parameters"`
		Info       map[string]json.RawMessage `json:"model_info"`
	}
	body := field.Map{"model": field.Quoted(m.conf.Model)}.JSON()
	if err := m.read(ctx, request{method: "POST", path: m.beside("api/show"), body: body}, &show); err != nil {
		return p, false, err
	}
	if found := contextParameter.FindStringSubmatch(show.Parameters); found != nil {
		p.ContextWindow, _ = strconv.ParseInt(found[1], 10, 64)
		return p, true, nil
	}
	for key, value := range show.Info {
		if n, err := strconv.ParseInt(string(value), 10, 64); err == nil && strings.HasSuffix(key, ".context_length") && (p.ContextWindow == 0 || n < p.ContextWindow) {
			p.ContextWindow = n
		}
	}
	return p, false, nil
}

// running answers the context that ollama runs the model with, 0 when it does
// not run it.
func (m *model) running(ctx context.Context) (int64, error) {
	var list struct {
		Models []struct {
			Name    string `json:"name"`
			Context int64  `json:"context_length"`
		} `json:"models"`
	}
	if err := m.read(ctx, request{method: "GET", path: m.beside("api/ps")}, &list); err != nil {
		return 0, err
	}
	for _, one := range list.Models {
		if one.Name == m.conf.Model || one.Name == m.conf.Model+":latest" {
			return one.Context, nil
		}
	}
	return 0, nil
}
