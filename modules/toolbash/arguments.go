package toolbash

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"
	"time"

	"dsh/modules/sandbox"
	"dsh/modules/tools"
)

// arguments are those of one call, checked as far as that is possible without looking at the machine.
type arguments struct {
	command     string
	timeout     *time.Duration
	workdir     string
	background  bool
	permissions sandbox.Mode // what sandbox_permissions asks for; empty: nothing
	why         string       // the justification
}

// parse reads arguments. It looks members up by their exact names: a member that differs in case is another member.
func parse(raw json.RawMessage) (a arguments, err error) {
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &members); err != nil {
		return a, invalid("invalid arguments: %v", err)
	}
	var description string
	for _, f := range []struct {
		name string
		into any
		want string
	}{
		{"command", &a.command, "a non-empty string"},
		{"description", &description, "a non-empty string"},
		{"workdir", &a.workdir, "a string"},
		{"run_in_background", &a.background, "a boolean"},
		{"sandbox_permissions", &a.permissions, "a string"},
		{"justification", &a.why, "a non-empty sentence"},
	} {
		if m, ok := members[f.name]; ok && (string(m) == "null" || json.Unmarshal(m, f.into) != nil) {
			return a, invalid("invalid %s: expected %s, got %s", f.name, f.want, shorten(m))
		}
	}
	if strings.TrimSpace(a.command) == "" {
		return a, invalid("invalid command: expected a non-empty string")
	}
	if strings.TrimSpace(description) == "" {
		return a, invalid("invalid description: expected a non-empty string")
	}
	if m, ok := members["timeoutMs"]; ok {
		d, ok := milliseconds(m)
		if !ok {
			return a, invalid("invalid timeoutMs: expected a positive integer, got %s", shorten(m))
		}
		a.timeout = &d
	}
	if strings.ContainsRune(a.workdir, 0) {
		return a, invalid("invalid workdir: it contains a NUL byte")
	}
	_, escalates := members["sandbox_permissions"]
	_, justified := members["justification"]
	switch {
	case escalates && !justified:
		return a, invalid("invalid escalation: sandbox_permissions requires a justification")
	case justified && !escalates:
		return a, invalid("invalid escalation: justification is only valid together with sandbox_permissions")
	case justified && strings.TrimSpace(a.why) == "":
		return a, invalid("invalid justification: expected a non-empty sentence")
	}
	return a, nil
}

// milliseconds reads a positive whole number, however it is written. What a Duration cannot hold is the longest there is:
// the executor's cap is below that.
func milliseconds(m json.RawMessage) (time.Duration, bool) {
	const most = math.MaxInt64 / int64(time.Millisecond)
	var f float64
	if json.Unmarshal(m, &f) != nil || f < 1 { // refuses strings, null, and what is beyond a double
		return 0, false
	}
	if f >= float64(most) {
		return time.Duration(most) * time.Millisecond, true
	}
	// Digits beyond a double's precision may be a fraction; so many of them that they are costly to look at say nothing.
	const digits = 64
	if len(m) > digits {
		return 0, false
	}
	r, ok := new(big.Rat).SetString(string(m))
	if !ok || !r.IsInt() {
		return 0, false
	}
	return time.Duration(r.Num().Int64()) * time.Millisecond, true
}

func invalid(format string, args ...any) error {
	return &tools.Error{Code: tools.CodeInvalidArgs, Message: fmt.Sprintf(format, args...)}
}

// shorten bounds how much of an argument a message repeats.
func shorten(m json.RawMessage) string {
	const most = 80
	if len(m) <= most {
		return string(m)
	}
	return strings.ToValidUTF8(string(m[:most]), "") + "..."
}
