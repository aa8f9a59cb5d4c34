package source

import (
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"dsh/internal/diag"
)

// place returns where y stands, as wide as its token.
func (p *parser) place(y *yaml.Node) diag.Place {
	at := p.at(y.Line, y.Column)
	rest := p.rest(y.Line, y.Column)
	switch {
	case y.Kind == yaml.AliasNode:
		at.Width = 1 + utf8.RuneCountInString(y.Value)
	case y.Kind == yaml.ScalarNode && (y.Style&yaml.TaggedStyle != 0 || y.Anchor != ""):
		at.Width = utf8.RuneCountInString(token(rest, y.Value))
	case y.Kind == yaml.ScalarNode && y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		at.Width = quoted(rest)
	case y.Kind == yaml.ScalarNode && strings.HasPrefix(rest, y.Value):
		at.Width = utf8.RuneCountInString(y.Value)
	case y.Kind == yaml.MappingNode && y.Style&yaml.FlowStyle == 0 && len(y.Content) > 0 && y.Content[0].Line == y.Line:
		at.Width = max(1, y.Content[0].Column-y.Column+p.place(y.Content[0]).Width)
	}
	return at
}

// at returns the place of one character.
func (p *parser) at(line, column int) diag.Place {
	return diag.Place{File: p.file, Line: line, Column: column, Width: 1, Text: p.text}
}

// rest returns a line from column on.
func (p *parser) rest(line, column int) string {
	if line < 1 || line > len(p.lines) {
		return ""
	}
	s := p.lines[line-1]
	for i := range s {
		if column--; column <= 0 {
			return strings.TrimRight(s[i:], " \t\r")
		}
	}
	return ""
}

// token returns a tag or anchor at the start of rest together with the value behind it, if that ends in this line.
func token(rest, value string) string {
	if i := strings.Index(rest, value); i > 0 && value != "" {
		end := i + len(value)
		if end < len(rest) && (rest[end] == '"' || rest[end] == '\'') {
			end++
		}
		return rest[:end]
	}
	word, _, _ := strings.Cut(rest, " ")
	return word
}

// quoted returns how wide the quoted scalar at the start of rest is, in characters.
func quoted(rest string) int {
	width, escaped := 0, false
	for i, r := range rest {
		width++
		switch {
		case i == 0 || escaped:
			escaped = false
		case r == '\\' && rest[0] == '"':
			escaped = true
		case byte(r) == rest[0]:
			return width
		}
	}
	return max(1, width)
}
