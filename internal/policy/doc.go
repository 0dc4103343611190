// Package policy is RabbitMQ's policies and operator policies: which definitions are
// valid, which policy applies to a queue or an exchange, and what becomes of a setting
// that is given by a policy, an operator policy and an argument of the declaration.
//
// It is pure: it holds what it is given and answers. Source of its rules:
// https://www.rabbitmq.com/docs/policies, and RabbitMQ 4.3 where that is silent.
package policy
