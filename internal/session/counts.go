package session

// Counts are the messages of channels, by what became of them.
type Counts struct {
	Publish          uint64
	Confirm          uint64 // acks and nacks to a publisher
	ReturnUnroutable uint64 // mandatory, given back
	DropUnroutable   uint64 // not mandatory
	Deliver          uint64 // to consumers, with acknowledgement
	DeliverNoAck     uint64
	Get              uint64 // by basic.get, with acknowledgement
	GetNoAck         uint64
	GetEmpty         uint64 // basic.get that found nothing
	Redeliver        uint64 // of all that was given out
	Ack              uint64
}

// Add adds o to c.
func (c *Counts) Add(o Counts) {
	c.Publish += o.Publish
	c.Confirm += o.Confirm
	c.ReturnUnroutable += o.ReturnUnroutable
	c.DropUnroutable += o.DropUnroutable
	c.Deliver += o.Deliver
	c.DeliverNoAck += o.DeliverNoAck
	c.Get += o.Get
	c.GetNoAck += o.GetNoAck
	c.GetEmpty += o.GetEmpty
	c.Redeliver += o.Redeliver
	c.Ack += o.Ack
}

// delivered counts a delivery to a consumer.
func (c *Counts) delivered(noAck, again bool) {
	if noAck {
		c.DeliverNoAck++
	} else {
		c.Deliver++
	}
	c.again(again)
}

// got counts an answer to basic.get.
func (c *Counts) got(noAck, again bool) {
	if noAck {
		c.GetNoAck++
	} else {
		c.Get++
	}
	c.again(again)
}

func (c *Counts) again(again bool) {
	if again {
		c.Redeliver++
	}
}

// Traffic is what went over connections in one direction.
type Traffic struct {
	Octets uint64
	Count  uint64 // of reads or writes
}

// Add adds o to t.
func (t *Traffic) Add(o Traffic) {
	t.Octets += o.Octets
	t.Count += o.Count
}

// Totals are what all connections to a virtual host have done, those that have ended too.
type Totals struct {
	Counts         Counts
	Received, Sent Traffic
}

// Add adds o to t.
func (t *Totals) Add(o Totals) {
	t.Counts.Add(o.Counts)
	t.Received.Add(o.Received)
	t.Sent.Add(o.Sent)
}

// Churn counts what came and went since the server was made.
type Churn struct {
	ConnectionsCreated, ConnectionsClosed uint64
	ChannelsCreated, ChannelsClosed       uint64
}
