package bench

import "context"

// Client makes the two ends of a load.
type Client interface {
	// Publisher connects a publisher.
	Publisher(ctx context.Context, url string, o PublisherOptions) (Publisher, error)
	// Consumer connects a consumer.
	Consumer(ctx context.Context, url string, o ConsumerOptions) (Consumer, error)
}

// PublisherOptions say where a Publisher's messages go, and how.
type PublisherOptions struct {
	Exchange, Key string
	Persistent    bool
	// InFlight is how many messages may wait for their confirm at a time. 0 is without confirms.
	InFlight int
}

// Message is what differs from one message of a Publisher to the next.
type Message struct {
	Body []byte // not kept
	// Expiration and Delay (the header x-delay) are in milliseconds; 0 leaves them out.
	Expiration, Delay int64
	// Copy is a further routing key that consumers do not see (the header BCC); empty leaves it out.
	Copy string
}

// Publisher publishes. Its methods are for one goroutine, but for Close.
type Publisher interface {
	// Publish may keep the message back until Flush, or until there is more. It waits while too many are unconfirmed.
	Publish(m Message) error
	// Flush sends what was kept back.
	Flush() error
	// Wait flushes, and waits until everything is confirmed, if there are confirms.
	Wait() error
	// Close ends the connection.
	Close()
}

// Verdict is what a consumer does with a delivery.
type Verdict string

// The verdicts.
const (
	AckEach  Verdict = "each"   // acknowledges one by one
	AckMany  Verdict = "many"   // acknowledges several at a time
	AckAuto  Verdict = "auto"   // the broker does not wait for acknowledgements
	RejectIt Verdict = "reject" // rejects one by one, without requeueing
)

// ConsumerOptions say what a Consumer consumes, and how.
type ConsumerOptions struct {
	Queue    string
	Prefetch int // not with AckAuto
	Verdict  Verdict
}

// Consumer consumes.
type Consumer interface {
	// Run calls handle with the beginning of each body, at least StampSize bytes if there are so many, until Close, and
	// returns nil then. The slice is valid during the call.
	Run(handle func(body []byte)) error
	// Close ends the connection. It may be called by any goroutine.
	Close()
}
