// Package jobslocal holds background jobs in memory.
//
// Row: jobs, module jobs-local. It needs nothing and provides jobs.Registry. Jobs of one owner that have not ended, those
// being prepared included, are bounded by maxConcurrentJobsPerOwner; jobs without an owner share one bound.
//
// The registry holds what a job's maker gave it and nothing else of the maker, so that a job goes on when the row that
// started it is restarted.
//
// On stop: no job is started any more, those at hand are cancelled together, and all are waited for within the row's
// budget; the error names what had not ended by then. Nothing of a job is kept beyond the process.
//
// Limits: of the jobs of one owner that have ended, the latest 256 are remembered, with what nobody has read of their
// output. A job's output is given up once it has been read after the end.
package jobslocal
