package cli

import (
	"reflect"
	"testing"
	"time"

	"github.com/dormousemq/dormouse"
)

func TestFlagsBecomeATopology(t *testing.T) {
	flags := declareFlags{
		queueType: "classic", ladderType: "quorum",
		queues: []string{"email", "sms"}, exchanges: []string{"orders:direct", "events"}, binds: []string{"email=orders:order.paid", "sms=events:a:b=c"},
		fixedDelays: []string{"name=email.10s,delay=10s,to=email", "name=orders.1d,delay=1d,exchange=orders,key=order.late"},
	}
	got, err := flags.topology()
	if err != nil {
		t.Fatal(err)
	}
	want := dormouse.Topology{
		LadderType: dormouse.Quorum,
		Exchanges:  []dormouse.Exchange{{Name: "orders", Kind: "direct"}, {Name: "events"}},
		Queues: []dormouse.Queue{
			{Name: "email", Type: dormouse.Classic, Bindings: []dormouse.Binding{{Exchange: "orders", RoutingKey: "order.paid"}}},
			{Name: "sms", Type: dormouse.Classic, Bindings: []dormouse.Binding{{Exchange: "events", RoutingKey: "a:b=c"}}},
		},
		FixedDelays: []dormouse.FixedDelay{
			{Queue: "email.10s", Delay: 10 * time.Second, RoutingKey: "email", Type: dormouse.Classic},
			{Queue: "orders.1d", Delay: 24 * time.Hour, Exchange: "orders", RoutingKey: "order.late", Type: dormouse.Classic},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestFlagsThatMakeNoTopology(t *testing.T) {
	for name, flags := range map[string]declareFlags{
		"queue type":            {queueType: "stream", ladderType: "quorum"},
		"ladder type":           {queueType: "quorum", ladderType: ""},
		"binding without key":   {queueType: "quorum", ladderType: "quorum", queues: []string{"email"}, binds: []string{"email=orders"}},
		"binding of no queue":   {queueType: "quorum", ladderType: "quorum", binds: []string{"email=orders:#"}},
		"fixed delay to where":  {queueType: "quorum", ladderType: "quorum", fixedDelays: []string{"name=a,delay=1s"}},
		"fixed delay to two":    {queueType: "quorum", ladderType: "quorum", fixedDelays: []string{"name=a,delay=1s,to=b,exchange=c"}},
		"fixed delay of 0":      {queueType: "quorum", ladderType: "quorum", fixedDelays: []string{"name=a,delay=0s,to=b"}},
		"fixed delay unknown":   {queueType: "quorum", ladderType: "quorum", fixedDelays: []string{"name=a,delay=1s,to=b,ttl=3"}},
		"fixed delay with typo": {queueType: "quorum", ladderType: "quorum", fixedDelays: []string{"name=a,delay=1x,to=b"}},
	} {
		t.Run(name, func(t *testing.T) {
			if topology, err := flags.topology(); err == nil {
				t.Errorf("made %+v", topology)
			}
		})
	}
}
