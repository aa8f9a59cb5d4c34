package stats

import "testing"

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		samples []float64
		want    float64
	}{
		{nil, 0},
		{[]float64{3}, 3},
		{[]float64{5, 1, 3}, 3},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		if got := Median(c.samples); got != c.want {
			t.Errorf("Median(%v) = %v, want %v", c.samples, got, c.want)
		}
	}
}
