package source

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"dsh/internal/diag"
)

// syntax translates what the YAML library says into a fault at its place.
func (p *parser) syntax(err error) *diag.Diagnostic {
	d := &diag.Diagnostic{Place: diag.Place{File: p.file, Text: p.text}, Slug: "yaml", Message: "this is not YAML"}
	var e *yaml.LoadError
	if !errors.As(err, &e) {
		return d
	}
	line, column := e.Mark.Line, e.Mark.Column
	if line == 0 {
		line, column = p.position(e.Mark.Index)
	}
	if line > len(p.lines) || line == len(p.lines) && p.lines[line-1] == "" {
		line, column = p.end()
	}
	d.Place = p.at(line, column)
	d.Message += ": " + e.Message
	rest := p.rest(line, column)
	switch {
	case strings.HasPrefix(e.Message, "did not find expected <document start>"):
		return p.second(line)
	case strings.Contains(e.Message, "cannot start any token") && strings.HasPrefix(rest, "\t"), strings.Contains(e.Message, "tab character"):
		d.Message, d.Hint = "this is not YAML: a tab in the indentation", "indent with spaces"
	case strings.Contains(e.Message, "cannot start any token"):
		word := strings.TrimRight(rest, ",]} ")
		d.Place.Width = utf8.RuneCountInString(word)
		d.Message = fmt.Sprintf("this is not YAML: no plain value starts with %q", firstRune(rest))
		d.Hint = fmt.Sprintf("quote it: '%s'", strings.ReplaceAll(word, "'", "''"))
	case p.open(line) != diag.Place{}:
		d.Place = p.open(line)
		d.Message = "this is not YAML: what starts here has no end"
		d.Hint = "close it with " + closing(p.rest(d.Place.Line, d.Place.Column))
	case strings.HasPrefix(e.Message, "mapping values are not allowed"):
		d.Message, d.Hint = `this is not YAML: a second ": " in one value`, `quote a value that contains ": "`
	case strings.HasPrefix(e.Message, "unknown anchor"):
		name := strings.TrimRight(strings.TrimPrefix(strings.Fields(rest + " *")[0], "*"), ",]}")
		d.Place.Width = utf8.RuneCountInString(name) + 1
		d.Message, d.Slug = fmt.Sprintf("the alias *%s names no anchor", name), "alias"
		d.Hint = fmt.Sprintf("if it is text, quote it: '*%s'", name)
	case strings.Contains(e.Message, "end of stream") || strings.HasPrefix(e.Message, "did not find expected ',' or"):
		if e.ContextMark.Line > 0 {
			d.Message = "this is not YAML: what starts here has no end"
			d.Place = p.at(e.ContextMark.Line, e.ContextMark.Column)
			d.Hint = "close it with " + closing(p.rest(e.ContextMark.Line, e.ContextMark.Column))
		}
	case strings.HasPrefix(e.Message, "control characters"):
		d.Message, d.Hint = "this is not YAML: a control character", `write it as an escape in double quotes, such as "\x1b"`
	}
	return d
}

// second is the fault of anything behind the one document.
func (p *parser) second(line int) *diag.Diagnostic {
	at := p.at(line, 1)
	rest := p.rest(line, 1)
	at.Width = utf8.RuneCountInString(rest)
	d := &diag.Diagnostic{Place: at, Slug: "second-document", Message: "the file goes on behind its list", Hint: `remove the "[]" above, or make this a part of the list`}
	if strings.HasPrefix(rest, "---") {
		d.Message, d.Hint = "a second document starts here", "a patch is one document; remove this line"
	}
	return d
}

func (p *parser) encoding() *diag.Diagnostic {
	for i, line := range p.lines {
		if !utf8.ValidString(line) {
			column := 1
			for _, r := range line {
				if r == utf8.RuneError {
					break
				}
				column++
			}
			return &diag.Diagnostic{Place: p.at(i+1, column), Slug: "yaml", Message: "this is not YAML: the text is not UTF-8", Hint: "save the file as UTF-8"}
		}
	}
	return &diag.Diagnostic{Place: diag.Place{File: p.file}, Slug: "yaml", Message: "this is not YAML: the text is not UTF-8"}
}

// position returns line and column of a byte offset.
func (p *parser) position(index int) (line, column int) {
	before := strings.TrimPrefix(p.text, "\ufeff")
	before = before[:min(index, len(before))]
	line = strings.Count(before, "\n") + 1
	return line, utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
}

// end returns the last character of the last line that has any.
func (p *parser) end() (line, column int) {
	for i := len(p.lines) - 1; i >= 0; i-- {
		if s := strings.TrimRight(p.lines[i], " \t\r"); s != "" {
			return i + 1, utf8.RuneCountInString(s)
		}
	}
	return 1, 1
}

// open returns the place of a bracket that the lines before one leave open, as a reader would see it: the library
// notices it only at what comes next.
func (p *parser) open(line int) diag.Place {
	var stack []diag.Place
	for i, text := range p.lines[:max(0, min(line-1, len(p.lines)))] {
		var quote rune
		before := ' '
		for j, r := range []rune(text) {
			start := strings.ContainsRune(" [{,", before)
			switch {
			case quote != 0:
				if r == quote {
					quote = 0
				}
			case (r == '"' || r == '\'') && start:
				quote = r
			case r == '#' && before == ' ':
				before = '#'
			case before == '#':
				continue
			case (r == '[' || r == '{') && start:
				stack = append(stack, p.at(i+1, j+1))
			case (r == ']' || r == '}') && len(stack) > 0:
				stack = stack[:len(stack)-1]
			}
			if before != '#' {
				before = r
			}
		}
	}
	if len(stack) == 0 {
		return diag.Place{}
	}
	return stack[0]
}

func closing(rest string) string {
	switch firstRune(rest) {
	case "[":
		return `"]"`
	case "{":
		return `"}"`
	}
	return "the same quote"
}

func firstRune(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return s[:n]
}
