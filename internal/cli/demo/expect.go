package demo

// Expect returns how far a run of the plan comes when nothing goes wrong that is not planned.
func Expect(plan []Message) Progress {
	p := Progress{Planned: len(plan), Published: len(plan)}
	for _, m := range plan {
		attempt := 1
		for attempt < MaxAttempts && m.Behaviour.on(attempt) != none {
			attempt++
		}
		p.Retries += attempt - 1
		if m.Behaviour.on(attempt) == none {
			p.Delivered++
		} else {
			p.Exhausted++
		}
	}
	return p
}
