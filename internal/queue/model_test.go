package queue

import (
	"cmp"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/store"
)

// A queue behaves as a list does that is kept by hand, whatever is done to it and
// however often it restarts.
func TestQueueAgainstAModel(t *testing.T) {
	both(t, func(t *testing.T, s Settings) {
		rapid.Check(t, func(rt *rapid.T) {
			m := &model{bench: newRapidBench(t), settings: dlx(s, "none"), out: map[int]Delivery{}, now: start}
			m.settings.ConsumerTimeout = 2*time.Minute + 7*time.Millisecond
			if m.quorum() {
				m.settings.Retry = Retry{
					On:  rapid.SampledFrom([]RetryOn{RetryNone, RetryAll, RetryFailed, RetryReturned}).Draw(rt, "retry"),
					Min: 30*time.Second + 13*time.Millisecond, Max: 75 * time.Second,
				}.Sane()
			}
			defer m.bench.close()
			m.open()
			rt.Repeat(map[string]func(*rapid.T){
				"":        m.check,
				"publish": m.publish,
				"get":     m.get,
				"ack": func(rt *rapid.T) {
					m.end(rt, func(d Delivery, _ *item) { settle(m.queue, func(tx *store.Tx) { m.queue.Ack(tx, d.Entry) }) })
				},
				"reject":  m.reject,
				"requeue": m.requeue,
				"late":    m.late,
				"advance": m.advance,
				"purge":   m.purge,
				"restart": func(*rapid.T) { m.restart() },
			})
		})
	})
}

type item struct {
	id          int
	persistent  bool
	expires     time.Time // zero for never
	returned    bool      // ahead of the others in a quorum queue
	redelivered bool
	counts      message.Counts
	due         time.Time // when it lapses, or its delay is over
}

type model struct {
	bench    *rapidBench
	settings Settings
	queue    *Queue
	next     int
	ready    []*item
	unacked  []*item
	delayed  []*item
	out      map[int]Delivery
	lapsed   []Delivery // that the client still has
	letters  []string
	now      time.Time
}

type rapidBench struct{ *bench }

func newRapidBench(t *testing.T) *rapidBench {
	b := &bench{t: t}
	b.reset()
	return &rapidBench{b}
}

func (b *rapidBench) close() {
	for _, q := range b.queues {
		q.Close()
	}
	if err := b.store.Close(); err != nil {
		b.t.Fatal(err)
	}
}

func (m *model) open() {
	m.queue = New(Options{Name: "q", Settings: m.settings, ID: 1, Store: m.bench.store, Clock: m.bench.clock, Host: m.bench, Logger: discard, window: 4})
	m.bench.queues = append(m.bench.queues, m.queue)
	m.queue.Start()
}

func (m *model) quorum() bool { return m.settings.Type == Quorum }

// expire drops what has expired at the heads.
func (m *model) expire() {
	due := func(i int) bool {
		return i < len(m.ready) && !m.ready[i].expires.IsZero() && !m.ready[i].expires.After(m.now)
	}
	for {
		at := 0
		if !due(0) && m.quorum() { // the queue's own head, behind what came back
			at = slices.IndexFunc(m.ready, func(i *item) bool { return !i.returned })
		}
		if at < 0 || !due(at) {
			return
		}
		m.letters = append(m.letters, "expired "+strconv.Itoa(m.ready[at].id))
		m.ready = slices.Delete(m.ready, at, at+1)
	}
}

func (m *model) publish(rt *rapid.T) {
	for range rapid.IntRange(1, 12).Draw(rt, "messages") {
		i := &item{id: m.next, persistent: rapid.Bool().Draw(rt, "persistent") || m.quorum()}
		m.next++
		msg := persistent(strconv.Itoa(i.id))
		msg.Persistent = i.persistent
		if ttl := rapid.SampledFrom([]time.Duration{message.NoExpiration, message.NoExpiration, 0, time.Second, time.Minute}).Draw(rt, "ttl"); ttl >= 0 {
			msg.Expiration = ttl
			i.expires = m.bench.clock.Now().Add(ttl)
		}
		m.bench.publishMessage(m.queue, msg)
		m.ready = append(m.ready, i)
		m.expire()
	}
}

func (m *model) get(rt *rapid.T) {
	d, ok := m.queue.Get(&Consumer{})
	if ok != (len(m.ready) > 0) {
		rt.Fatalf("got %v with %d ready", ok, len(m.ready))
	}
	if !ok {
		return
	}
	want := m.ready[0]
	m.ready = m.ready[1:]
	if got := string(d.Message.Body); got != strconv.Itoa(want.id) || d.Redelivered != want.redelivered || m.quorum() && d.Counts != want.counts {
		rt.Fatalf("got %s redelivered %v %+v, want %+v", got, d.Redelivered, d.Counts, want)
	}
	want.due = m.now.Add(m.settings.ConsumerTimeout)
	m.unacked = append(m.unacked, want)
	m.out[want.id] = d
	m.expire()
}

// end settles one of the unacknowledged.
func (m *model) end(rt *rapid.T, f func(Delivery, *item)) {
	if len(m.unacked) == 0 {
		return
	}
	at := rapid.IntRange(0, len(m.unacked)-1).Draw(rt, "which")
	i := m.unacked[at]
	m.unacked = slices.Delete(m.unacked, at, at+1)
	f(m.out[i.id], i)
	delete(m.out, i.id)
	m.expire()
}

