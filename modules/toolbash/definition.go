package toolbash

import (
	"dsh/modules/sandbox"
	"dsh/modules/tools"
)

const name = "bash"

func (b *bash) definition() tools.Definition {
	return tools.Definition{
		Name:        name,
		Description: b.description(),
		Parameters:  b.parameters(),
		Output:      output(),
		Execute:     b.execute,
		Render:      b.render,
	}
}

const description = "Runs a command with bash and returns what it wrote to stdout and stderr, and how it ended. Every call is a " +
	"fresh non-interactive shell: directory changes, variables and functions of one call are not there in the next, and " +
	"standard input is empty. A non-zero exit status is reported as [exit code: N] at the end of the result. When output is " +
	"long only its end is kept, and the result names the file with all of it. "

// What a model is told of long-running commands, where they can be run in the background and where not.
const (
	background = "Set run_in_background for a command that runs long, such as a server or a slow build: the call returns the id of a " +
		"job at once and no timeout applies. job_output reads what the job has written, job_kill ends it, and you are told when it " +
		"has ended. What a job leaves running counts as the job: it goes on until nothing of it is left. Do not use & for this."
	noBackground = "Background execution is not available; long-running commands must finish within the timeout."
)

// confined is what a model is told besides when commands run in a sandbox.
const confined = " Commands run in a sandbox that restricts what they may do to files. Try a command normally first. When the " +
	"sandbox refuses it something, the result carries a [sandbox: file access denied ...] marker; if the task needs that " +
	"access, retry the exact command once, in the same turn, with sandbox_permissions set to the narrowest wider mode that " +
	"suffices and a one-sentence justification. The approval prompt asks the user: never ask for permission in chat. A rejected " +
	"escalation is final for that command, and where approval prompts are disabled a denial is final."

func (b *bash) description() string {
	text := description + noBackground
	if b.offersBackground() {
		text = description + background
	}
	if b.confines {
		text += confined
	}
	return text
}

// parameters are in the order in which a model fills them in.
func (b *bash) parameters() *tools.Schema {
	s := unconfined()
	if b.offersBackground() {
		s.Properties = append(s.Properties, tools.Property{Name: "run_in_background", Schema: &tools.Schema{
			Type: "boolean", Description: "Start the command as a background job and return its id at once. No timeout applies. Read " +
				"its output with job_output, end it with job_kill.",
		}})
	}
	if !b.confines {
		return s
	}
	var modes []any
	for _, m := range sandbox.EscalationTargets() {
		modes = append(modes, string(m))
	}
	s.Properties = append(s.Properties,
		tools.Property{Name: "sandbox_permissions", Schema: &tools.Schema{Type: "string", Enum: modes, Description: "The wider " +
			"sandbox mode to run this one command under, after the sandbox refused it. Needs a justification and the user's approval."}},
		tools.Property{Name: "justification", Schema: &tools.Schema{Type: "string", Description: "Why this command needs the wider " +
			"mode, in one sentence for the user who is asked to approve it. Only together with sandbox_permissions."}},
	)
	return s
}

func unconfined() *tools.Schema {
	return &tools.Schema{
		Type: "object",
		Properties: []tools.Property{
			{Name: "command", Schema: &tools.Schema{Type: "string", Description: "The bash command to execute."}},
			{Name: "description", Schema: &tools.Schema{Type: "string", Description: "What the command does, in 5-10 words of " +
				"active voice, for the person who watches. Examples: for `ls`: \"List files in current directory\"; for " +
				"`git status`: \"Show working tree status\"; for `npm install`: \"Install package dependencies\"."}},
			{Name: "timeoutMs", Schema: &tools.Schema{Type: "number", Description: "How long the command may take, in whole " +
				"milliseconds. Without it the executor applies its default; above the executor's cap it is reduced to the cap. " +
				"The command and all that it started are killed on expiry."}},
			{Name: "workdir", Schema: &tools.Schema{Type: "string", Description: "The directory to run the command in. The " +
				"default is the session's workspace, and a relative path is resolved against it."}},
		},
		Required: []string{"command", "description"},
	}
}

// output is the shape of a value: what shell.Result marshals to, with its kind, or a job.
func output() *tools.Schema {
	text, count, flag := &tools.Schema{Type: "string"}, &tools.Schema{Type: "integer"}, &tools.Schema{Type: "boolean"}
	null := &tools.Schema{Type: "null"}
	stream := &tools.Schema{
		Type: "object", Closed: true, Required: []string{"text", "truncated", "bytes"},
		Properties: []tools.Property{
			{Name: "text", Schema: text},
			{Name: "truncated", Schema: flag},
			{Name: "spillPath", Schema: text},
			{Name: "bytes", Schema: count},
		},
	}
	foreground := &tools.Schema{
		Type: "object", Closed: true,
		Required: []string{
			"kind", "exitCode", "signal", "timedOut", "aborted", "timeoutMs", "stdout", "stderr", "survivors", "range", "durationMs",
		},
		Properties: []tools.Property{
			{Name: "kind", Schema: &tools.Schema{Type: "string", Const: foregroundKind}},
			{Name: "exitCode", Schema: &tools.Schema{OneOf: []*tools.Schema{count, null}}},
			{Name: "signal", Schema: &tools.Schema{OneOf: []*tools.Schema{text, null}}},
			{Name: "timedOut", Schema: flag},
			{Name: "aborted", Schema: flag},
			{Name: "timeoutMs", Schema: count},
			{Name: "stdout", Schema: stream},
			{Name: "stderr", Schema: stream},
			{Name: "sandbox", Schema: &tools.Schema{
				Type: "object", Closed: true, Required: []string{"mode", "denied"},
				Properties: []tools.Property{
					{Name: "mode", Schema: text},
					{Name: "denied", Schema: flag},
					{Name: "deniedBy", Schema: text},
					{Name: "enforcement", Schema: text},
					{Name: "backend", Schema: text},
				},
			}},
			{Name: "survivors", Schema: count},
			{Name: "range", Schema: text},
			{Name: "durationMs", Schema: count},
			{Name: "timeoutClamped", Schema: flag},
			{Name: "oomKilled", Schema: flag},
		},
	}
	background := &tools.Schema{
		Type: "object", Closed: true, Required: []string{"kind", "jobId"},
		Properties: []tools.Property{
			{Name: "kind", Schema: &tools.Schema{Type: "string", Const: backgroundKind}},
			{Name: "jobId", Schema: text},
		},
	}
	return &tools.Schema{OneOf: []*tools.Schema{foreground, background}}
}
