package vhost

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/policy"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/wire"
)

func (b *bench) put(name, pattern string, priority int, d policy.Definition) {
	b.t.Helper()
	b.must(b.PutPolicy(b.t.Context(), policy.Policy{Kind: policy.Regular, Name: name, Pattern: pattern, Priority: priority, Definition: d}))
}

func (b *bench) delete(name string) {
	b.t.Helper()
	b.must(b.DeletePolicy(b.t.Context(), policy.Regular, name))
}

func (b *bench) settings(name string) queue.Settings {
	b.t.Helper()
	return b.queues[name].Settings()
}

func TestPolicyChangesALiveQueue(t *testing.T) {
	b := newBench(t)
	b.declareQueue("dead")
	b.declareQueue("q", wire.Field{Name: "x-max-length", Value: int32(5)})
	for _, body := range []string{"1", "2", "3", "4"} {
		b.publish(to("", "q", body))
	}
	b.put("p", "^q$", 0, policy.Definition{"max-length": int64(2), "dead-letter-exchange": "", "dead-letter-routing-key": "dead"})
	b.holds("dead", "1", "2")
	b.publish(to("", "q", "5"))
	b.holds("dead", "3")
	b.put("p", "^q$", 0, policy.Definition{"max-length": int64(2), "overflow": "reject-publish"})
	if o := b.publish(to("", "q", "6")); o != Refused {
		t.Errorf("a full queue that rejects: %v", o)
	}
	b.put("p", "^other$", 0, policy.Definition{"max-length": int64(2)})
	for range 4 {
		b.publish(to("", "q", "more"))
	}
	b.holds("q", "5", "more", "more", "more", "more")
	b.holds("dead")
}

func TestPolicyTTLIsForWhatComesLater(t *testing.T) {
	b := newBench(t)
	b.declareQueue("q", wire.Field{Name: "x-queue-type", Value: "quorum"})
	b.publish(to("", "q", "before"))
	b.put("p", "", 0, policy.Definition{"message-ttl": int64(1000)})
	b.publish(to("", "q", "after"))
	d, _, _ := b.Get(nil, "q", &queue.Consumer{NoAck: true})
	b.clock.Advance(time.Second)
	if string(d.Message.Body) != "before" {
		t.Fatalf("got %q", d.Message.Body)
	}
	b.holds("q")
	b.publish(to("", "q", "still short"))
	b.delete("p")
	b.publish(to("", "q", "for ever"))
	b.clock.Advance(time.Hour)
	b.holds("q", "for ever")
}

func TestPolicyExpires(t *testing.T) {
	for kind, lifetime := range map[string]time.Duration{"classic": time.Second, "quorum": time.Second - 400*time.Millisecond} {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t)
			b.declareQueue("q", wire.Field{Name: "x-queue-type", Value: kind})
			b.clock.Advance(400 * time.Millisecond)
			b.put("p", "", 0, policy.Definition{"expires": int64(1000)})
			b.clock.Advance(lifetime - 1)
			if _, err := b.CheckQueue(nil, "q"); err != nil {
				t.Fatal("it has gone early")
			}
			b.put("p", "", 0, policy.Definition{"expires": int64(500_000)})
			b.clock.Advance(lifetime)
			b.delete("p")
			b.clock.Advance(time.Hour)
			if _, err := b.CheckQueue(nil, "q"); err != nil {
				t.Fatal("it has gone without a policy")
			}
			b.put("p", "", 0, policy.Definition{"expires": int64(1)})
			b.clock.Advance(time.Second)
			_, err := b.CheckQueue(nil, "q")
			refused(t, err, wire.NotFound, "no queue 'q' in vhost '/'")
		})
	}
}

func TestPolicyOfExchanges(t *testing.T) {
	b := newBench(t)
	b.declareExchange("lost", "fanout")
	b.declareExchange("other", "fanout")
	b.declareExchange("x", "direct")
	b.declareExchange("said", "direct", wire.Field{Name: "alternate-exchange", Value: "other"})
	for _, name := range []string{"lost", "other"} {
		b.declareQueue("in " + name)
		b.bindQueue(name, "", "in "+name)
	}
	b.put("p", "", 0, policy.Definition{"alternate-exchange": "lost"})
	for range 2 {
		b.publish(to("x", "k", "x"))
		b.publish(to("amq.direct", "k", "amq"))
		b.publish(to("said", "k", "said"))
		if o := b.publish(to("", "nobody", "m")); o != Unroutable {
			t.Errorf("the default exchange: %v", o)
		}
		b.holds("in lost", "x", "amq")
		b.holds("in other", "said")
		b.restart()
	}
	b.delete("p")
	if o := b.publish(to("x", "k", "m")); o != Unroutable {
		t.Errorf("after the policy was deleted: %v", o)
	}
}

