package stream

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/wire"
)

// minutely fills the stream with one message a minute.
func (b *bench) minutely(n int) {
	for range n {
		b.fill(1)
		b.clock.Advance(time.Minute)
	}
}

func TestOffsets(t *testing.T) {
	for _, tail := range []int{1, 100} { // most is on disk, all is in memory
		b := newBench(t, nil)
		b.Stream.tail.messages = tail
		b.minutely(10)
		at := func(minutes int, extra time.Duration) wire.Timestamp {
			return wire.Timestamp(start.Add(time.Duration(minutes)*time.Minute + extra).Unix())
		}
		for name, c := range map[string]struct {
			offset any
			want   []string
		}{
			"first":            {"first", []string{"0", "1", "2"}},
			"as bytes":         {[]byte("first"), []string{"0", "1", "2"}},
			"last":             {"last", []string{"9"}},
			"next":             {"next", nil},
			"number":           {int64(8), []string{"8", "9"}},
			"short":            {int8(3), []string{"3", "4", "5"}},
			"negative":         {int32(-4), []string{"0", "1", "2"}},
			"end":              {int64(10), nil},
			"time":             {at(4, 0), []string{"4", "5", "6"}},
			"between":          {at(4, time.Second), []string{"5", "6", "7"}},
			"before all":       {at(-100, 0), []string{"0", "1", "2"}},
			"after all":        {at(100, 0), nil},
			"minutes ago":      {"2m", []string{"8", "9"}},
			"hours ago":        {"1h", []string{"0", "1", "2"}},
			"seconds ago":      {"1s", nil},
			"beyond the clock": {"99999999999999999999Y", []string{"0", "1", "2"}},
		} {
			k := b.consume(3, from(c.offset))
			b.idle()
			got := k.take(k.has())
			if !slices.Equal(bodies(got), c.want) {
				t.Errorf("%s with %d in memory: got %v, want %v", name, tail, bodies(got), c.want)
			}
			for _, d := range got {
				if strconv.FormatUint(d.Offset, 10) != string(d.Message.Body) || d.Redelivered {
					t.Errorf("%s: %s has offset %d, redelivered %v", name, d.Message.Body, d.Offset, d.Redelivered)
				}
			}
			k.Queue().Cancel(&k.Consumer)
		}
		b.shut()
	}
}

func TestEmptyStream(t *testing.T) {
	for _, o := range []any{"first", "last", "next", int64(0), wire.Timestamp(0), "1h"} {
		b := newBench(t, nil)
		k := b.consume(5, from(o))
		b.fill(1)
		if got := k.take(1)[0].Offset; got != 0 {
			t.Errorf("%v: began at %d", o, got)
		}
		b.shut()
	}
}

func TestOffsetBeyondTheEndIsWaitedFor(t *testing.T) {
	b := newBench(t, nil)
	defer b.shut()
	b.fill(3)
	k := b.consume(10, from(int64(5)))
	b.fill(2)
	b.idle()
	if k.has() > 0 {
		t.Fatalf("got %v", bodies(k.got))
	}
	b.fill(2)
	if got := bodies(k.take(2)); !slices.Equal(got, []string{"5", "6"}) {
		t.Fatalf("got %v", got)
	}
}

func TestEverySettlementGivesCredit(t *testing.T) {
	b := newBench(t, nil)
	defer b.shut()
	b.fill(10)
	k := b.consume(2, from("first"))
	d := k.take(2)
	b.idle()
	if k.has() > 0 {
		t.Fatal("more than the prefetch count")
	}
	q := k.Queue()
	q.Ack(nil, d[0].Entry)
	if got := bodies(k.take(1)); got[0] != "2" {
		t.Fatalf("after an ack %v", got)
	}
	q.Reject(nil, true, d[1].Entry)
	if got := bodies(k.take(1)); got[0] != "3" {
		t.Fatalf("after a reject %v", got)
	}
	q.Requeue(nil, false, d[0].Entry, d[1].Entry)
	if got := bodies(k.take(2)); !slices.Equal(got, []string{"4", "5"}) {
		t.Fatalf("after a requeue %v", got)
	}
	b.idle()
	if k.has() > 0 {
		t.Fatal("a requeued message came back")
	}
}

// A consumer that does not read has one batch in memory, however long the stream.
func TestWhoDoesNotReadHoldsOneBatch(t *testing.T) {
	b := newBench(t, nil)
	defer b.shut()
	b.Stream.tail.messages = 10
	b.fill(20 * batchMessages)
	k := b.consume(1<<16, from("first"))
	b.idle()
	settle(k.take(k.has()))
	k.mu.Lock()
	k.room = 5
	k.mu.Unlock()
	b.fill(5 * batchMessages)
	b.idle()
	r := k.Queue().(*reader)
	if k.has() != 5 || len(r.batch) > batchMessages {
		t.Fatalf("it took %d and %d are held", k.has(), len(r.batch))
	}
	k.mu.Lock()
	k.room = 1 << 20
	k.mu.Unlock()
	r.Resume(&k.Consumer)
	for i, d := range k.take(5 * batchMessages) {
		if d.Offset != uint64(20*batchMessages+i) {
			t.Fatalf("number %d has offset %d", i, d.Offset)
		}
	}
	if n := len(b.Stream.tail.list); n > 10 {
		t.Fatalf("%d messages stay in memory", n)
	}
}

