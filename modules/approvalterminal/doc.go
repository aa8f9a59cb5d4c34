// Package approvalterminal asks for approval on the terminal of the person who started dsh.
//
// Row approval, module approval-terminal. It provides approval.Service; it uses session.Store, in whose open sessions it
// logs what was asked for them and what was decided, and agent.Prompt, to tell models whether anybody is asked. It opens
// /dev/tty for each question, shows what is asked for with control characters made visible, and takes y or yes for a yes
// and everything else for a no. It never reads standard input, which may be a command's. Questions come one at a time.
//
// Without a terminal, and on Windows, every question is unavailable; with policy never it is rejected, unasked.
//
// On stop: nothing is held between questions. A question that is open ends with its caller's context.
package approvalterminal