func (m *model) reject(rt *rapid.T) {
	m.end(rt, func(d Delivery, i *item) {
		m.letters = append(m.letters, "rejected "+strconv.Itoa(i.id))
		settle(m.queue, func(tx *store.Tx) { m.queue.Reject(tx, false, d.Entry) })
	})
}

func (m *model) requeue(rt *rapid.T) {
	failed := rapid.Bool().Draw(rt, "failed")
	m.end(rt, func(d Delivery, i *item) {
		m.giveBack(i, failed)
		settle(m.queue, func(tx *store.Tx) { m.queue.Requeue(tx, failed, d.Entry) })
	})
}

// giveBack returns an unacknowledged message.
func (m *model) giveBack(i *item, failed bool) {
	i.redelivered = true
	i.counts.Returns++
	if failed {
		i.counts.Failures++
	}
	switch {
	case !m.quorum():
		i.returned = true
		m.ready = append(m.ready, i)
		m.sort()
	case i.counts.Failures > DefaultDeliveryLimit:
		m.letters = append(m.letters, "delivery_limit "+strconv.Itoa(i.id))
	default:
		on := m.settings.Retry.On
		if on == RetryAll || on == RetryFailed && failed || on == RetryReturned && !failed {
			i.due = m.now.Add(min(m.settings.Retry.Max, m.settings.Retry.Min*time.Duration(max(1, i.counts.Failures))))
			m.delayed = append(m.delayed, i)
			return
		}
		m.putAhead(i)
	}
}

// putAhead puts a returned message behind the others that were.
func (m *model) putAhead(i *item) {
	i.returned = true
	at := slices.IndexFunc(m.ready, func(o *item) bool { return !o.returned })
	if at < 0 {
		at = len(m.ready)
	}
	m.ready = slices.Insert(m.ready, at, i)
}

// late settles a delivery that has lapsed, which means nothing.
func (m *model) late(rt *rapid.T) {
	if len(m.lapsed) == 0 {
		return
	}
	e := m.lapsed[0].Entry
	m.lapsed = m.lapsed[1:]
	switch rapid.IntRange(0, 2).Draw(rt, "how") {
	case 0:
		settle(m.queue, func(tx *store.Tx) { m.queue.Ack(tx, e) })
	case 1:
		settle(m.queue, func(tx *store.Tx) { m.queue.Reject(tx, true, e) })
	case 2:
		settle(m.queue, func(tx *store.Tx) { m.queue.Requeue(tx, true, e) })
	}
}

func (m *model) sort() {
	slices.SortFunc(m.ready, func(a, b *item) int { return cmp.Compare(a.id, b.id) })
}

func (m *model) advance(rt *rapid.T) {
	d := time.Duration(rapid.IntRange(0, 70).Draw(rt, "seconds")) * time.Second
	m.bench.clock.Advance(d)
	for end := m.now.Add(d); ; {
		next := end
		soonest := func(at time.Time) {
			if !at.IsZero() && at.After(m.now) && at.Before(next) {
				next = at
			}
		}
		for _, i := range m.ready {
			soonest(i.expires)
		}
		for _, i := range slices.Concat(m.delayed, m.unacked) {
			soonest(i.due)
		}
		m.now = next
		m.tick()
		if !next.Before(end) {
			return
		}
	}
}

// tick does what is due now.
func (m *model) tick() {
	due := func(list *[]*item) (all []*item) {
		for _, i := range *list {
			if !i.due.After(m.now) {
				all = append(all, i)
			}
		}
		*list = slices.DeleteFunc(*list, func(i *item) bool { return slices.Contains(all, i) })
		slices.SortFunc(all, func(a, b *item) int { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.id, b.id)) })
		return all
	}
	for _, i := range due(&m.delayed) {
		m.putAhead(i)
	}
	if m.quorum() {
		for _, i := range due(&m.unacked) {
			m.lapsed = append(m.lapsed, m.out[i.id])
			delete(m.out, i.id)
			m.giveBack(i, false)
		}
	}
	m.expire()
}

func (m *model) purge(rt *rapid.T) {
	n, err := m.queue.Purge(rt.Context())
	if err != nil || n != len(m.ready)+len(m.delayed) {
		rt.Fatalf("purged %d of %d and %d: %v", n, len(m.ready), len(m.delayed), err)
	}
	m.ready, m.delayed = nil, nil
}

func (m *model) restart() {
	m.bench.restart()
	for _, i := range m.unacked {
		i.redelivered = true
	}
	m.ready = slices.DeleteFunc(append(m.ready, m.unacked...), func(i *item) bool { return !i.persistent })
	m.unacked, m.lapsed = nil, nil
	clear(m.out)
	m.sort()
	for _, i := range m.ready {
		i.returned = false
	}
	m.open()
	m.expire()
}

func (m *model) check(rt *rapid.T) {
	c := m.queue.Counts()
	if c.Ready != len(m.ready) || c.Unacked != len(m.unacked) || c.Delayed != len(m.delayed) {
		rt.Fatalf("%+v, want %d ready, %d unacknowledged, %d delayed", c, len(m.ready), len(m.unacked), len(m.delayed))
	}
	if !slices.Equal(m.bench.letters, m.letters) {
		rt.Fatalf("dead letters %q, want %q", m.bench.letters, m.letters)
	}
}
