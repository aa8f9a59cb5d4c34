// Command dsh runs an agent's commands on a real machine. This build is what stands below: which bundles there are, which
// of them a profile takes, and the deployment layer. Your own build is the same main with one more bundle.
package main

import (
	"dsh"
	"dsh/bundles/base"
	"dsh/bundles/headless"
	"dsh/cli"
	"dsh/module"
	"dsh/modules/subprocesslocal"
)

func main() {
	cli.Main(cli.Build{
		Bundles:    []module.Bundle{base.Bundle(), headless.Bundle()},
		Profiles:   []cli.Profile{{Name: "headless", Bundles: []string{"base", "headless"}}, {Name: "base", Bundles: []string{"base"}}},
		Deployment: dsh.Patch,
		Prepare:    subprocesslocal.PrepareHost,
	})
}
