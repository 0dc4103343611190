package management

import (
	"maps"
	"slices"

	"github.com/dormousemq/dormouse/internal/policy"
	"github.com/dormousemq/dormouse/internal/vhost"
)

// placed is a policy of a virtual host.
type placed struct {
	policy.Policy
	vhost string
}

func shownPolicy(p placed) object {
	applyTo := p.ApplyTo
	if applyTo == "" {
		applyTo = "all"
	}
	return object{
		{"vhost", p.vhost}, {"name", p.Name}, {"pattern", p.Pattern}, {"apply-to", applyTo},
		{"definition", shownDefinition(p.Definition)}, {"priority", p.Priority},
	}
}

func shownDefinition(d policy.Definition) object {
	o := object{}
	for _, key := range slices.Sorted(maps.Keys(d)) {
		o.add(key, shownTerm(d[key]))
	}
	return o
}

// shownTerm is what JSON had said.
func shownTerm(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return shownDefinition(v)
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = shownTerm(e)
		}
		return list
	case float64:
		return number(v)
	}
	return shownValue(v)
}

func policiesOf(k policy.Kind, hosts []*vhost.Host) (all []placed) {
	for _, host := range hosts {
		for _, p := range host.Policies(k) {
			all = append(all, placed{p, host.Name()})
		}
	}
	return all
}

// policyEndpoints are those of one kind of policy, below a path.
func policyEndpoints(path string, k policy.Kind, change rule) []endpoint {
	list := func(h *Handler, r *request) (any, error) { return plain(r, policiesOf(k, h.hostsOf(r)), shownPolicy) }
	return []endpoint{
		at(path, anyManager, reads(list)),
		at(path+"/{vhost}", anyManager, reads(list)),
		at(path+"/{vhost}/{name}", anyManager, map[string]action{
			"GET":    func(_ *Handler, r *request) (any, error) { return getPolicy(k, r) },
			"PUT":    func(_ *Handler, r *request) (any, error) { return putPolicy(k, r) },
			"DELETE": func(_ *Handler, r *request) (any, error) { return deletePolicy(k, r) },
		}).changedBy(change),
	}
}

func getPolicy(k policy.Kind, r *request) (any, error) {
	p, has := policyOf(k, r)
	if !has {
		return nil, notFound()
	}
	return shownPolicy(p), nil
}

func deletePolicy(k policy.Kind, r *request) (any, error) {
	if _, has := policyOf(k, r); !has {
		return nil, notFound()
	}
	return nil, r.host.DeletePolicy(r.http.Context(), k, r.variables["name"])
}

func policyOf(k policy.Kind, r *request) (placed, bool) {
	for _, p := range r.host.Policies(k) {
		if p.Name == r.variables["name"] {
			return placed{p, r.host.Name()}, true
		}
	}
	return placed{}, false
}

func putPolicy(k policy.Kind, r *request) (any, error) {
	body, err := r.body()
	if err != nil {
		return nil, err
	}
	if err := body.needs("pattern", "definition"); err != nil {
		return nil, err
	}
	p, err := policy.Parse(k, r.variables["name"], body)
	if err != nil {
		return nil, err
	}
	_, existed := policyOf(k, r)
	if err := r.host.PutPolicy(r.http.Context(), p); err != nil {
		return nil, err
	}
	return madeUnless(existed), nil
}
