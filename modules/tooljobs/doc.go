// Package tooljobs is the tools job_output, job_list and job_kill: a model's way to look after its background jobs.
//
// Row: tool-jobs, module tool-jobs. Needs jobs.Registry and tools.Registry; uses agent.Prompt when there is one; provides
// nothing. When it starts it registers the tools, tells models how to deal with jobs, and says that there is a controller,
// without which no job is started.
//
// A session reaches its own jobs and those that nobody owns. The texts are a protocol with models. A text about a job that
// has an outputLimitBytes is cut to that, whatever else was to be said, and says so.
//
// On stop: the tools are taken out of the registry, and no job is started any more. Jobs go on; they belong to the registry.
package tooljobs
