package management

import (
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"time"

	"github.com/dormousemq/dormouse/internal/session"
)

func listNodes(h *Handler, r *request) (any, error) {
	return plain(r, []*Handler{h}, (*Handler).shownNode)
}

func getNode(h *Handler, r *request) (any, error) {
	if r.variables["node"] != nodeName() {
		return nil, notFound()
	}
	return h.shownNode().columns(r), nil
}

// shownNode is this process as RabbitMQ shows a node. Erlang's processes are goroutines
// here. What an Erlang node has and a Go program has not is left out.
func (h *Handler) shownNode() object {
	var m Memory
	if h.Memory != nil {
		m = h.Memory()
	}
	alarms := h.Sessions.Alarms()
	now, p := h.churnNow(), h.samples.now()
	mechanisms := []object{}
	for _, m := range []struct{ name, description string }{
		{"AMQPLAIN", "QPid AMQPLAIN mechanism"},
		{"PLAIN", "SASL PLAIN authentication mechanism"},
		{"EXTERNAL", "TLS peer verification-based authentication plugin. Used in combination with the EXTERNAL SASL mechanism."},
	} {
		mechanisms = append(mechanisms, object{{"name", m.name}, {"description", m.description}, {"enabled", true}})
	}
	o := object{
		{"partitions", []string{}}, {"os_pid", strconv.Itoa(os.Getpid())},
		{"mem_limit", m.Limit}, {"mem_alarm", slices.Contains(alarms, "memory")}, {"disk_free_alarm", slices.Contains(alarms, "disk")},
		{"rates_mode", "basic"}, {"uptime", time.Since(h.started).Milliseconds()}, {"processors", runtime.NumCPU()},
		{"exchange_types", exchangeTypes()}, {"auth_mechanisms", mechanisms},
		{"applications", []object{{{"name", "dormouse"}, {"description", "Dormouse"}, {"version", session.Version}}}},
		{"contexts", h.contexts()}, {"log_files", []string{}}, {"config_files", []string{}}, {"enabled_plugins", []string{"rabbitmq_management"}},
		{"net_ticktime", 60}, {"mem_calculation_strategy", "allocated"},
		{"rabbitmq_version", session.Version}, {"erlang_version", ""}, {"erlang_full_version", runtime.Version()},
		{"name", nodeName()}, {"running", true}, {"type", "disc"}, {"being_drained", false},
		{"mem_used", m.Used}, {"proc_used", runtime.NumGoroutine()}, {"run_queue", runnable()},
		{"gc_num", collections()},
	}
	if open, limit, known := descriptors(); known {
		o.add("fd_used", open)
		o.add("fd_total", limit)
	}
	o.add("sockets_used", len(h.Sessions.Connections()))
	if h.Disk != nil {
		d := h.Disk()
		o.add("disk_free", d.Free)
		o.add("disk_free_limit", d.Limit)
	}
	return append(append(o, shownChurn(now, p.from.churn, p.to.churn, p)...), member{"cluster_links", []object{}})
}

// runnable is how many goroutines wait for a processor.
func runnable() uint64 { return metric("/sched/goroutines/runnable:goroutines") }

// collections is how often garbage was collected.
func collections() uint64 { return metric("/gc/cycles/total:gc-cycles") }

// metric reads a number of the Go runtime, 0 if it does not have it.
func metric(name string) uint64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return s[0].Value.Uint64()
}

func nodeMemory(h *Handler, r *request) (any, error) {
	if r.variables["node"] != nodeName() {
		return nil, notFound()
	}
	s := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"},
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(s)
	total := s[2].Value.Uint64()
	if h.Memory != nil {
		total = h.Memory().Used
	}
	return object{{"memory", object{
		{"heap_objects", s[0].Value.Uint64()}, {"stacks", s[1].Value.Uint64()}, {"allocated_unused", s[3].Value.Uint64()},
		{"strategy", "allocated"}, {"total", object{{"erlang", uint64(0)}, {"rss", total}, {"allocated", total}}},
	}}}, nil
}
