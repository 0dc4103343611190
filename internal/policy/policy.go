package policy

import (
	"cmp"
	"maps"
)

// Kind tells regular policies from those of an operator, which limit what the
// regular ones may say.
type Kind string

// The kinds, by the names that RabbitMQ keeps them under.
const (
	Regular  Kind = "policy"
	Operator Kind = "operator_policy"
)

// Policy is settings for all queues or exchanges whose names match a pattern.
type Policy struct {
	Kind Kind
	Name string
	// Pattern is a regular expression that is found in the names of what the policy is for.
	Pattern string
	// ApplyTo is all, exchanges, queues, classic_queues, quorum_queues or streams; "" is all.
	ApplyTo string
	// Priority decides which of several policies applies: the highest.
	Priority   int
	Definition Definition
}

// Definition is the settings of a policy by key. Integers are int64, other numbers
// float64; text, truth values, lists ([]any) and tables (map[string]any) are as
// encoding/json has them.
type Definition map[string]any

// What a policy applies to.
const (
	applyToAll       = "all"
	applyToExchanges = "exchanges"
	applyToQueues    = "queues"
)

// Type is what kind of queue, or that it is an exchange.
type Type string

// The types. Those of queues are the values of x-queue-type.
const (
	Classic  Type = "classic"
	Quorum   Type = "quorum"
	Stream   Type = "stream"
	Exchange Type = "exchange"
)

// queueTypes are the types of queues by the word that limits a policy to them.
var queueTypes = map[string]Type{"classic_queues": Classic, "quorum_queues": Quorum, "streams": Stream}

// applies tells whether a policy that is limited by word is for t at all.
func applies(word string, t Type) bool {
	switch cmp.Or(word, applyToAll) {
	case applyToAll:
		return true
	case applyToExchanges:
		return t == Exchange
	case applyToQueues:
		return t != Exchange
	}
	return queueTypes[word] == t
}

// Target is a queue or an exchange.
type Target struct {
	Name string
	Type Type
}

// Effective is what applies to one target.
type Effective struct {
	// Policy and OperatorPolicy are the names of those in effect, "" for none.
	Policy, OperatorPolicy string
	// Definition is both, merged; nil if there is none.
	Definition Definition
}

// Equal tells whether e and o are the same.
func (e Effective) Equal(o Effective) bool {
	return e.Policy == o.Policy && e.OperatorPolicy == o.OperatorPolicy &&
		maps.EqualFunc(e.Definition, o.Definition, func(a, b any) bool { return term(a) == term(b) })
}
