package systemprompt

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"dsh/modules/agent"
)

// template is text with variables: text, variable, text, ..., text.
type template []string

// variables are what a template may name, in the order in which errors list them.
var variables = []string{"cwd", "model", "provider"}

var variableName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

func parse(text string) (template, error) {
	var t template
	for {
		before, rest, open := strings.Cut(text, "{{")
		name, after, closed := strings.Cut(rest, "}}")
		if !open || !closed {
			return append(t, text), nil
		}
		switch {
		case !variableName.MatchString(name):
			return nil, fmt.Errorf("has a malformed prompt variable reference {{%s}}", name)
		case !slices.Contains(variables, name):
			return nil, fmt.Errorf(`has an unknown prompt variable "{{%s}}"; registered variables: %s`, name, strings.Join(variables, ", "))
		}
		t, text = append(t, before, name), after
	}
}

// render replaces the variables. What it puts in is not looked at again.
func (t template) render(v agent.View) string {
	var b strings.Builder
	for i, part := range t {
		switch {
		case i%2 == 0:
			b.WriteString(part)
		case part == "cwd":
			b.WriteString(v.Session.CWD)
		case part == "model":
			b.WriteString(v.Target.Model)
		case part == "provider":
			b.WriteString(v.Target.Provider)
		}
	}
	return b.String()
}
