package queue

// elect chooses the single active consumer, when something has changed that it depends on: of those that none of
// their messages has lapsed, that of the highest priority, and then the first. In a classic queue one that is active
// stays so. In a quorum queue it gives way to a higher priority: it gets nothing more, and as soon as it has settled
// what it had, the other is active.
// Source: https://www.rabbitmq.com/docs/consumers#single-active-consumer.
func (q *Queue) elect() {
	if !q.settings.SingleActiveConsumer || q.active != nil && q.settings.Type == Classic {
		return
	}
	best := q.active
	for _, c := range q.consumers {
		if c.lapsed == 0 && (best == nil || c.Priority > best.Priority) {
			best = c
		}
	}
	before, giving := q.active, q.heir != nil
	q.heir = nil
	switch {
	case best == nil:
		return
	case best == before:
		if giving {
			q.resume(best) // who was to take over has left
		}
		return
	case before != nil && before.unacked > 0:
		q.heir = best
		q.line.leave(before)
		return
	case before != nil:
		q.line.leave(before)
	}
	q.active = best
	q.resume(best)
}