func TestConsumersAreIndependent(t *testing.T) {
	b := newBench(t, nil)
	defer b.shut()
	b.fill(100)
	slow, fast, late := b.consume(1, from("first")), b.consume(1000, from("first")), b.consume(10, from(int64(95)))
	fast.take(100)
	late.take(5)
	if got := bodies(slow.take(1)); got[0] != "0" {
		t.Fatalf("slow got %v", got)
	}
	b.fill(5)
	late.take(5)
	if got := bodies(fast.take(5)); got[0] != "100" {
		t.Fatalf("fast got %v", got)
	}
	fast.Queue().Cancel(&fast.Consumer)
	b.fill(5)
	b.idle()
	if fast.has() > 0 {
		t.Fatal("a cancelled consumer got more")
	}
}

// What is not written is not delivered, nor what was written after it: a crash could take
// it back and give its offset to another message.
func TestOnlyWhatIsWrittenIsDelivered(t *testing.T) {
	b := newBench(t, nil)
	b.fill(2)
	k := b.consume(10, from("first"))
	k.take(2)
	open := b.store.Begin()
	b.Enqueue(open, text("lost"))
	b.publish(text("kept"))
	b.idle()
	if k.has() > 0 {
		t.Fatalf("got %v", bodies(k.got))
	}
	last := b.consume(10, from("last"))
	if got := bodies(last.take(1)); got[0] != "1" {
		t.Fatalf("the last is %v", got)
	}
	// The unit of work that is open never ends: a crash.
	b.restart()
	defer b.shut()
	if n := b.store.Counters(streamID).Messages; n != 3 || b.gaps == 0 {
		t.Fatalf("%d messages, gaps below %d", n, b.gaps)
	}
	k = b.consume(10, from("first"))
	got := k.take(3)
	if got[2].Offset != 3 || string(got[2].Message.Body) != "kept" {
		t.Fatalf("%q at %d", got[2].Message.Body, got[2].Offset)
	}
	b.fill(1)
	if o := k.take(1)[0].Offset; o != 4 {
		t.Fatalf("the next is %d", o)
	}
	for at, want := range map[any]uint64{int64(2): 3, wire.Timestamp(0): 0} {
		if got := b.consume(1, from(at)).take(1)[0].Offset; got != want {
			t.Errorf("from %v on: %d, want %d", at, got, want)
		}
	}
}

func TestGapIsDroppedExactly(t *testing.T) {
	b := newBench(t, func(s *queue.Settings) { s.SegmentBytes = 200 })
	b.fill(2)
	open := b.store.Begin()
	b.Enqueue(open, text("lost"))
	b.fill(30)
	b.settings.MaxBytes = 100
	b.restart()
	defer b.shut()
	b.idle()
	b.publish(text("last"))
	c := b.store.Counters(streamID)
	if c.Messages != b.next-b.first || b.first < 10 {
		t.Fatalf("%d messages are counted, %d to %d are there", c.Messages, b.first, b.next)
	}
}

