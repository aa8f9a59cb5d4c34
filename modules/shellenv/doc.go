// Package shellenv keeps the managed variables: the DSH_* names that every command gets, whose values are made anew for
// each call.
//
// Row shell-env. It provides shell.Facts and needs nothing. By itself it says DSH_HOME (from the host's environment, a
// leading ~ expanded, else ~/.dsh; absolute), DSH_SHELL=1 and, in a session, DSH_SESSION_ID. Other rows contribute
// theirs when they start and take them back when they stop.
package shellenv
