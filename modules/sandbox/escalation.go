package sandbox

import "fmt"

// EscalationTargets returns the modes that a call may ask for. All are offered whatever the deployment's mode is: a session
// may have been switched to a narrower one.
func EscalationTargets() []Mode { return []Mode{WorkspaceWrite, DangerFullAccess} }

// DeniedMarker is the line that tells a model that the sandbox refused something.
func DeniedMarker(m Mode) string {
	return fmt.Sprintf("[sandbox: file access denied under %s mode]", m)
}

// EscalationHint is the line after DeniedMarker where escalation is offered; subject is "command" or "operation".
func EscalationHint(subject string) string {
	return "[sandbox: escalation available — retry this exact " + subject + " once with sandbox_permissions (the narrowest wider " +
		"mode that suffices) + justification; the approval prompt asks the user]"
}

// RunnerFailedMarker is the line that tells a model that a command in the background was not run.
func RunnerFailedMarker(m Mode) string {
	return fmt.Sprintf("[sandbox: the sandbox runner itself failed under %s mode — the command did not run; this is a sandbox "+
		"problem, not a command failure]", m)
}

// EscalationReason is what a person is asked to approve.
func EscalationReason(to Mode, justification string) string {
	return fmt.Sprintf("escalate sandbox to %s: %s", to, justification)
}
