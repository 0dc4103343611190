package management

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/dormousemq/dormouse/internal/definitions"
)

// Global parameters are kept in the store as JSON, under this prefix and their names.
const parameterKey = "global-parameter\x00"

// clusterNameKey is the global parameter that the name of the cluster is.
const clusterNameKey = "cluster_name"

func shownGlobal(name string, value any) object {
	return object{{"name", name}, {"value", shownJSON(value)}}
}

// shownJSON is what a JSON text has said.
func shownJSON(v any) any {
	switch v := v.(type) {
	case map[string]any:
		o := object{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			o.add(name, shownJSON(v[name]))
		}
		return o
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = shownJSON(e)
		}
		return list
	}
	return v
}

func listGlobals(h *Handler, r *request) (any, error) {
	all, err := h.globals.values()
	if err != nil {
		return nil, err
	}
	return plain(r, slices.Sorted(maps.Keys(all)), func(name string) object { return shownGlobal(name, all[name]) })
}

func getGlobal(h *Handler, r *request) (any, error) {
	all, err := h.globals.values()
	if err != nil {
		return nil, err
	}
	value, has := all[r.variables["name"]]
	if !has {
		return nil, notFound()
	}
	return shownGlobal(r.variables["name"], value), nil
}

func putGlobal(h *Handler, r *request) (any, error) {
	body, err := r.body()
	if err != nil {
		return nil, err
	}
	if err := body.needs("value"); err != nil {
		return nil, err
	}
	existed, err := h.setGlobal(r.http.Context(), r.variables["name"], body["value"])
	if err != nil {
		return nil, err
	}
	return madeUnless(existed), nil
}

func (h *Handler) setGlobal(ctx context.Context, name string, value any) (existed bool, err error) {
	text, err := json.Marshal(value)
	if err != nil {
		return false, err
	}
	return h.globals.set(ctx, definitions.GlobalParameter{Name: name, Value: text})
}

func deleteGlobal(h *Handler, r *request) (any, error) {
	existed, err := h.globals.remove(r.http.Context(), r.variables["name"])
	if err == nil && !existed {
		err = notFound()
	}
	return nil, err
}

// clusterName is the name that was given to the cluster, or that of its node.
func (h *Handler) clusterName() string {
	all, err := h.globals.values()
	if err != nil {
		return nodeName()
	}
	if name, ok := all[clusterNameKey].(string); ok {
		return name
	}
	return nodeName()
}

func getClusterName(h *Handler, _ *request) (any, error) {
	return object{{"name", h.clusterName()}}, nil
}

func putClusterName(h *Handler, r *request) (any, error) {
	body, err := r.body()
	if err != nil {
		return nil, err
	}
	if err := body.needs("name"); err != nil {
		return nil, err
	}
	name, err := body.text("name")
	if err != nil {
		return nil, err
	}
	_, err = h.setGlobal(r.http.Context(), clusterNameKey, name)
	return nil, err
}
