// Package headless is the bundle of the one-shot agent, on top of the bundle base.
package headless

import (
	_ "embed"

	"dsh/module"
	"dsh/module/key"
	"dsh/modules/agent"
	"dsh/modules/agentloop"
	"dsh/modules/headlessrunner"
	"dsh/modules/llm"
	"dsh/modules/llmopenai"
	"dsh/modules/llmscript"
	"dsh/modules/session"
	"dsh/modules/sessionjsonl"
	"dsh/modules/systemprompt"
)

//go:embed cordis.patch.yaml
var patch []byte

// Bundle returns the bundle.
func Bundle() module.Bundle {
	return module.Bundle{
		Name:  "headless",
		File:  "bundles/headless/cordis.patch.yaml",
		Patch: patch,
		Modules: []module.Module{
			systemprompt.Module(), sessionjsonl.Module(), llmopenai.Module(), llmscript.Module(), agentloop.Module(),
			headlessrunner.Module(),
		},
		Capabilities: []key.Key{agent.Key, agent.RunnerKey, agent.PromptKey, llm.Key, session.Key},
	}
}
