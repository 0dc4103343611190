package management

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/dormousemq/dormouse/internal/access"
	"github.com/dormousemq/dormouse/internal/policy"
	"github.com/dormousemq/dormouse/internal/vhost"
)

func shownLimits(limits map[string]int) object {
	o := object{}
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		o.add(name, limits[name])
	}
	return o
}

func listHostLimits(h *Handler, r *request) (any, error) {
	limited := slices.DeleteFunc(h.hostsOf(r), func(host *vhost.Host) bool { return len(host.Description().Limits) == 0 })
	return plain(r, limited, func(host *vhost.Host) object {
		return object{{"vhost", host.Name()}, {"value", shownLimits(host.Description().Limits)}}
	})
}

// limit reads a limit out of the body; refuse makes an error of why it is wrong.
func (r *request) limit(terms string, refuse func(reason string) error, names ...string) (name string, limit int, err error) {
	body, err := r.body()
	if err != nil {
		return "", 0, err
	}
	if err := body.needs("value"); err != nil {
		return "", 0, err
	}
	name = r.variables["limit"]
	if !slices.Contains(names, name) {
		return "", 0, refuse(fmt.Sprintf("Unrecognised terms [{<<%q>>,%s}] in %s", name, erlang(body["value"]), terms))
	}
	number, _ := body["value"].(json.Number)
	if limit, err = strconv.Atoi(number.String()); err != nil {
		return "", 0, refuse(fmt.Sprintf("%s should be a number, actually was %s", name, erlang(body["value"])))
	}
	return name, limit, nil
}

// erlang is a value of JSON as Erlang writes it.
func erlang(v any) string {
	if s, ok := v.(string); ok {
		return "<<" + strconv.Quote(s) + ">>"
	}
	return string(appendJSON(nil, v))
}

func putHostLimit(h *Handler, r *request) (any, error) {
	name, limit, err := r.limit("limits", func(reason string) error { return badRequest("Validation failed\n\n" + reason + "\n") }, vhost.MaxConnections, vhost.MaxQueues)
	if err != nil {
		return nil, err
	}
	_, err = h.Hosts.ChangeLimits(r.http.Context(), r.host.Name(), func(limits map[string]int) { limits[name] = limit })
	return nil, err
}

func deleteHostLimit(h *Handler, r *request) (any, error) {
	_, err := h.Hosts.ChangeLimits(r.http.Context(), r.host.Name(), func(limits map[string]int) { delete(limits, r.variables["limit"]) })
	return nil, err
}

func listUserLimits(h *Handler, r *request) (any, error) {
	limited := slices.DeleteFunc(h.Users.Users(), func(u access.User) bool {
		wanted, named := r.variables["user"]
		return len(u.Limits) == 0 || named && u.Name != wanted
	})
	return plain(r, limited, func(u access.User) object { return object{{"user", u.Name}, {"value", shownLimits(u.Limits)}} })
}

func putUserLimit(h *Handler, r *request) (any, error) {
	name, limit, err := r.limit("user-limits", func(reason string) error { return badRequest(reason) }, "max-connections", "max-channels")
	if err != nil {
		return nil, err
	}
	return nil, h.changeUserLimits(r, func(limits map[string]int) { limits[name] = limit })
}

func deleteUserLimit(h *Handler, r *request) (any, error) {
	return nil, h.changeUserLimits(r, func(limits map[string]int) { delete(limits, r.variables["limit"]) })
}

func (h *Handler) changeUserLimits(r *request, change func(limits map[string]int)) error {
	u, known := h.Users.User(r.variables["user"])
	if !known {
		return badRequest([]any{"no_such_user", r.variables["user"]})
	}
	u.Limits = maps.Clone(u.Limits)
	if u.Limits == nil {
		u.Limits = map[string]int{}
	}
	change(u.Limits)
	return h.Users.PutUser(r.http.Context(), u)
}

// parameter is what RabbitMQ keeps as a parameter of a component.
type parameter struct {
	component, vhost, name string
	value                  any
}

// The components of parameters that there are. Those of federation and shovels are not.
const (
	limitsComponent = "vhost-limits"
	limitsParameter = "limits"
)

func shownParameter(p parameter) object {
	return object{{"value", p.value}, {"vhost", p.vhost}, {"component", p.component}, {"name", p.name}}
}

func (h *Handler) parametersOf(r *request) (all []parameter) {
	for _, host := range h.hostsOf(r) {
		for _, p := range host.Policies(policy.Operator) {
			shown := shownPolicy(placed{p, host.Name()})
			all = append(all, parameter{string(policy.Operator), host.Name(), p.Name, shown.only([]string{"pattern", "apply-to", "definition", "priority"})})
		}
		if limits := host.Description().Limits; len(limits) > 0 {
			all = append(all, parameter{limitsComponent, host.Name(), limitsParameter, shownLimits(limits)})
		}
	}
	wanted, named := r.variables["component"]
	return slices.DeleteFunc(all, func(p parameter) bool { return named && p.component != wanted })
}

func listParameters(h *Handler, r *request) (any, error) {
	return plain(r, h.parametersOf(r), shownParameter)
}

func getParameter(h *Handler, r *request) (any, error) {
	for _, p := range h.parametersOf(r) {
		if p.name == r.variables["name"] {
			return shownParameter(p), nil
		}
	}
	return nil, notFound()
}

// putParameter knows no component whose parameters are not set at a path of their own.
func putParameter(_ *Handler, r *request) (any, error) {
	body, err := r.body()
	if err != nil {
		return nil, err
	}
	if err := body.needs("value"); err != nil {
		return nil, err
	}
	return nil, badRequest("Validation failed\n\ncomponent " + r.variables["component"] + " not found\n")
}

func deleteParameter(*Handler, *request) (any, error) { return nil, notFound() }
