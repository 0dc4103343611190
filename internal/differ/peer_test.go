package differ

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/dormousemq/dormouse/internal/wire"
)

// A place is a broker that programs run on.
type place struct {
	name    string
	address string // of AMQP
	api     string // URL of the management HTTP API
	vhost   string
}

// request makes a request to the management API.
func (p place) request(method, path string, body any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequest(method, p.api+path, bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	r.SetBasicAuth("guest", "guest")
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode >= 300 && (method != http.MethodDelete || answer.StatusCode != http.StatusNotFound) {
		err = fmt.Errorf("%s %s: %d %s", method, path, answer.StatusCode, text)
	}
	return err
}

// A peer runs one program on one broker.
type peer struct {
	place
	prefix string
	seen   *observed
	links  map[uint16]*link // by tens of the channel
	probe  *link
}

func newPeer(p place, prefix string) *peer {
	return &peer{place: p, prefix: prefix, seen: &observed{lines: map[string][]string{}}, links: map[uint16]*link{}}
}

func (p *peer) naming(name string) string { return p.prefix + name }

func (p *peer) plain(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, p.prefix, ""), p.vhost, "/")
}

// link is the connection that a channel is on, with the channel open.
func (p *peer) link(on uint16) (*link, error) {
	l := p.links[on/10]
	if l == nil || l.isDown() {
		var err error
		if l, err = dial(p.address, p.vhost, p.seen, p.plain); err != nil {
			return nil, err
		}
		p.links[on/10] = l
	}
	err := l.channel(on)
	return l, err
}

// barrier is answered when the channel has done what came before it.
func barrier(on uint16) []byte {
	return wire.AppendMethod(nil, on, &wire.ExchangeDeclare{Exchange: "amq.direct", Type: "direct", Passive: true})
}

// unacked are the deliveries of a channel in an order that is the same on both brokers.
func (p *peer) unacked(on uint16) []delivery {
	l := p.links[on/10]
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	ch := l.chans[on]
	if ch == nil {
		return nil
	}
	list := slices.Clone(ch.unacked)
	slices.SortStableFunc(list, func(a, b delivery) int { return cmp.Compare(a.key(), b.key()) })
	return list
}

// order is how a channel's deliveries came.
func (p *peer) order(on uint16) string {
	list := p.unacked(on)
	slices.SortFunc(list, func(a, b delivery) int { return cmp.Compare(a.tag, b.tag) })
	var b strings.Builder
	for _, d := range list {
		b.WriteString(d.key() + "\n")
	}
	return b.String()
}

// do does a step. One that settles has been given what to settle.
func (p *peer) do(o op, settles settlement) error {
	if o.policy != nil {
		return p.setPolicy(o.policy)
	}
	l, err := p.link(o.on)
	if err != nil {
		return err
	}
	var b []byte
	answers := 1
	switch {
	case o.hangsUp:
		delete(p.links, o.on/10)
		return l.hangUp()
	case o.closes:
		return l.send(o.on, 1, wire.AppendMethod(nil, o.on, &wire.ChannelClose{ReplyCode: 200}))
	case o.settle != nil:
		m := settles.method(o.settle, l, o.on)
		if m == nil {
			return nil
		}
		b = wire.AppendMethod(nil, o.on, m)
		if _, is := m.(*wire.BasicRecover); is {
			answers++
		}
	case o.properties != nil:
		for i := range o.times {
			b = l.publish(b, o, i, p.naming)
		}
	default:
		m := o.form(p.naming)
		b = wire.AppendMethod(nil, o.on, m)
		l.expect(o.on, m)
		if _, is := m.(*wire.TxCommit); is {
			// RabbitMQ closes a connection that goes on before the commit is over.
			return l.send(o.on, answers, b)
		}
		answers++
	}
	return l.send(o.on, answers, append(b, barrier(o.on)...))
}

func (l *link) hangUp() error {
	_, err := l.conn.Write(wire.AppendMethod(nil, 0, &wire.ConnectionClose{ReplyCode: 200}))
	return err
}

// expect notes what a method does to the channel.
func (l *link) expect(on uint16, m wire.Method) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ch := l.chans[on]
	if ch == nil {
		return
	}
	switch m := m.(type) {
	case *wire.ConfirmSelect:
		ch.confirms = !ch.tx
	case *wire.TxSelect:
		ch.tx = !ch.confirms
	case *wire.TxCommit:
		ch.settled = nil
	case *wire.TxRollback:
		ch.unacked = append(ch.unacked, ch.settled...)
		ch.settled = nil
	case *wire.BasicGet:
		l.seen.getsAcked = m.NoAck
	}
}

