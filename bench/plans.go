package main

import (
	"fmt"
	"strings"
	"time"

	"dsh/compose"
	"dsh/module"
)

// check is how long it takes to look at a composition.
func check(b *bench) (figure, error) {
	ours, theirs, _, err := paired(20, func() (time.Duration, error) { return plain(b.program, "config", "check") }, bash)
	return figure{1000 * ours, ms(ours), ms(theirs)}, err
}

// rowConfig is the configuration of the rows that plans are made of.
type rowConfig struct {
	Dir       string `koanf:"dir"`
	TimeoutMs int    `koanf:"timeoutMs"`
	Limits    struct {
		CPUs float64 `koanf:"cpus"`
	} `koanf:"limits"`
}

// planOf makes a plan of rows, two of five with an expression, and says how long that took.
func planOf(rows int) func() (time.Duration, error) {
	var patch strings.Builder
	patch.WriteString("- insert:\n")
	for i := range rows {
		fmt.Fprintf(&patch, "    - id: row%d\n      name: idle\n      config:\n        timeoutMs: %d\n        limits: {cpus: 2}\n", i, i+1)
		if i%5 < 2 {
			patch.WriteString("        dir: !!js process.env.NOWHERE ?? process.cwd()\n")
		}
	}
	source := compose.Source{Name: "rows", File: "rows.yaml", Text: []byte(patch.String())}
	idle := module.Define(module.Spec[rowConfig]{Name: "idle", Constructor: func(rowConfig) error { return nil }})
	return func() (time.Duration, error) {
		registry, err := module.NewRegistry(module.Bundle{Name: "bench", Modules: []module.Module{idle}})
		if err != nil {
			return 0, err
		}
		machine, err := compose.ThisMachine()
		if err != nil {
			return 0, err
		}
		began := time.Now()
		_, err = compose.MakePlan([]compose.Layer{compose.Parse(source)}, registry, machine, compose.FoldOptions{})
		return time.Since(began), err
	}
}

func plan(*bench) (figure, error) {
	ours, _, _, err := paired(30, planOf(50), planOf(50))
	return figure{1000 * ours, ms(ours), "-"}, err
}

// largePlan compares a plan of many rows with as many plans of few.
func largePlan(*bench) (figure, error) {
	few := planOf(50)
	many, twenty, ratio, err := paired(5, planOf(1000), func() (all time.Duration, err error) {
		for range 20 {
			took, err := few()
			if err != nil {
				return 0, err
			}
			all += took
		}
		return all, nil
	})
	return figure{ratio, ms(many), ms(twenty)}, err
}