func TestPoliciesSurviveARestart(t *testing.T) {
	b := newBench(t)
	b.declareQueue("q", wire.Field{Name: "x-queue-type", Value: "quorum"}, wire.Field{Name: "x-delivery-limit", Value: int32(9)})
	b.put("p", "^q", -7, policy.Definition{"delivery-limit": int64(3), "dead-letter-exchange": "x"})
	b.must(b.PutPolicy(t.Context(), policy.Policy{Kind: policy.Operator, Name: "p", ApplyTo: "quorum_queues", Definition: policy.Definition{"delivery-limit": int64(2)}}))
	b.put("gone", "", 0, policy.Definition{"max-length": int64(3)})
	b.delete("gone")
	for range 2 {
		if s := b.settings("q"); s.DeliveryLimit != 2 || s.DeadLetterExchange == nil || *s.DeadLetterExchange != "x" || s.MaxLength != queue.Unlimited {
			t.Fatalf("in effect is %+v", s)
		}
		got, _ := b.QueuePolicy("q")
		want := policy.Effective{Policy: "p", OperatorPolicy: "p", Definition: policy.Definition{"delivery-limit": int64(2), "dead-letter-exchange": "x"}}
		if !got.Equal(want) {
			t.Fatalf("said to be in effect: %+v", got)
		}
		if list := b.Policies(policy.Regular); len(list) != 1 || list[0].Priority != -7 || list[0].Pattern != "^q" {
			t.Fatalf("policies %+v", list)
		}
		b.restart()
	}
}

func TestPolicyOfANewQueue(t *testing.T) {
	b := newBench(t)
	b.put("p", "", 0, policy.Definition{
		"max-length": int64(1), "overflow": "reject-publish", "delayed-retry-type": "all", "delayed-retry-min": int64(500),
		"consumer-timeout": int64(70), "message-ttl": int64(900_000_000_000_000_000), "queue-leader-locator": "random",
	})
	b.declareQueue("classic", wire.Field{Name: "x-overflow", Value: "drop-head"})
	b.declareQueue("quorum", wire.Field{Name: "x-overflow", Value: "drop-head"}, wire.Field{Name: "x-queue-type", Value: "quorum"},
		wire.Field{Name: "x-dead-letter-exchange", Value: ""}, wire.Field{Name: "x-dead-letter-strategy", Value: "at-least-once"})
	if s := b.settings("classic"); s.MaxLength != 1 || s.Overflow != queue.DropHead || s.Retry != (queue.Retry{}) {
		t.Errorf("classic queue: %+v", s)
	}
	s := b.settings("quorum")
	if s.Overflow != queue.RejectPublish || !s.AtLeastOnce || s.ConsumerTimeout != 70*time.Millisecond || s.TTL <= 0 {
		t.Errorf("quorum queue: %+v", s)
	}
	if want := (queue.Retry{On: queue.RetryAll, Min: 500 * time.Millisecond, Max: 500 * time.Millisecond}); s.Retry != want {
		t.Errorf("retry %+v, want %+v", s.Retry, want)
	}
	b.delete("p")
	if s := b.settings("quorum"); s.Overflow != queue.DropHead || s.AtLeastOnce {
		t.Errorf("without the policy: %+v", s)
	}
}

func TestPolicyErrors(t *testing.T) {
	b := newBench(t)
	err := b.PutPolicy(t.Context(), policy.Policy{Kind: policy.Regular, Name: "p", Definition: policy.Definition{"max-length": int64(-1)}})
	if _, invalid := errors.AsType[*policy.ValidationError](err); !invalid || len(b.Policies(policy.Regular)) != 0 {
		t.Errorf("a wrong policy: %v", err)
	}
	refused(t, b.DeletePolicy(t.Context(), policy.Regular, "p"), wire.NotFound, "no policy 'p' in vhost '/'")
	b.create("gone")
	h := b.in("gone")
	h.put("p", "", 0, policy.Definition{"max-length": int64(1)})
	if _, err := b.hosts.Delete(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	if err := h.PutPolicy(t.Context(), policy.Policy{Kind: policy.Regular, Name: "p", Definition: policy.Definition{"max-length": int64(1)}}); err == nil {
		t.Error("a policy was set in a deleted vhost")
	}
	b.create("gone")
	if list := b.in("gone").Policies(policy.Regular); len(list) != 0 {
		t.Errorf("a vhost made anew has the policies %v", list)
	}
	b.restart()
	if list := b.in("gone").Policies(policy.Regular); len(list) != 0 {
		t.Errorf("after a restart it has the policies %v", list)
	}
}

func TestConsumerTimeoutOfTheBroker(t *testing.T) {
	for given, want := range map[time.Duration]time.Duration{
		0: queue.DefaultConsumerTimeout, time.Minute: time.Minute, -1: message.MaxTTL,
	} {
		b := newBench(t)
		hosts, err := Open(Options{Store: b.store, Clock: b.clock, Logger: slog.New(slog.DiscardHandler), ConsumerTimeout: given})
		b.must(err)
		b.hosts, b.Host = hosts, hosts.Host(Default)
		b.declareQueue("q", wire.Field{Name: "x-queue-type", Value: "quorum"})
		b.declareQueue("own", wire.Field{Name: "x-queue-type", Value: "quorum"}, wire.Field{Name: "x-consumer-timeout", Value: int32(70)})
		if got := b.settings("q").ConsumerTimeout; got != want {
			t.Errorf("%v: %v, want %v", given, got, want)
		}
		if got := b.settings("own").ConsumerTimeout; got != 70*time.Millisecond {
			t.Errorf("%v: %v for a queue that says 70 ms", given, got)
		}
		b.put("p", "^q$", 0, policy.Definition{"consumer-timeout": int64(80)})
		if got := b.settings("q").ConsumerTimeout; got != 80*time.Millisecond {
			t.Errorf("%v: %v by a policy of 80 ms", given, got)
		}
		b.delete("p")
		if got := b.settings("q").ConsumerTimeout; got != want {
			t.Errorf("%v: %v once the policy is gone, want %v", given, got, want)
		}
	}
}
