package conformance

import "strings"

// result is what a case saw on one broker.
type result struct {
	name      string
	passed    bool
	skipped   string // why the case means nothing on this broker
	deviation string // why the embedded broker differs on purpose
	seen      []observation
}

// observation is one thing that a case compared with its expectation.
type observation struct{ what, got string }

func (r *result) add(what, got string) { r.seen = append(r.seen, observation{what, got}) }

// get returns the n-th observation of that name.
func (r *result) get(what string, n int) (got string, ok bool) {
	for _, o := range r.seen {
		if o.what != what {
			continue
		}
		if n == 0 {
			return o.got, true
		}
		n--
	}
	return "", false
}

// all is what was observed under that name, in order.
func (r *result) all(what string) string {
	var list []string
	for _, o := range r.seen {
		if o.what == what {
			list = append(list, o.got)
		}
	}
	return strings.Join(list, "\n")
}

// difference is an observation that is not the same on two brokers.
type difference struct{ what, here, there string }

// differences are those of one case between two brokers, of what both have looked at.
func differences(here, there *result) (list []difference) {
	if here.skipped != "" || there.skipped != "" {
		return nil
	}
	times := map[string]int{}
	for _, o := range here.seen {
		n := times[o.what]
		times[o.what]++
		if got, ok := there.get(o.what, n); ok && got != o.got {
			list = append(list, difference{o.what, o.got, got})
		}
	}
	return list
}
