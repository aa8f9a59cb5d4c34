package sandboxlocal

import (
	"maps"
	"os"
	"slices"
	"strings"

	"dsh/modules/subprocess"
)

// outsideNames are variables by which programs find something outside of a sandbox that acts on their behalf.
var outsideNames = []string{
	"DBUS_*", "DOCKER_HOST", "DOCKER_CONTEXT", "CONTAINER_HOST", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "GPG_AGENT_INFO",
	"NOTIFY_SOCKET", "LISTEN_*", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "TMUX", "STY", "VSCODE_IPC_HOOK_CLI",
}

// loaderNames are variables that make the dynamic loader or the C library run or read something else. They are for the
// command; the runner must not be changed by them.
var loaderNames = []string{"LD_*", "GLIBC_TUNABLES", "GCONV_PATH"}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		prefix, open := strings.CutSuffix(p, "*")
		return name == p || open && strings.HasPrefix(name, prefix)
	})
}

// commandEnv returns e without what leads outside, and with the temporary directory, if there is one.
func commandEnv(e subprocess.Env, temp string) subprocess.Env {
	set := maps.Clone(e.Set)
	if temp != "" {
		if set == nil {
			set = map[string]string{}
		}
		set["TMPDIR"] = temp
	}
	return subprocess.Env{Unset: slices.Concat(e.Unset, outsideNames), Set: set}
}

// runnerEnv is commandEnv for a runner, without what is for the command's loader alone.
func runnerEnv(e subprocess.Env) subprocess.Env {
	e = commandEnv(e, "")
	maps.DeleteFunc(e.Set, func(name, _ string) bool { return matches(loaderNames, name) })
	e.Unset = append(e.Unset, loaderNames...)
	return e
}

// loaderEnv returns the variables of e, and of the host where e leaves them, that are kept from the runner.
func loaderEnv(e subprocess.Env) map[string]string {
	env := map[string]string{}
	for _, entry := range os.Environ() {
		if name, value, ok := strings.Cut(entry, "="); ok && matches(loaderNames, name) && !matches(e.Unset, name) {
			env[name] = value
		}
	}
	for name, value := range e.Set {
		if matches(loaderNames, name) {
			env[name] = value
		}
	}
	return env
}
