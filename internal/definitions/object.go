package definitions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dormousemq/dormouse/internal/wire"
)

type user struct {
	Name             string  `json:"name"`
	PasswordHash     string  `json:"password_hash"`
	HashingAlgorithm string  `json:"hashing_algorithm"`
	Password         *string `json:"password"`
	Tags             tags    `json:"tags"`
	Limits           pairs   `json:"limits"`
}

type host struct {
	Name             string `json:"name"`
	Description      string `json:"description"`
	Tags             tags   `json:"tags"`
	DefaultQueueType string `json:"default_queue_type"`
	Limits           pairs  `json:"limits"`
	Metadata         struct {
		Description      string `json:"description"`
		Tags             tags   `json:"tags"`
		DefaultQueueType string `json:"default_queue_type"`
	} `json:"metadata"`
}

type permission struct {
	User      string `json:"user"`
	VHost     string `json:"vhost"`
	Configure string `json:"configure"`
	Write     string `json:"write"`
	Read      string `json:"read"`
}

type topicPermission struct {
	User     string `json:"user"`
	VHost    string `json:"vhost"`
	Exchange string `json:"exchange"`
	Write    string `json:"write"`
	Read     string `json:"read"`
}

type parameter struct {
	VHost     *string         `json:"vhost,omitempty"`
	Component string          `json:"component"`
	Name      string          `json:"name"`
	Value     json.RawMessage `json:"value"`
}

type policyOf struct {
	VHost      *string `json:"vhost,omitempty"`
	Name       string  `json:"name"`
	Pattern    string  `json:"pattern"`
	ApplyTo    string  `json:"apply-to"`
	Priority   int     `json:"priority"`
	Definition pairs   `json:"definition"`
}

type exchange struct {
	VHost      *string        `json:"vhost,omitempty"`
	Name       string         `json:"name"`
	Type       string         `json:"type"`
	Durable    bool           `json:"durable"`
	AutoDelete bool           `json:"auto_delete"`
	Internal   bool           `json:"internal"`
	Arguments  map[string]any `json:"arguments"`
}

type queue struct {
	VHost      *string        `json:"vhost,omitempty"`
	Name       string         `json:"name"`
	Type       string         `json:"type"`
	Durable    bool           `json:"durable"`
	AutoDelete bool           `json:"auto_delete"`
	Arguments  map[string]any `json:"arguments"`
}

type binding struct {
	VHost           *string        `json:"vhost,omitempty"`
	Source          string         `json:"source"`
	Destination     string         `json:"destination"`
	DestinationType string         `json:"destination_type"`
	RoutingKey      string         `json:"routing_key"`
	Arguments       map[string]any `json:"arguments"`
}

// tags are a list of words or, as in RabbitMQ up to 3.8, text with commas.
type tags []string

func (t *tags) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*t = nil
		for tag := range strings.SplitSeq(text, ",") {
			if tag = strings.TrimSpace(tag); tag != "" {
				*t = append(*t, tag)
			}
		}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(t))
}

// pairs are an object, which rabbitmqctl of 3.x also writes as a list of pairs.
type pairs map[string]any

func (p *pairs) UnmarshalJSON(b []byte) error {
	var object map[string]any
	if exactly(b, &object) == nil {
		*p = object
		return nil
	}
	var list [][2]any
	if err := exactly(b, &list); err != nil {
		return errors.New("it is neither an object nor a list of pairs")
	}
	*p = pairs{}
	for _, pair := range list {
		name, ok := pair[0].(string)
		if !ok {
			return fmt.Errorf("the name of a pair is %v", pair[0])
		}
		(*p)[name] = pair[1]
	}
	return nil
}

// exactly decodes without losing which numbers are integers.
func exactly(b []byte, to any) error {
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	return decoder.Decode(to)
}

// table is an object as an AMQP table, sorted by name. Integers are 64 bits wide, as in RabbitMQ.
func table(object map[string]any) wire.Table {
	t := make(wire.Table, 0, len(object))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		t = append(t, wire.Field{Name: name, Value: value(object[name])})
	}
	return t
}

func value(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return table(v)
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = value(e)
		}
		return list
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	}
	return v
}
