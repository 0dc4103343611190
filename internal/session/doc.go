// Package session is one AMQP 0-9-1 connection as RabbitMQ 4.3 serves it: the
// handshake, channels, publishing, confirms, consumers, acknowledgements,
// transactions, heartbeats, and what happens when any of it goes wrong.
//
// A connection has two goroutines. The reader parses frames, routes and enqueues
// messages and settles acknowledgements. The writer gathers what is ready into one
// write. Deliveries are put into the writer's buffer by whoever makes them ready,
// mostly the reader of a publishing connection; confirms by the store's committer.
//
// Memory is bounded at each step. A consumer whose connection has enough to write
// refuses deliveries, and the writer asks for more when it has written. A client
// that asks but does not read is not read either. So a client that has stopped
// costs the broker the size of two buffers.
//
// There is one lock, conn.mu. It guards what both sides touch: the write buffer,
// delivery tags, unacknowledged messages, confirms. A queue calls in here while it
// is locked (see queue.Sink), so nothing here calls a queue while holding conn.mu.
//
// Texts and codes of exceptions are RabbitMQ's. Where this package deliberately
// differs the code says so.
package session
