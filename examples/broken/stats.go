// Package stats summarises samples.
package stats

import "slices"

// Median returns the middle of samples: of an even number of them, the mean of the two in the middle. It leaves samples
// as they are. The median of nothing is 0.
func Median(samples []float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[len(sorted)/2]
}
