package management

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Global parameters are kept in the store as JSON, under this prefix and their names.
const parameterKey = "global-parameter\x00"

// clusterNameKey is the global parameter that the name of the cluster is.
const clusterNameKey = "cluster_name"

// globals are the global parameters by name.
func (h *Handler) globals() (map[string]any, error) {
	definitions, err := h.Store.Definitions(parameterKey)
	if err != nil {
		return nil, err
	}
	all := map[string]any{}
	for key, value := range definitions {
		decoder := json.NewDecoder(bytes.NewReader(value))
		decoder.UseNumber()
		var v any
		if err := decoder.Decode(&v); err != nil {
			return nil, err
		}
		all[strings.TrimPrefix(key, parameterKey)] = v
	}
	return all, nil
}

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
	all, err := h.globals()
	if err != nil {
		return nil, err
	}
	return plain(r, slices.Sorted(maps.Keys(all)), func(name string) object { return shownGlobal(name, all[name]) })
}

func getGlobal(h *Handler, r *request) (any, error) {
	all, err := h.globals()
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
	existed, err := h.setGlobal(r, r.variables["name"], body["value"])
	if err != nil {
		return nil, err
	}
	return madeUnless(existed), nil
}

func (h *Handler) setGlobal(r *request, name string, value any) (existed bool, err error) {
	h.parameters.Lock()
	defer h.parameters.Unlock()
	all, err := h.globals()
	if err != nil {
		return false, err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return false, err
	}
	_, existed = all[name]
	tx := h.Store.Begin()
	tx.SetDefinition(parameterKey+name, text)
	return existed, tx.Wait(r.http.Context())
}

func deleteGlobal(h *Handler, r *request) (any, error) {
	h.parameters.Lock()
	defer h.parameters.Unlock()
	all, err := h.globals()
	if err != nil {
		return nil, err
	}
	if _, has := all[r.variables["name"]]; !has {
		return nil, notFound()
	}
	tx := h.Store.Begin()
	tx.DeleteDefinition(parameterKey + r.variables["name"])
	return nil, tx.Wait(r.http.Context())
}

// clusterName is the name that was given to the cluster, or that of its node.
func (h *Handler) clusterName() string {
	all, err := h.globals()
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
	_, err = h.setGlobal(r, clusterNameKey, name)
	return nil, err
}

// noParameters is the list of parameters: there are no components, such as federation
// and shovels, that would have any.
func noParameters(*Handler, *request) (any, error) { return []object{}, nil }

func getParameter(*Handler, *request) (any, error) { return nil, notFound() }

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
