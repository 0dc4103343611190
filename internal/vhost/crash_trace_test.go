package vhost

import (
	"fmt"
	"slices"
	"time"

	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/xdeath"
)

// traced is what must be known of a message that was published.
type traced struct {
	persistent bool
	confirmed  bool // its publisher was told
	junk       bool // it is in the queue that is purged and deleted
	ending     bool // something was done that ends it, which may be durable
	gone       bool // that is durable

	target   string        // the first queue that it comes to
	due      time.Time     // when it comes there
	lifetime time.Duration // its expiration, or message.NoExpiration
	rejected map[string]bool
	stays    map[string]*stay
}

// stay is a message's time in one queue.
type stay struct {
	delivered bool           // that is durable
	least     message.Counts // are durable
	most      message.Counts // may be
}

// learned is what will be durable of a stay.
type learned struct {
	*stay
	counts message.Counts
}

func (m *traced) stay(queue string) *stay {
	if m.stays[queue] == nil {
		m.stays[queue] = &stay{}
	}
	return m.stays[queue]
}

// deadLetters are the queues to which the dead letters of a queue go, and its TTL.
var deadLetters = map[string]struct {
	to  string
	ttl time.Duration
}{
	"ttl":    {"work", 2 * time.Second},
	"quorum": {"dead", message.NoExpiration},
	"work":   {"dead", message.NoExpiration},
	"dead":   {"grave", message.NoExpiration},
}

// fault says what is wrong with a delivery of m at a moment, if anything is.
func (m *traced) fault(d queue.Delivery, at time.Time) error {
	here := d.Queue.Name()
	if at.Before(m.due) {
		return fmt.Errorf("%v early", m.due.Sub(at))
	}
	if s := m.stays[here]; s != nil {
		if s.delivered && !d.Redelivered {
			return fmt.Errorf("it was delivered before and does not say so")
		}
		c := d.Counts
		if c.Returns < s.least.Returns || c.Failures < s.least.Failures || c.Returns > s.most.Returns || c.Failures > s.most.Failures {
			return fmt.Errorf("its counts are %+v, at least %+v and at most %+v", c, s.least, s.most)
		}
	} else if d.Counts != (message.Counts{}) {
		return fmt.Errorf("its counts are %+v, though it has not come back", d.Counts)
	}
	var deaths xdeath.Deaths
	if d.Message.Deaths != nil {
		deaths = d.Message.Deaths.Deaths
	}
	since, lifetime, from := m.due, m.lifetime, m.target
	for _, death := range slices.Backward(deaths) {
		if death.Queue != from || death.Count != 1 {
			return fmt.Errorf("it has died in %s %d times, not in %s", death.Queue, death.Count, from)
		}
		if ttl := deadLetters[from].ttl; ttl != message.NoExpiration && (lifetime == message.NoExpiration || ttl < lifetime) {
			lifetime = ttl
		}
		switch {
		case death.Time.Before(since), death.Time.After(at):
			return fmt.Errorf("it has died in %s at %v, between %v and %v", from, death.Time, since, at)
		case death.Reason == xdeath.Expired && (lifetime == message.NoExpiration || death.Time.Before(since.Add(lifetime))):
			return fmt.Errorf("it has expired in %s after %v of %v", from, death.Time.Sub(since), lifetime)
		case death.Reason == xdeath.Rejected && !m.rejected[from]:
			return fmt.Errorf("it has been rejected in %s by nobody", from)
		case death.Reason == xdeath.MaxLen && from != "work",
			death.Reason == xdeath.DeliveryLimit && (from != "quorum" || m.stay(from).most.Failures <= crashDeliveryLimit):
			return fmt.Errorf("it has died in %s: %s", from, death.Reason)
		}
		since, lifetime, from = death.Time, message.NoExpiration, deadLetters[from].to
	}
	if from != here {
		return fmt.Errorf("it is in %s with a history that ends in %s", here, from)
	}
	return nil
}
