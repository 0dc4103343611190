package management

import (
	"github.com/dormousemq/dormouse/internal/access"
	"github.com/dormousemq/dormouse/internal/vhost"
	"github.com/dormousemq/dormouse/internal/wire"
)

// What an operation needs is what the same operation needs over AMQP. Source:
// https://www.rabbitmq.com/docs/access-control#permissions.

func (r *request) mayQueue(kind access.Kind, name string) error {
	if !r.user.MayQueue(kind, r.host.Name(), name) {
		return accessRefused()
	}
	return nil
}

func (r *request) mayExchange(kind access.Kind, name string) error {
	if !r.user.MayExchange(kind, r.host.Name(), name) {
		return accessRefused()
	}
	return nil
}

// mayTopic checks a routing key, if there are topic permissions for the exchange.
func (r *request) mayTopic(kind access.Kind, exchange string, keys ...string) error {
	allowed := r.user.Topics(kind, r.host.Name(), exchange)
	x := r.host.Exchange(exchange)
	if allowed == nil || x == nil || x.Type != "topic" {
		return nil
	}
	for _, key := range keys {
		if !allowed.Match(key) {
			return accessRefused()
		}
	}
	return nil
}

// mayForward checks that messages may go on to the exchange that an argument names.
func (r *request) mayForward(may func(access.Kind, string) error, from string, arguments wire.Table, argument string) error {
	v, _ := arguments.Get(argument)
	to, ok := v.(string)
	if !ok {
		return nil
	}
	if err := may(access.Read, from); err != nil {
		return err
	}
	return r.mayExchange(access.Write, to)
}

// mayBind checks a binding that is to be made or removed.
func (r *request) mayBind(b vhost.Binding) error {
	may := r.mayQueue
	if b.ToExchange {
		may = r.mayExchange
	}
	if err := may(access.Write, b.Destination); err != nil {
		return err
	}
	if err := r.mayExchange(access.Read, b.Source); err != nil {
		return err
	}
	return r.mayTopic(access.Read, b.Source, b.Key)
}
