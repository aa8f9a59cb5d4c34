// Package base is the bundle of rows that every deployment shares: running processes, the shell over them, and the tool
// that offers the shell.
package base

import (
	_ "embed"

	"dsh/module"
	"dsh/module/key"
	"dsh/modules/approval"
	"dsh/modules/approvalterminal"
	"dsh/modules/bashlocal"
	"dsh/modules/bashsandbox"
	"dsh/modules/jobs"
	"dsh/modules/jobslocal"
	"dsh/modules/sandbox"
	"dsh/modules/sandboxlocal"
	"dsh/modules/sandboxpolicy"
	"dsh/modules/shell"
	"dsh/modules/shellenv"
	"dsh/modules/subprocess"
	"dsh/modules/subprocesslocal"
	"dsh/modules/toolbash"
	"dsh/modules/tooljobs"
	"dsh/modules/tools"
	"dsh/modules/toolslocal"
)

//go:embed cordis.patch.yaml
var patch []byte

// Bundle returns the bundle.
func Bundle() module.Bundle {
	return module.Bundle{
		Name:  "base",
		File:  "bundles/base/cordis.patch.yaml",
		Patch: patch,
		Modules: []module.Module{
			subprocesslocal.Module(), shellenv.Module(), toolslocal.Module(), sandboxlocal.Module(), sandboxpolicy.Module(),
			approvalterminal.Module(), bashsandbox.Module(), bashlocal.Module(), toolbash.Module(),
			jobslocal.Module(), tooljobs.Module(),
		},
		Capabilities: []key.Key{
			subprocess.Key, shell.Key, shell.FactsKey, tools.Key,
			sandbox.Key, sandbox.PoliciesKey, sandbox.OverridesKey, approval.Key, jobs.Key,
		},
	}
}
