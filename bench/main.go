// Command bench measures what dsh promises about speed and memory, each figure against the plain thing in the same run,
// and prints a table. With -check it fails where a figure is far over its budget: an excess over 1 three times the
// budget's, since a shared machine is noisy, and in the middle of five measurements.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
)

// measure is one promise.
type measure struct {
	name   string
	budget float64 // of the figure
	unit   string  // what the figure is: "x" for a ratio, "ms", "MiB"
	least  bool    // the budget is a lower bound
	run    func(*bench) (figure, error)
}

// figure is what a measure found: the value that the budget is about, and the two medians that it was made of.
type figure struct {
	value       float64
	ours, plain string
}

func main() {
	check := flag.Bool("check", false, "fail when a figure is far over its budget")
	only := flag.String("only", "", "measure this one alone")
	flag.Parse()
	if err := run(*check, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(check bool, only string) error {
	b, err := newBench()
	if err != nil {
		return err
	}
	defer b.close()
	fmt.Printf("%s/%s, %d processors, %s\n\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	fmt.Println("| figure | dsh | plain | value | budget |")
	fmt.Println("|---|---|---|---|---|")
	failed := 0
	for _, m := range measures {
		if only != "" && m.name != only {
			continue
		}
		f, err := m.run(b)
		if err == nil && check && m.far(f.value) {
			f, err = m.again(b, f)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		fmt.Printf("| %s | %s | %s | %.2f %s | %g %s |\n", m.name, f.ours, f.plain, f.value, m.unit, m.budget, m.unit)
		if m.far(f.value) {
			failed++
		}
	}
	if check && failed > 0 {
		return fmt.Errorf("%d figures are far over their budget", failed)
	}
	return nil
}

// again measures what was far off four times more, and returns the figure in the middle: something else may have run.
func (m measure) again(b *bench, first figure) (figure, error) {
	all := []figure{first}
	for range 4 {
		f, err := m.run(b)
		if err != nil {
			return figure{}, err
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b figure) int { return cmp.Compare(a.value, b.value) })
	return all[len(all)/2], nil
}

// far reports whether value misses the budget by more than noise explains.
func (m measure) far(value float64) bool {
	switch {
	case m.least:
		return value < m.budget/3
	case m.unit == "x":
		return value > 1+3*(m.budget-1)
	}
	return value > 3*m.budget
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
