// Package jobstest holds the conformance suite of jobs.Registry, and Work that does what a test wants.
package jobstest
