package demo

import (
	"errors"
	"fmt"
)

// A Result is the account of a run, in the form that `dormouse demo --json` prints.
type Result struct {
	Published  int     `json:"published"`  // confirmed by the broker
	Delivered  int     `json:"delivered"`  // finished by the worker
	Parked     int     `json:"parked"`     // found in the parking lot, and not delivered
	Lost       int     `json:"lost"`       // published, and neither delivered nor parked
	Early      int     `json:"early"`      // deliveries before their time
	Duplicates int     `json:"duplicates"` // deliveries and parked copies too many; at-least-once allows them
	Retries    int     `json:"retries"`    // deliveries after the first attempt
	WrongKey   int     `json:"wrong_key"`  // deliveries with another routing key, or to another queue, than published
	Lateness   Summary `json:"lateness_ms"`
}

// Summary is how late deliveries were, in milliseconds.
type Summary struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Err returns nil when every published message was delivered or parked, none of them early or with a wrong key.
func (r Result) Err() error {
	var errs []error
	if r.Lost > 0 || r.Published != r.Delivered+r.Parked {
		errs = append(errs, fmt.Errorf("%d messages were lost: %d published, %d delivered, %d parked", r.Lost, r.Published, r.Delivered, r.Parked))
	}
	if r.Early > 0 {
		errs = append(errs, fmt.Errorf("%d deliveries were early", r.Early))
	}
	if r.WrongKey > 0 {
		errs = append(errs, fmt.Errorf("%d deliveries had a wrong routing key", r.WrongKey))
	}
	return errors.Join(errs...)
}
