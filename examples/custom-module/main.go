// Command custom is dsh with two modules more. It is all that a build of one's own takes.
package main

import (
	"dsh/bundles/base"
	"dsh/cli"
	"dsh/module"
	"dsh/modules/subprocesslocal"

	"example.com/custom-module/bashaudit"
	"example.com/custom-module/ticket"
)

func main() {
	cli.Main(cli.Build{
		Bundles:  []module.Bundle{base.Bundle(), ticket.Bundle(), bashaudit.Bundle()},
		Profiles: []cli.Profile{{Name: "custom", Bundles: []string{"base", "ticket", "bash-audit"}}},
		Prepare:  subprocesslocal.PrepareHost,
	})
}
