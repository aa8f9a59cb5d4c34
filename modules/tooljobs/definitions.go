package tooljobs

import (
	"encoding/json"

	"dsh/modules/jobs"
	"dsh/modules/tools"
)

// The names of the tools.
const (
	outputName = "job_output"
	listName   = "job_list"
	killName   = "job_kill"
)

func (t *toolset) output() tools.Definition {
	return tools.Definition{
		Name: outputName,
		Description: "Returns what a background job has written since the last job_output, and its status. Output is returned once; " +
			"what was written before a job ended or was killed can still be read afterwards. You are told when a job ends, so do not " +
			"poll: use wait only when there is nothing else to do.",
		Parameters: &tools.Schema{
			Type: "object",
			Properties: []tools.Property{
				jobID(),
				{Name: "wait", Schema: &tools.Schema{Type: "boolean", Description: "Wait until the job has ended, or the time is up. " +
					"The default is to return at once."}},
				{Name: "timeout_ms", Schema: &tools.Schema{Type: "number", Description: "How long to wait, in milliseconds. Reaching it " +
					"is no failure: the job goes on, and the output so far is returned."}},
			},
			Required: []string{"job_id"},
		},
		Output: &tools.Schema{
			Type: "object", Closed: true, Required: []string{"text", "job"},
			Properties: []tools.Property{
				{Name: "text", Schema: &tools.Schema{Type: "string"}},
				{Name: "job", Schema: snapshotSchema()},
			},
		},
		Execute:  t.executeOutput,
		Render:   renderOutput,
		Parallel: func(json.RawMessage) bool { return true },
	}
}

func (t *toolset) list() tools.Definition {
	return tools.Definition{
		Name:        listName,
		Description: "Lists the background jobs of this session with their status.",
		Parameters:  &tools.Schema{Type: "object"},
		Output: &tools.Schema{
			Type: "object", Closed: true, Required: []string{"jobs"},
			Properties: []tools.Property{{Name: "jobs", Schema: &tools.Schema{Type: "array", Items: snapshotSchema()}}},
		},
		Execute:  t.executeList,
		Render:   renderList,
		Parallel: func(json.RawMessage) bool { return true },
	}
}

func (t *toolset) kill() tools.Definition {
	return tools.Definition{
		Name: killName,
		Description: "Asks a background job, with every process that it started, to end, and returns without waiting for that. Its " +
			"output can still be read with job_output. It keeps counting as a job until it has really ended.",
		Parameters: &tools.Schema{
			Type: "object",
			Properties: []tools.Property{
				jobID(),
				{Name: "reason", Schema: &tools.Schema{Type: "string", Description: "Why, in a few words."}},
			},
			Required: []string{"job_id"},
		},
		Output: &tools.Schema{
			Type: "object", Closed: true, Required: []string{"alreadyFinished", "job"},
			Properties: []tools.Property{
				{Name: "alreadyFinished", Schema: &tools.Schema{Type: "boolean"}},
				{Name: "job", Schema: snapshotSchema()},
			},
		},
		Execute: t.executeKill,
		Render:  renderKill,
	}
}

func jobID() tools.Property {
	return tools.Property{Name: "job_id", Schema: &tools.Schema{
		Type: "string", Description: "The id of the job, as the call that started it returned it.",
	}}
}

func snapshotSchema() *tools.Schema {
	text, count := &tools.Schema{Type: "string"}, &tools.Schema{Type: "integer"}
	return &tools.Schema{
		Type: "object", Closed: true, Required: []string{"id", "kind", "label", "status", "startedAt"},
		Properties: []tools.Property{
			{Name: "id", Schema: text},
			{Name: "kind", Schema: text},
			{Name: "label", Schema: text},
			{Name: "status", Schema: &tools.Schema{Type: "string", Enum: []any{
				string(jobs.Running), string(jobs.Stopping), string(jobs.Completed), string(jobs.Killed), string(jobs.Failed),
			}}},
			{Name: "detail", Schema: text},
			{Name: "startedAt", Schema: count},
			{Name: "finishedAt", Schema: count},
		},
	}
}