func (l *link) publish(b []byte, o op, i int, n naming) []byte {
	l.mu.Lock()
	if ch := l.chans[o.on]; ch != nil && ch.confirms {
		ch.published++
		ch.open[ch.published] = true
	}
	l.mu.Unlock()
	body := o.body
	if o.times > 1 {
		body += string(rune('a' + i))
	}
	p := o.properties(n)
	b = wire.AppendMethod(b, o.on, o.form(n))
	b = wire.AppendHeader(b, o.on, len(body), p.AppendTo(nil))
	return wire.AppendBody(b, o.on, 131072, []byte(body))
}

// A settlement is what to settle: the deliveries are the same on both brokers, their tags need not be.
type settlement struct {
	key     string
	nth     int // of those with the same key
	several bool
}

func (s settlement) method(how *settling, l *link, on uint16) wire.Method {
	l.mu.Lock()
	defer l.mu.Unlock()
	ch := l.chans[on]
	if how.how == "recover" {
		if how.requeue && ch != nil {
			ch.unacked = nil
		}
		return &wire.BasicRecover{Requeue: how.requeue}
	}
	tag := uint64(9999)
	if !how.unknown {
		n := s.nth
		at := slices.IndexFunc(ch.unacked, func(d delivery) bool {
			if d.key() == s.key {
				n--
			}
			return n < 0
		})
		if at < 0 {
			return nil
		}
		tag = ch.unacked[at].tag
		kept := ch.unacked[:0:0]
		for _, d := range ch.unacked {
			if d.tag == tag || s.several && how.how != "reject" && d.tag <= tag {
				if ch.tx {
					ch.settled = append(ch.settled, d)
				}
				continue
			}
			kept = append(kept, d)
		}
		ch.unacked = kept
	}
	switch how.how {
	case "ack":
		return &wire.BasicAck{DeliveryTag: tag, Multiple: s.several}
	case "nack":
		return &wire.BasicNack{DeliveryTag: tag, Multiple: s.several, Requeue: how.requeue}
	}
	return &wire.BasicReject{DeliveryTag: tag, Requeue: how.requeue}
}

func (p *peer) setPolicy(set *policy) error {
	path := "/api/policies/" + url.PathEscape(p.vhost) + "/" + p.naming(set.name)
	if set.definition == nil {
		return p.request(http.MethodDelete, path, nil)
	}
	return p.request(http.MethodPut, path, map[string]any{
		"pattern": "^" + p.naming(set.pattern) + "$", "apply-to": set.applyTo, "definition": set.definition(p.naming),
	})
}

// counts looks at each queue, which are given with their kinds.
func (p *peer) counts(queues map[string]string) (string, error) {
	var b strings.Builder
	for _, q := range slices.Sorted(maps.Keys(queues)) {
		if p.probe == nil || p.probe.isDown() {
			l, err := dial(p.address, p.vhost, &observed{lines: map[string][]string{}}, p.plain)
			if err != nil {
				return "", err
			}
			l.counting = true
			p.probe = l
		}
		text, err := p.probe.ask(1, &wire.QueueDeclare{Queue: p.naming(q), Passive: true})
		if err != nil {
			return "", err
		}
		if queues[q] == "stream" {
			text, _, _ = strings.Cut(text, "MessageCount") // RabbitMQ counts what is in streams every few seconds
		}
		b.WriteString(q + ": " + text + "\n")
	}
	return b.String(), nil
}

// close ends the connections and deletes what the program may have left.
func (p *peer) close(program program) error {
	for _, l := range p.links {
		if err := l.hangUp(); err != nil && !l.isDown() {
			return err
		}
	}
	if p.probe == nil {
		return nil
	}
	for _, q := range []string{"q1", "q2", "q3"} {
		if _, err := p.probe.ask(1, &wire.QueueDelete{Queue: p.naming(q)}); err != nil {
			return err
		}
	}
	for _, x := range []string{"x1", "x2"} {
		if _, err := p.probe.ask(1, &wire.ExchangeDelete{Exchange: p.naming(x)}); err != nil {
			return err
		}
	}
	for _, o := range program.ops {
		if o.policy != nil {
			if err := p.setPolicy(&policy{name: o.policy.name}); err != nil {
				return err
			}
		}
	}
	return p.probe.hangUp()
}
