// Package stream is a stream: a queue that keeps its messages when they have been
// consumed, so that many consumers read it, each from where it likes, as often as it
// likes. Source: https://www.rabbitmq.com/docs/streams.
//
// # What is stored
//
// A message is one record of the store whose sequence number is its offset, with the time
// of its arrival before it. Offsets and times only grow, so both an offset and a moment are
// found by seeking, the moment by bisection. What RabbitMQ calls a chunk, the messages that
// happen to be written together, is one message here: "last" begins with the last message, and
// a filter passes exactly what matches.
//
// A stream is cut into segments of a size. Each that is complete has a small record under a
// second number of the store, by which retention drops it as a whole without looking at
// its messages. The segment that is being written always stays.
//
// # Delivery
//
// Consumers get only what is on disk: otherwise an offset that one of them has noted could
// mean another message after a crash. The store tells the stream when that is so. What is
// newest stays in memory for those who follow closely; others read from disk in batches,
// each in a goroutine that exists only while its consumer can take something, and no
// consumer ever holds more than one batch.
//
// The locks are in this order: Stream.mu, reader.mu, and then a Sink.
package stream
