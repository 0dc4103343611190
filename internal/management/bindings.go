package management

import (
	"crypto/md5"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"

	"github.com/dormousemq/dormouse/internal/vhost"
)

// placedBinding is a binding and where it is.
type placedBinding struct {
	vhost.Binding
	vhost string
}

func (b placedBinding) destinationType() string {
	if b.ToExchange {
		return "exchange"
	}
	return "queue"
}

func shownBinding(b placedBinding) object {
	return object{
		{"source", b.Source}, {"vhost", b.vhost}, {"destination", b.Destination}, {"destination_type", b.destinationType()},
		{"routing_key", b.Key}, {"arguments", shown(b.Arguments)}, {"properties_key", propertiesKey(b.Binding)},
	}
}

// propertiesKey tells the bindings between two ends apart: by the routing key, and a
// hash of the arguments if there are any. The hash is not RabbitMQ's, which is made of
// how Erlang writes the arguments down.
func propertiesKey(b vhost.Binding) string {
	if len(b.Arguments) == 0 {
		if b.Key == "" {
			return "~"
		}
		return quoteKey(b.Key)
	}
	sum := md5.Sum(b.Arguments.AppendTo(nil))
	return quoteKey(b.Key) + "~" + base64.RawURLEncoding.EncodeToString(sum[:4])
}

// quoteKey escapes all but letters, digits, dot, minus and underscore; a space is a plus.
func quoteKey(key string) string {
	return strings.ReplaceAll(url.QueryEscape(key), "~", "%7E")
}

// sameKey tells whether a path means a properties key: what is escaped in the key may be
// escaped there in another way.
func sameKey(path, key string) bool {
	name, hash, _ := strings.Cut(path, "~")
	wantedName, wantedHash, _ := strings.Cut(key, "~")
	a, err := url.QueryUnescape(name)
	b, _ := url.QueryUnescape(wantedName) // quoteKey has made it
	return path == key || err == nil && a == b && hash == wantedHash
}

func placeBindings(host *vhost.Host, all []vhost.Binding) []placedBinding {
	placed := make([]placedBinding, len(all))
	for i, b := range all {
		placed[i] = placedBinding{b, host.Name()}
	}
	return placed
}

func listBindings(h *Handler, r *request) (any, error) {
	var all []placedBinding
	for _, host := range h.hostsOf(r) {
		all = append(all, placeBindings(host, host.Bindings())...)
	}
	return plain(r, all, shownBinding)
}

func bindingsOfQueue(_ *Handler, r *request) (any, error) {
	return plain(r, placeBindings(r.host, r.host.BindingsToQueue(r.variables["name"])), shownBinding)
}

func bindingsFromExchange(_ *Handler, r *request) (any, error) {
	return plain(r, placeBindings(r.host, r.host.BindingsFrom(r.exchangeName("name"))), shownBinding)
}

func bindingsToExchange(_ *Handler, r *request) (any, error) {
	return plain(r, placeBindings(r.host, r.host.BindingsToExchange(r.exchangeName("name"))), shownBinding)
}

// between are the bindings between the two ends that a path names.
func between(r *request) ([]placedBinding, error) {
	var all []vhost.Binding
	switch r.variables["kind"] {
	case "q":
		all = r.host.BindingsToQueue(r.variables["destination"])
	case "e":
		all = r.host.BindingsToExchange(r.exchangeName("destination"))
	default:
		return nil, notFound()
	}
	source := r.exchangeName("source")
	all = slices.DeleteFunc(all, func(b vhost.Binding) bool { return b.Source != source })
	return placeBindings(r.host, all), nil
}

func listBetween(_ *Handler, r *request) (any, error) {
	all, err := between(r)
	if err != nil {
		return nil, err
	}
	return plain(r, all, shownBinding)
}

func postBinding(_ *Handler, r *request) (any, error) {
	body, err := r.body()
	if err != nil {
		return nil, err
	}
	b := vhost.Binding{Bind: vhost.Bind{Source: r.exchangeName("source"), Destination: r.variables["destination"]}}
	switch r.variables["kind"] {
	case "q":
	case "e":
		b.ToExchange, b.Destination = true, r.exchangeName("destination")
	default:
		return nil, notFound()
	}
	if b.Key, err = body.text("routing_key"); err != nil {
		return nil, err
	}
	arguments, err := body.object("arguments")
	if err != nil {
		return nil, err
	}
	if b.Arguments, err = tableOf(arguments); err != nil {
		return nil, err
	}
	if err := r.mayBind(b); err != nil {
		return nil, err
	}
	if b.ToExchange {
		err = r.host.BindExchange(r.http.Context(), b.Bind)
	} else {
		err = r.host.BindQueue(r.http.Context(), nil, b.Bind)
	}
	if err != nil {
		return nil, err
	}
	return created(url.QueryEscape(r.variables["destination"]) + "/" + url.QueryEscape(propertiesKey(b))), nil
}

// namedBinding is the binding that a path names.
func namedBinding(r *request) (placedBinding, error) {
	all, err := between(r)
	if err != nil {
		return placedBinding{}, err
	}
	wanted := r.variables["properties"]
	i := slices.IndexFunc(all, func(b placedBinding) bool { return sameKey(wanted, propertiesKey(b.Binding)) })
	if i < 0 {
		return placedBinding{}, notFound()
	}
	return all[i], nil
}

func getBinding(_ *Handler, r *request) (any, error) {
	b, err := namedBinding(r)
	if err != nil {
		return nil, err
	}
	return shownBinding(b), nil
}

func deleteBinding(_ *Handler, r *request) (any, error) {
	b, err := namedBinding(r)
	if err != nil {
		return nil, err
	}
	if err := r.mayBind(b.Binding); err != nil {
		return nil, err
	}
	if b.ToExchange {
		return nil, r.host.UnbindExchange(r.http.Context(), b.Bind)
	}
	return nil, r.host.UnbindQueue(r.http.Context(), nil, b.Bind)
}
