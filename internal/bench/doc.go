// Package bench measures AMQP 0-9-1 brokers: how much goes through, how late delayed messages are, what a backlog costs.
// It knows no broker's insides; any RabbitMQ and the embedded broker are measured alike.
//
// Every message carries a stamp (see [Stamp]) in front of its body, and a [Ledger] keeps account of what has arrived, so
// that a broker which loses messages, doubles them or is early cannot look fast.
//
// The load comes from [Raw]: frames written as many at a time as the window allows, and read without making anything of
// them but the stamp. [Library] is the same by amqp091-go, as programs really do it, where the client takes more
// processor time than a fast broker.
package bench
