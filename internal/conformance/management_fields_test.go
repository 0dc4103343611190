package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// shape is the members of JSON objects by path, and their types. "x[].y" is the member y of the elements of the list x.
type shape map[string]string

func shapeOf(v any) shape {
	s := shape{}
	s.add("", v)
	return s
}

func (s shape) add(path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			at := strings.TrimPrefix(path+"."+name, ".")
			s[at] = typeName(inner)
			s.add(at, inner)
		}
	case []any:
		for _, inner := range v {
			s.add(path+"[]", inner)
		}
	}
}

func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "truth"
	case []any:
		return "list"
	case map[string]any:
		return "object"
	}
	return "number"
}

// wanted makes a shape of lists of paths, by type.
func wanted(lists map[string]string) shape {
	s := shape{}
	for kind, paths := range lists {
		for path := range strings.FieldsSeq(paths) {
			s[path] = kind
		}
	}
	return s
}

// A tolerance is paths that some brokers do not have, and why that is fine. "x*" is all that begin with x.
type tolerance struct{ paths, because string }

func (t tolerance) has(path string) bool {
	for p := range strings.FieldsSeq(t.paths) {
		if prefix, open := strings.CutSuffix(p, "*"); p == path || open && strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}

// Fields compares what members there are, and of which types.
func (c *C) Fields(what string, v any, want shape, tolerated ...tolerance) {
	c.Helper()
	got := shapeOf(v)
	if c.version.before(v43) { // which shows some things not yet, and some no more: only types are compared
		maps.DeleteFunc(got, func(path, kind string) bool { return want[path] == "" || kind == "list" && want[path] == "object" })
		maps.DeleteFunc(want, func(path, _ string) bool { return got[path] == "" })
	}
	c.Equal("the members of "+what, strings.Join(membersThatDiffer(got, want, append(tolerated, everywhere...)), "\n"), "")
}

// everywhere is what may differ anywhere.
var everywhere = []tolerance{
	{"garbage_collection* reductions* context_switches* gc_bytes* gc_num_details* proc_* metrics_gc* crypto_lib_version", "it is of Erlang's virtual machine"},
	{"io_* mnesia* msg_store* queue_index* ra_open* open_files* db_dir cached_segments pending_raft_commands publishers", "it is of how RabbitMQ keeps messages"},
	{"message_stats* idle_since", "it depends on what has happened"},
	{"exclusive_consumer_tag policy operator_policy", "they are null or missing when there is none"},
}

// membersThatDiffer says how a shape differs from what is wanted.
func membersThatDiffer(got, want shape, tolerated []tolerance) (all []string) {
	paths := maps.Clone(got)
	maps.Copy(paths, want)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		fine := slices.ContainsFunc(tolerated, func(t tolerance) bool { return t.has(path) })
		if got[path] != want[path] && !fine {
			all = append(all, fmt.Sprintf("%s is %q, want %q", path, got[path], want[path]))
		}
	}
	return all
}
