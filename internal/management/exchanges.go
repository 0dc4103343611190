package management

import (
	"slices"

	"github.com/dormousemq/dormouse/internal/access"
	"github.com/dormousemq/dormouse/internal/vhost"
)

// defaultExchange is what paths call the exchange without a name.
const defaultExchange = "amq.default"

// placedExchange is an exchange and where it is.
type placedExchange struct {
	*vhost.Exchange
	host *vhost.Host
}

func listExchanges(h *Handler, r *request) (any, error) {
	var all []placedExchange
	for _, host := range h.hostsOf(r) {
		for _, x := range host.Exchanges() {
			all = append(all, placedExchange{x, host})
		}
	}
	p := h.samples.now()
	return listing[placedExchange]{
		items: all,
		name:  func(x placedExchange) string { return x.Name },
		show:  func(x placedExchange) object { return shownExchange(x, p) },
	}.answer(r)
}

func shownExchange(x placedExchange, p *period) object {
	o := object{
		{"arguments", shown(x.Arguments)}, {"auto_delete", x.AutoDelete}, {"durable", x.Durable}, {"internal", x.Internal},
	}
	if in, out := x.PublishedIn(), x.PublishedOut(); in > 0 {
		a, b, stats := p.from.exchanges[x.Exchange], p.to.exchanges[x.Exchange], object{}
		counted(&stats, "publish_in", in, a.in, b.in, p)
		counted(&stats, "publish_out", out, a.out, b.out, p)
		o.add("message_stats", stats)
	}
	o = append(o, object{{"name", x.Name}, {"type", x.Type}, {"vhost", x.host.Name()}}...)
	if effective, _ := x.host.ExchangePolicy(x.Name); effective.Policy != "" {
		o.add("policy", effective.Policy)
	}
	return o
}

// exchangeName is the exchange that a variable of the path names.
func (r *request) exchangeName(variable string) string {
	if name := r.variables[variable]; name != defaultExchange {
		return name
	}
	return ""
}

// namedExchange is the exchange that a path names.
func (r *request) namedExchange() (placedExchange, error) {
	if x := r.host.Exchange(r.exchangeName("name")); x != nil {
		return placedExchange{x, r.host}, nil
	}
	return placedExchange{}, notFound()
}

func getExchange(h *Handler, r *request) (any, error) {
	x, err := r.namedExchange()
	if err != nil {
		return nil, err
	}
	o := shownExchange(x, h.samples.now())
	// From which channels and to which queues messages go is not counted.
	o.add("incoming", []object{})
	o.add("outgoing", []object{})
	return o.columns(r), nil
}

func putExchange(_ *Handler, r *request) (any, error) {
	body, err := r.body()
	if err != nil {
		return nil, err
	}
	d := vhost.ExchangeDeclare{Name: r.exchangeName("name")}
	if d.Type, err = body.text("type"); err != nil {
		return nil, err
	}
	if _, has := body["type"]; !has {
		d.Type = "direct"
	}
	if !slices.ContainsFunc(vhost.ExchangeTypes(), func(t vhost.ExchangeType) bool { return t.Name == d.Type }) {
		return nil, badRequest("invalid exchange type '" + d.Type + "'")
	}
	for name, at := range map[string]*bool{"durable": &d.Durable, "auto_delete": &d.AutoDelete, "internal": &d.Internal} {
		if *at, err = body.flag(name); err != nil {
			return nil, err
		}
	}
	arguments, err := body.object("arguments")
	if err != nil {
		return nil, err
	}
	if d.Arguments, err = tableOf(arguments); err != nil {
		return nil, err
	}
	existed := r.host.Exchange(d.Name) != nil
	if err := r.mayExchange(access.Configure, d.Name); err != nil {
		return nil, err
	}
	if !existed {
		if err := r.mayForward(r.mayExchange, d.Name, d.Arguments, "alternate-exchange"); err != nil {
			return nil, err
		}
	}
	if err := r.host.DeclareExchange(r.http.Context(), d); err != nil {
		return nil, err
	}
	return madeUnless(existed), nil
}

func deleteExchange(_ *Handler, r *request) (any, error) {
	x, err := r.namedExchange()
	if err != nil {
		return nil, err
	}
	if err := r.mayExchange(access.Configure, x.Name); err != nil {
		return nil, err
	}
	return nil, r.host.DeleteExchange(r.http.Context(), x.Name, r.is("if-unused"))
}
