package stream

import (
	"errors"
	"slices"

	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/wire"
)

// The arguments of a consumer that wants some of the messages only, and the header by
// which they say which they are. Source:
// https://www.rabbitmq.com/docs/streams#filtering.
const (
	filterArgument  = "x-stream-filter"
	matchUnfiltered = "x-stream-match-unfiltered"
	filterHeader    = "x-stream-filter-value"
)

// filter is which messages a consumer wants; the zero value is all. RabbitMQ leaves out whole
// chunks by it and so delivers more than what matches, which clients are told to be ready
// for; a chunk of one message makes it exact.
type filter struct {
	on         bool
	values     []string
	unfiltered bool // those without a value too
}

func parseFilter(arguments wire.Table) (filter, error) {
	v, _ := arguments.Get(filterArgument)
	f := filter{}
	switch v := v.(type) {
	case string:
		f.values = []string{v}
	case []any:
		for _, v := range v {
			if s, ok := v.(string); ok {
				f.values = append(f.values, s)
			}
		}
		if len(f.values) == 0 {
			return f, errors.New("there is no string in the array")
		}
	default:
		return f, nil // as RabbitMQ
	}
	f.on = true
	v, _ = arguments.Get(matchUnfiltered)
	f.unfiltered, _ = v.(bool)
	return f, nil
}

func (f *filter) matches(m *message.Message) bool {
	if !f.on {
		return true
	}
	v, err := wire.ViewProperties(m.Properties)
	if err != nil {
		return f.unfiltered
	}
	value, _ := v.Header(filterHeader)
	s, has := value.(string)
	if !has {
		return f.unfiltered
	}
	return slices.Contains(f.values, s)
}
