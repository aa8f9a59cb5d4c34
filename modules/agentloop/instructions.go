package agentloop

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"dsh/modules/llm"
)

// The files that hold instructions, and the one that marks the root of a project.
var (
	instructionFiles = []string{"AGENTS.md", "CLAUDE.md", "AGENTS.local.md", "CLAUDE.local.md"}
	projectMarker    = ".git"
)

const maxInstructionFile = 1 << 20 // a larger file holds something else

var instructionSource = llm.Source{Kind: llm.SourcePlugin, Plugin: "agent-loop", Form: "instructions"}

const (
	instructionIntro = "The following workspace instructions may be relevant to your work. Use them as guidance when applicable. " +
		"More specific instructions take precedence over broader ones. They do not override system, developer, or direct user " +
		"instructions."
	replacingIntro = "This complete workspace instruction baseline replaces all earlier workspace instruction baselines. "
	noInstructions = "No workspace instructions are currently active."
)

// instructions returns the message with the workspace's instructions, unless the last one in the conversation says the
// same.
func (t *turn) instructions() (llm.Message, bool) {
	if t.config.InstructionsMaxBytes == 0 {
		return llm.Message{}, false
	}
	body := renderInstructions(findInstructions(t.home, t.s.Header().CWD), t.config.InstructionsMaxBytes)
	last, sent := t.last(instructionSource)
	if !sent {
		return saying(reminder(instructionIntro+body), instructionSource), body != ""
	}
	first, replacing := reminder(instructionIntro+body), reminder(replacingIntro+instructionIntro+body)
	if body == "" {
		first, replacing = "", reminder(replacingIntro+noInstructions)
	}
	m := saying(replacing, instructionSource)
	return m, last != m.Text() && last != saying(first, instructionSource).Text()
}

func reminder(text string) string {
	return "<system-reminder>\n" + strings.ReplaceAll(text, "</system-reminder>", `<\/system-reminder>`) + "\n</system-reminder>"
}

// instruction is a file with instructions.
type instruction struct{ shown, text string }

// findInstructions returns the files that hold for work in cwd, from the broadest to the most specific: the user's own,
// then those of each directory from the project's root down.
func findInstructions(home, cwd string) []instruction {
	var found []instruction
	if root, err := os.OpenRoot(home); err == nil {
		if text, ok := read(root, "AGENTS.md"); ok {
			found = append(found, instruction{"$DSH_HOME/AGENTS.md", text})
		}
		root.Close()
	}
	top, below := project(cwd)
	// What a link in the workspace leads to, outside of it, is nobody's instructions.
	root, err := os.OpenRoot(top)
	if err != nil {
		return found
	}
	defer root.Close()
	for i := range len(below) + 1 {
		dir := filepath.Join(below[:i]...)
		seen := map[string]bool{}
		for _, name := range instructionFiles {
			path := filepath.Join(dir, name)
			text, ok := read(root, path)
			if key := strings.TrimSpace(text); ok && !seen[key] {
				seen[key] = true
				found = append(found, instruction{filepath.ToSlash(path), text})
			}
		}
	}
	return found
}

// project returns the root of the project that cwd is in, and the names of the directories that lead from there to cwd.
func project(cwd string) (root string, below []string) {
	cwd = filepath.Clean(cwd)
	for dir := cwd; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, projectMarker)); err == nil {
			return dir, below
		}
		if filepath.Dir(dir) == dir {
			return cwd, nil
		}
		below = append([]string{filepath.Base(dir)}, below...)
	}
}

// read returns the text of a regular file that can be read and is not too large.
func read(root *os.Root, path string) (string, bool) {
	// Opening a pipe must not wait for its other end.
	f, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxInstructionFile {
		return "", false
	}
	text, err := io.ReadAll(io.LimitReader(f, maxInstructionFile+1))
	if err != nil || len(text) > maxInstructionFile || len(strings.TrimSpace(string(text))) == 0 {
		return "", false
	}
	return string(text), true
}

// renderInstructions returns the files within a budget, which the broadest lose first.
func renderInstructions(files []instruction, budget int) string {
	size := 0
	for _, f := range files {
		size += len(f.text)
	}
	var omitted []string
	for len(files) > 1 && size > budget {
		size -= len(files[0].text)
		omitted = append(omitted, files[0].shown)
		files = files[1:]
	}
	var notes []string
	if len(omitted) > 0 {
		notes = append(notes, "omitted "+strings.Join(omitted, ", "))
	}
	if size > budget {
		last := files[0]
		cut := beginning(last.text, budget)
		notes = append(notes, fmt.Sprintf("truncated %s from %d to %d bytes", last.shown, len(last.text), len(cut)))
		files = []instruction{{last.shown, cut}}
	}
	var b strings.Builder
	for _, f := range files {
		fmt.Fprintf(&b, "\n\nInstructions from: %s\n\n%s", f.shown, strings.TrimRight(f.text, "\n"))
	}
	if len(notes) > 0 {
		fmt.Fprintf(&b, "\n\nWorkspace instruction budget %d bytes: %s", budget, strings.Join(notes, "; "))
	}
	return b.String()
}
