package jobs

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Notice says that a job has ended whose owner has not been told.
type Notice struct{ Job Snapshot }

// Text returns what a model reads, within the job's OutputLimitBytes if the words that must be there fit.
func (n Notice) Text() string {
	j := n.Job
	head := "background job " + j.ID
	text := fmt.Sprintf("%s (%s: %s) finished %s. Read its output with job_output.", head, j.Kind, j.Label, StatusMark(j))
	limit := int(min(j.OutputLimitBytes, int64(len(text))))
	if limit == 0 || limit == len(text) {
		return text
	}
	const done = "\nDone; job_output."
	const cut = "\n[notice truncated]" + done
	if room := limit - len(cut); room >= len(head) {
		return Clip(text, room) + cut
	}
	return head + done
}

// Summary returns the notice as one short line for people.
func (n Notice) Summary() string {
	const most = 120
	line := []rune(strings.Join(strings.Fields(fmt.Sprintf("%s %s %s", n.Job.Kind, n.Job.Label, StatusMark(n.Job))), " "))
	return string(line[:min(len(line), most)])
}

// StatusMark returns `[status: <status>]`, with the detail if there is one.
func StatusMark(s Snapshot) string {
	if s.Detail == "" {
		return fmt.Sprintf("[status: %s]", s.Status)
	}
	return fmt.Sprintf("[status: %s, %s]", s.Status, s.Detail)
}

// Clip returns the longest beginning of text that has at most n bytes and cuts no character.
func Clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n = max(n, 0); n > 0 && !utf8.RuneStart(text[n]); n-- {
	}
	return text[:n]
}
