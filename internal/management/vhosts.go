package management

import (
	"slices"

	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/vhost"
)

// visible are the virtual hosts that a user sees: those with a permission, or all.
func (h *Handler) visible(r *request) []*vhost.Host {
	all := h.Hosts.All()
	if sees(r.user) {
		return all
	}
	return h.entered(r)
}

// entered are the virtual hosts that a user has a permission in.
func (h *Handler) entered(r *request) []*vhost.Host {
	return slices.DeleteFunc(h.Hosts.All(), func(host *vhost.Host) bool { return !r.user.MayEnter(host.Name()) })
}

// hostsOf are the virtual hosts that a list is about: that of the path, or all that the
// user may enter.
func (h *Handler) hostsOf(r *request) []*vhost.Host {
	if r.host != nil {
		return []*vhost.Host{r.host}
	}
	return h.entered(r)
}

func listVHosts(h *Handler, r *request) (any, error) {
	totals := h.Sessions.Totals()
	return listing[*vhost.Host]{
		items: h.visible(r),
		name:  (*vhost.Host).Name,
		show:  func(host *vhost.Host) object { return h.shownHost(host, totals[host.Name()]) },
	}.answer(r)
}

// namedHost is the virtual host that a path names by {name}.
func (h *Handler) namedHost(r *request) (*vhost.Host, error) {
	if host := h.Hosts.Host(r.variables["name"]); host != nil {
		return host, nil
	}
	return nil, notFound()
}

func getVHost(h *Handler, r *request) (any, error) {
	host, err := h.namedHost(r)
	if err != nil {
		return nil, err
	}
	return h.shownHost(host, h.Sessions.Totals()[host.Name()]), nil
}

func describedHost(d vhost.Description) object {
	tags := append([]string{}, d.Tags...)
	return object{{"description", d.Description}, {"tags", tags}, {"default_queue_type", defaultType(d)}}
}

func defaultType(d vhost.Description) string {
	if d.DefaultQueueType == "" {
		return string(queue.Classic)
	}
	return d.DefaultQueueType
}

func putVHost(h *Handler, r *request) (any, error) {
	body, err := r.body()
	if err != nil {
		return nil, err
	}
	name := r.variables["name"]
	old := h.Hosts.Host(name)
	d := vhost.Description{Name: name}
	if d.Description, err = body.text("description"); err != nil {
		return nil, err
	}
	if d.Tags, err = body.tags("tags"); err != nil {
		return nil, err
	}
	if d.DefaultQueueType, err = body.text("default_queue_type"); err != nil {
		return nil, err
	}
	if d.DefaultQueueType == "undefined" { // of old definitions and tools
		d.DefaultQueueType = ""
	}
	if old != nil && d.DefaultQueueType == "" {
		d.DefaultQueueType = old.Description().DefaultQueueType
	}
	if t := d.DefaultQueueType; t != "" && !slices.Contains(queueTypes, t) {
		return nil, badRequest(t + " is not a valid queue type")
	}
	if err := h.Hosts.Create(r.http.Context(), d); err != nil {
		return nil, err
	}
	if old != nil {
		return nil, nil
	}
	// As in RabbitMQ, whoever makes a virtual host may use it.
	return created(""), h.permitAll(r, name)
}

var queueTypes = []string{"classic", "quorum", "stream"}

func deleteVHost(h *Handler, r *request) (any, error) {
	existed, err := h.Hosts.Delete(r.http.Context(), r.variables["name"])
	if err == nil && !existed {
		err = notFound()
	}
	return nil, err
}

// startVHost has nothing to do: a virtual host that is there runs.
func startVHost(h *Handler, r *request) (any, error) {
	if r.variables["node"] != nodeName() {
		return nil, badRequest("Object of node " + r.variables["node"] + " not found")
	}
	_, err := h.namedHost(r)
	return nil, err
}
