// Package wire is the AMQP 0-9-1 codec: frames, methods, content properties and
// field tables, as RabbitMQ speaks them.
//
// It is pure: it reads from an io.Reader at most, and everything that writes is
// append-style, so a caller decides where the bytes go. What a busy broker does
// for every message (reading frames, parsing basic.publish, basic.ack and a
// content header, writing basic.deliver) allocates nothing; see the benchmarks.
//
// The methods are generated from spec.txt, a description of AMQP 0-9-1 with
// RabbitMQ's extensions (exchange bindings, basic.nack, confirm, blocked
// connections, update-secret).
//
// A frame on the wire:
//
//	0      1         3             7                  size+7 size+8
//	+------+---------+-------------+  +------------+  +-----------+
//	| type | channel |     size    |  |  payload   |  | frame-end |
//	+------+---------+-------------+  +------------+  +-----------+
//	 octet   short         long         size octets       0xCE
//
// Errors that are the peer's fault are of type *Exception with the code that
// RabbitMQ would use, ready to be sent in connection.close or channel.close.
package wire

//go:generate go run ./internal/generate -spec spec.txt -out methods_gen.go
