// Package dormouse gives RabbitMQ users what RabbitMQ does not have: messages that arrive later, retries that wait
// longer each time and stop, and a parking lot for what cannot be processed. It needs no plugin and runs on RabbitMQ
// 3.10 to 4.3, single or clustered, and on the broker of package broker.
//
// # Delay
//
// A message is delayed by the ladder: a fixed set of queues (lanes), each with one constant time to live, through
// which a message walks until their times add up to its delay. It keeps its exchange and its routing key, so after the
// delay the bindings of that exchange decide where it goes, as if it had been published then. Delays round up to the
// ladder's resolution and are never early.
//
// # Retry
//
// A delivery ends in exactly one of three ways: it is done, it comes back after a delay, or it is parked in the queue
// "<queue>.parked" (or discarded, when the policy says so). A retry goes straight back to its work queue, never through
// the original exchange, so no other subscriber gets it again. The copy is published and confirmed before the original
// is acknowledged: a crash between the two gives a duplicate, never a loss.
package dormouse
