package bench

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Metric is one figure of a measurement.
type Metric struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// Result is what one measurement of one broker has found.
type Result struct {
	Workload string `json:"workload"`
	Case     string `json:"case"`
	Broker   string `json:"broker"` // product and version, as the broker says it

	Published  int64 `json:"published"`
	Received   int64 `json:"received"` // different ones
	Lost       int64 `json:"lost"`
	Duplicates int64 `json:"duplicates"`
	Foreign    int64 `json:"foreign"`
	Early      int64 `json:"early"`

	Metrics   []Metric `json:"metrics"`
	Lateness  *Summary `json:"lateness_ms,omitempty"`
	Histogram []Bucket `json:"histogram,omitempty"`
}

func (r *Result) add(name string, value float64, unit string) {
	r.Metrics = append(r.Metrics, Metric{name, value, unit})
}

// settle takes over what the ledger says and, unless it is nil, the lateness.
func (r *Result) settle(l *Ledger, late *Lateness) {
	r.Received, r.Duplicates, r.Foreign = l.Received(), l.Duplicates(), l.Foreign()
	r.Lost = r.Published - r.Received
	if late == nil {
		return
	}
	s := late.Summary()
	r.Lateness, r.Histogram, r.Early = &s, late.Buckets(), late.Early()
}

// Err says what the broker did wrong, nil if nothing: messages that were lost, doubled, early, or not of this run.
func (r *Result) Err() error {
	var problems []error
	say := func(n int64, what string) {
		if n != 0 {
			problems = append(problems, fmt.Errorf("%s, %s %s: %d of %d messages %s", r.Broker, r.Workload, r.Case, n, r.Published, what))
		}
	}
	say(r.Lost, "were lost")
	say(r.Duplicates, "came twice")
	say(r.Early, "came before their time")
	say(r.Foreign, "were not of this measurement")
	return errors.Join(problems...)
}

// Metric returns a figure by its name.
func (r *Result) Metric(name string) (Metric, bool) {
	i := slices.IndexFunc(r.Metrics, func(m Metric) bool { return m.Name == name })
	if i < 0 {
		return Metric{}, false
	}
	return r.Metrics[i], true
}

// Ratio compares a figure of two brokers that were measured in turns: the first by the second.
type Ratio struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit"`
	First  float64 `json:"first"`  // the median of the rounds
	Second float64 `json:"second"` // of the other broker
	Ratio  float64 `json:"ratio"`  // the median of the rounds' ratios
	Low    float64 `json:"low"`    // the least of them
	High   float64 `json:"high"`   // the greatest
}

// Compare compares the rounds of two brokers, which belong together by their index. Figures that one of them lacks, or
// that are 0, are left out.
func Compare(first, second []Result) []Ratio {
	var all []Ratio
	if len(first) == 0 || len(first) != len(second) {
		return nil
	}
	for _, m := range first[0].Metrics {
		var a, b, ratios []float64
		for i := range first {
			x, haveX := first[i].Metric(m.Name)
			y, haveY := second[i].Metric(m.Name)
			if haveX && haveY && x.Value != 0 && y.Value != 0 {
				a, b, ratios = append(a, x.Value), append(b, y.Value), append(ratios, x.Value/y.Value)
			}
		}
		if len(ratios) == len(first) {
			all = append(all, Ratio{
				Name: m.Name, Unit: m.Unit, First: Median(a), Second: Median(b),
				Ratio: Median(ratios), Low: slices.Min(ratios), High: slices.Max(ratios),
			})
		}
	}
	return all
}

// Median returns the middle of the values, the mean of the middle two if their number is even, NaN if there are none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
