package llmopenai

import (
	"fmt"
	"net/url"
	"os"
	"strings"

	"dsh/modules/llm"
)

// place is where a call goes and with which key.
type place struct {
	target  llm.Target
	baseURL string
	key     string // empty: the server wants none

	keyFrom, baseFrom string // the variable that has the key, and what says where the API is, in a user's words
}

// family is a provider by the names of its variables.
type family struct{ name, keyEnv, urlEnv, baseURL string }

var families = []family{
	{"deepseek", "DEEPSEEK_API_KEY", "DEEPSEEK_BASE_URL", "https://api.deepseek.com"},
	{"openai", "OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1"},
}

const deepSeekModel = "deepseek-v4-flash"

// keyVariables returns the variables that commands must not see.
func (c Config) keyVariables() []string {
	names := []string{families[0].keyEnv, families[1].keyEnv}
	if c.APIKeyEnv != "" {
		names = append(names, c.APIKeyEnv)
	}
	return names
}

// look finds out where a call for model goes.
func (c Config) look(model string) (place, error) {
	f, key, err := c.key()
	if err != nil {
		return place{}, err
	}
	p := place{baseURL: c.BaseURL, key: key, keyFrom: f.keyEnv, baseFrom: "baseURL in the row llm"}
	if p.baseURL == "" {
		p.baseURL, p.baseFrom = strings.TrimSpace(os.Getenv(f.urlEnv)), f.urlEnv+", or baseURL in the row llm,"
	}
	if p.baseURL == "" {
		p.baseURL = f.baseURL
	}
	if !validBaseURL(p.baseURL) {
		return place{}, &llm.Error{
			Code:    llm.CodeInvalidRequest,
			Message: fmt.Sprintf("%s must be an http or https address without user, query and fragment", f.urlEnv),
		}
	}
	p.baseURL = strings.TrimRight(p.baseURL, "/")
	p.target.Provider = c.provider(f, p.baseURL)
	if p.target.Model = model; model == "" {
		p.target.Model = c.Model
	}
	if p.target.Model == "" && p.baseURL == families[0].baseURL {
		p.target.Model = deepSeekModel
	}
	if p.target.Model == "" {
		return place{}, &llm.Error{
			Code:    llm.CodeInvalidRequest,
			Message: fmt.Sprintf("no model is named for %s; set model in the row llm, or give --model", p.baseURL),
		}
	}
	return p, nil
}

// key returns the key and whose family it is of.
func (c Config) key() (family, string, error) {
	looked := []family{families[0], families[1]}
	if c.APIKeyEnv != "" {
		f := families[0]
		if strings.HasPrefix(c.APIKeyEnv, "OPENAI_") {
			f = families[1]
		}
		f.keyEnv = c.APIKeyEnv
		looked = []family{f}
	}
	for _, f := range looked {
		key := strings.TrimSpace(os.Getenv(f.keyEnv))
		if key == "" {
			continue
		}
		if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return family{}, "", &llm.Error{
				Code:    llm.CodeInvalidCredential,
				Message: fmt.Sprintf("the key in %s has characters that no key has", f.keyEnv),
			}
		}
		return f, key, nil
	}
	if c.BaseURL != "" && c.APIKeyEnv == "" {
		return family{}, "", nil
	}
	var names []string
	for _, f := range looked {
		names = append(names, f.keyEnv)
	}
	return family{}, "", &llm.Error{
		Code:    llm.CodeMissingCredential,
		Message: "no API key for the model: export " + strings.Join(names, " or ") + ", or set apiKeyEnv in the row llm to the variable that has it",
	}
}

func (c Config) provider(f family, baseURL string) string {
	if c.Provider != "" {
		return c.Provider
	}
	if baseURL == f.baseURL {
		return f.name
	}
	u, err := url.Parse(baseURL)
	if err != nil {
		return baseURL
	}
	return u.Host
}
