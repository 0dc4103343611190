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
			m := &model{bench: newRapidBench(t), settings: dlx(s, "none"), out: map[int]Delivery{}}
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
}

type model struct {
	bench    *rapidBench
	settings Settings
	queue    *Queue
	next     int
	ready    []*item
	unacked  []*item
	out      map[int]Delivery
	letters  []string
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
	now := m.bench.clock.Now()
	due := func(i int) bool {
		return i < len(m.ready) && !m.ready[i].expires.IsZero() && !m.ready[i].expires.After(now)
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
	d, ok := m.queue.Get(false)
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
		i.redelivered, i.returned = true, true
		i.counts.Returns++
		if failed {
			i.counts.Failures++
		}
		if m.quorum() && i.counts.Failures > DefaultDeliveryLimit {
			m.letters = append(m.letters, "delivery_limit "+strconv.Itoa(i.id))
		} else if m.quorum() {
			at := slices.IndexFunc(m.ready, func(o *item) bool { return !o.returned })
			if at < 0 {
				at = len(m.ready)
			}
			m.ready = slices.Insert(m.ready, at, i)
		} else {
			m.ready = append(m.ready, i)
			m.sort()
		}
		settle(m.queue, func(tx *store.Tx) { m.queue.Requeue(tx, failed, d.Entry) })
	})
}

func (m *model) sort() {
	slices.SortFunc(m.ready, func(a, b *item) int { return cmp.Compare(a.id, b.id) })
}

func (m *model) advance(rt *rapid.T) {
	m.bench.clock.Advance(time.Duration(rapid.IntRange(0, 70).Draw(rt, "seconds")) * time.Second)
	m.expire()
}

func (m *model) purge(rt *rapid.T) {
	n, err := m.queue.Purge(rt.Context())
	if err != nil || n != len(m.ready) {
		rt.Fatalf("purged %d of %d: %v", n, len(m.ready), err)
	}
	m.ready = nil
}

func (m *model) restart() {
	m.bench.restart()
	for _, i := range m.unacked {
		i.redelivered = true
	}
	m.ready = slices.DeleteFunc(append(m.ready, m.unacked...), func(i *item) bool { return !i.persistent })
	m.unacked = nil
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
	if c.Ready != len(m.ready) || c.Unacked != len(m.unacked) {
		rt.Fatalf("%d ready and %d unacknowledged, want %d and %d", c.Ready, c.Unacked, len(m.ready), len(m.unacked))
	}
	if !slices.Equal(m.bench.letters, m.letters) {
		rt.Fatalf("dead letters %q, want %q", m.bench.letters, m.letters)
	}
}
