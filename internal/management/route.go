package management

import (
	"net/url"
	"slices"
	"strings"
)

// endpoint is what can be done at one path.
type endpoint struct {
	path    string // below /api, with variables in braces
	may     rule   // who may use it
	methods map[string]action
	change  rule // who may do more than look
}

// action answers a request: an object or a list of them, created, or nil if there is
// nothing to say.
type action func(h *Handler, r *request) (any, error)

// created says that there is something new, and where; the place may be empty.
type created string

// methodOrder is the order of methods in the header Allow, as in RabbitMQ.
var methodOrder = []string{"HEAD", "GET", "PUT", "POST", "DELETE", "OPTIONS"}

// allowed is the value of the header Allow.
func (e *endpoint) allowed() string {
	all := []string{"OPTIONS"}
	for method := range e.methods {
		all = append(all, method)
		if method == "GET" {
			all = append(all, "HEAD")
		}
	}
	slices.SortFunc(all, func(a, b string) int { return slices.Index(methodOrder, a) - slices.Index(methodOrder, b) })
	return strings.Join(all, ", ")
}

// routes finds endpoints by path, segment by segment: what a path says literally goes
// before a variable.
type routes struct {
	literal  map[string]*routes
	variable *routes
	endpoint *endpoint
	names    []string // of the endpoint's variables
}

func newRoutes(endpoints []endpoint) *routes {
	root := &routes{}
	for i := range endpoints {
		root.add(&endpoints[i])
	}
	return root
}

func (r *routes) add(e *endpoint) {
	var names []string
	for segment := range strings.SplitSeq(strings.TrimPrefix(e.path, "/"), "/") {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			names = append(names, strings.TrimSuffix(name, "}"))
			if r.variable == nil {
				r.variable = &routes{}
			}
			r = r.variable
			continue
		}
		if r.literal == nil {
			r.literal = map[string]*routes{}
		}
		if r.literal[segment] == nil {
			r.literal[segment] = &routes{}
		}
		r = r.literal[segment]
	}
	r.endpoint, r.names = e, names
}

// find returns the endpoint of a path that is still escaped, and the values of its
// variables; nil if there is none.
func (r *routes) find(path string) (*endpoint, map[string]string) {
	path = strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/")
	var segments []string
	for segment := range strings.SplitSeq(path, "/") {
		plain, err := url.PathUnescape(segment)
		if err != nil {
			return nil, nil
		}
		segments = append(segments, plain)
	}
	found, values := r.match(segments)
	if found == nil {
		return nil, nil
	}
	variables := make(map[string]string, len(values))
	for i, name := range found.names {
		variables[name] = values[i]
	}
	return found.endpoint, variables
}

func (r *routes) match(segments []string) (found *routes, values []string) {
	if len(segments) == 0 {
		if r.endpoint == nil {
			return nil, nil
		}
		return r, nil
	}
	if next := r.literal[segments[0]]; next != nil {
		if found, values = next.match(segments[1:]); found != nil {
			return found, values
		}
	}
	if r.variable == nil {
		return nil, nil
	}
	found, values = r.variable.match(segments[1:])
	return found, append([]string{segments[0]}, values...)
}