func TestFilter(t *testing.T) {
	b := newBench(t, nil)
	defer b.shut()
	value := func(body string, v any) *message.Message {
		return text(body, wire.Field{Name: "x-stream-filter-value", Value: v})
	}
	b.publish(value("a0", "a"), value("b1", "b"), text("u2"), value("a3", "a"), value("c4", "c"), value("n5", int32(1)), value("e6", ""))
	field := func(name string, v any) wire.Field { return wire.Field{Name: name, Value: v} }
	for name, c := range map[string]struct {
		arguments []wire.Field
		want      []string
	}{
		"one":             {[]wire.Field{field("x-stream-filter", "a")}, []string{"a0", "a3"}},
		"two":             {[]wire.Field{field("x-stream-filter", []any{"a", "c"})}, []string{"a0", "a3", "c4"}},
		"empty value":     {[]wire.Field{field("x-stream-filter", "")}, []string{"e6"}},
		"unfiltered too":  {[]wire.Field{field("x-stream-filter", "c"), field("x-stream-match-unfiltered", true)}, []string{"u2", "c4", "n5"}},
		"unfiltered only": {[]wire.Field{field("x-stream-match-unfiltered", true)}, []string{"a0", "b1", "u2", "a3", "c4", "n5", "e6"}},
		"no filter":       {[]wire.Field{field("x-stream-filter", int32(1))}, []string{"a0", "b1", "u2", "a3", "c4", "n5", "e6"}},
		"none":            {[]wire.Field{field("x-stream-filter", "z")}, nil},
	} {
		k := b.consume(10, append(c.arguments, from("first"))...)
		b.idle()
		if got := bodies(k.take(k.has())); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	// What does not match needs no credit.
	all := make([]*message.Message, 0, 3*batchMessages)
	for i := range cap(all) {
		all = append(all, value("b"+strconv.Itoa(i), "b"))
	}
	all = append(all, value("a-last", "a"))
	b.publish(all...)
	k := b.consume(1, from(int64(7)), field("x-stream-filter", "a"))
	if got := bodies(k.take(1)); got[0] != "a-last" {
		t.Fatalf("got %v", got)
	}
}

func TestRefusedConsumers(t *testing.T) {
	b := newBench(t, nil)
	defer b.shut()
	for name, c := range map[string]struct {
		consumer queue.Consumer
		want     string
	}{
		"no prefetch": {queue.Consumer{}, "consumer prefetch count is not set for stream queue 's' in vhost '/'"},
		"no ack":      {queue.Consumer{NoAck: true, Prefetch: 1}, "automatic acknowledgement not supported by stream queue 's' in vhost '/'"},
		"bad word": {queue.Consumer{Prefetch: 1, Arguments: wire.Table{from("5")}},
			`invalid arg 'x-stream-offset' for queue 's' in vhost '/': {invalid_stream_offset_arg,{longstr,<<"5">>}}`},
		"empty": {queue.Consumer{Prefetch: 1, Arguments: wire.Table{from("")}},
			`invalid arg 'x-stream-offset' for queue 's' in vhost '/': {invalid_stream_offset_arg,{longstr,<<>>}}`},
		"bad type": {queue.Consumer{Prefetch: 1, Arguments: wire.Table{from(1.5)}},
			`invalid arg 'x-stream-offset' for queue 's' in vhost '/': {invalid_stream_offset_arg,double}: it may be first, last, next, a number, a timestamp or a time like 1h`},
		"no filter": {queue.Consumer{Prefetch: 1, Arguments: wire.Table{{Name: "x-stream-filter", Value: []any{int32(1)}}}},
			`invalid arg 'x-stream-filter' for queue 's' in vhost '/': there is no string in the array`},
	} {
		var x *wire.Exception
		if err := b.Consume(&c.consumer); !errors.As(err, &x) || x.Text != c.want {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	if k := (&client{room: 9}); b.Consume(&queue.Consumer{Sink: k, ChannelLimit: 3}) != nil {
		t.Error("the limit of the channel is a prefetch count")
	}
}

func TestDelete(t *testing.T) {
	b := newBench(t, func(s *queue.Settings) { s.SegmentBytes = 100 })
	defer b.shut()
	k := b.consume(5, from("first"))
	b.fill(300)
	k.take(5)
	tx := b.store.Begin()
	refuse := errors.New("refused")
	if _, err := b.Delete(tx, func(queue.Counts) error { return refuse }); !errors.Is(err, refuse) {
		t.Fatalf("got %v", err)
	}
	n, err := b.Delete(tx, nil)
	b.must(err)
	if n != 0 || !k.gone {
		t.Fatalf("deleted with %d, told %v", n, k.gone)
	}
	b.must(tx.Wait(t.Context()))
	if left := b.store.Queues(); len(left) != 0 {
		t.Fatalf("the store has %v", left)
	}
	if o := b.Enqueue(b.store.Begin(), text("late")); o != queue.Gone {
		t.Fatalf("outcome %v", o)
	}
	if err := b.Consume(&queue.Consumer{Sink: k, Prefetch: 1}); !errors.Is(err, queue.ErrDeleted) {
		t.Fatalf("got %v", err)
	}
	if _, err := b.Delete(tx, nil); !errors.Is(err, queue.ErrDeleted) {
		t.Fatalf("got %v", err)
	}
}

func TestParseAge(t *testing.T) {
	day := 24 * time.Hour
	for s, want := range map[string]time.Duration{
		"1s": time.Second, "90s": 90 * time.Second, "2m": 2 * time.Minute, "1h": time.Hour, "7D": 7 * day, "1M": 30 * day, "2Y": 730 * day, "007h": 7 * time.Hour,
		"": 0, "h": 0, "5": 0, "0s": 0, "1x": 0, "-1h": 0, "1.5h": 0, "1 h": 0, "1hh": 0, "h1": 0,
	} {
		if got, ok := ParseAge(s); got != want || ok != (want > 0) {
			t.Errorf("%q is %v, %v", s, got, ok)
		}
	}
	if got, ok := ParseAge(strings.Repeat("9", 400) + "s"); got <= 0 || !ok {
		t.Errorf("a very long time is %v, %v", got, ok)
	}
}
