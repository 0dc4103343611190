// Package management is RabbitMQ's management HTTP API over the parts of the broker: the
// same paths, the same JSON, the same errors, so that the tools of its users work. What
// it knows and where it differs is in docs/management.md.
//
// A request goes through the [Handler]: the path finds its endpoint in the table of
// endpoints.go, which says who may use it; the user logs in by basic authentication; the
// body is read as JSON; and the endpoint's action returns what is to be answered, or a
// *failure. Actions look at snapshots that the other packages take, and hold no lock.
//
// The answers are objects with the members in the order in which they were added. Rates
// are the difference between the last two of the samples that [Handler.Run] takes.
//
// Source: https://www.rabbitmq.com/docs/http-api-reference, and RabbitMQ 4.3 where that
// is silent.
package management
