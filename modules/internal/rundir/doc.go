// Package rundir keeps the files that belong to one running host: run/<host id> under the dsh home, or, where that cannot
// be written, ${TMPDIR:-/tmp}/dsh-<uid>/<host id>.
//
// The directory is made when the first file is, and locked for as long as the host lives. Whether another host is alive
// is decided by its lock alone, never by a pid, so Sweep may run in any number of hosts at once.
package rundir
