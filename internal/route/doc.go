// Package route decides to which destinations a message goes: one file per exchange type of AMQP 0-9-1
// as RabbitMQ implements them (direct, fanout, topic, headers), and of its plugins (x-consistent-hash, x-random).
//
// A binding is identified by the triple of routing key, arguments and destination. Binding the same triple twice
// changes nothing; two triples that differ only in their arguments are two bindings, and removing one of them
// leaves the other in force.
//
// Binding and unbinding cost the same however many bindings there are, and what was unbound takes no memory.
//
// The package knows neither exchanges nor queues: destinations are values of any comparable type.
package route
