package management

import (
	"crypto/rand"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dormousemq/dormouse/internal/access"
	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/vhost"
)

// Source: https://www.rabbitmq.com/docs/monitoring#health-checks.

// checkCertificates finds certificates of listeners that expire within the given time.
func checkCertificates(h *Handler, r *request) (any, error) {
	within, err := strconv.Atoi(r.variables["within"])
	if err != nil {
		return nil, badRequest("Invalid expiration value.")
	}
	end := time.Now()
	switch r.variables["unit"] {
	case "days":
		end = end.AddDate(0, 0, within)
	case "weeks":
		end = end.AddDate(0, 0, 7*within)
	case "months":
		end = end.AddDate(0, within, 0)
	case "years":
		end = end.AddDate(within, 0, 0)
	default:
		return nil, badRequest("Time unit not recognised. Supported units: days, weeks, months, years.")
	}
	expired := []object{}
	for _, l := range h.listeners() {
		if l.Expires.IsZero() || l.Expires.After(end) {
			continue
		}
		host, port := ends(l.Address)
		expired = append(expired, object{
			{"name", l.Protocol}, {"host", host}, {"port", port}, {"expires_on", l.Expires.UTC().Format(time.DateTime)},
		})
	}
	if len(expired) > 0 {
		return nil, unhealthy("Certificates expiring", member{"expired", expired})
	}
	return healthy, nil
}

var healthy = object{{"status", "ok"}}

// unhealthy is the answer of a check that has failed, with what it has found.
func unhealthy(reason string, found ...member) error {
	return &failure{
		status: http.StatusServiceUnavailable, kind: "failed",
		reason: append(object{{"status", "failed"}, {"reason", reason}}, found...),
	}
}

// checkNothing is a check of something that cannot be wrong here: there is one node, all
// of whose virtual hosts and queues run, and it takes any number of connections.
func checkNothing(*Handler, *request) (any, error) { return healthy, nil }

func checkSingleNode(*Handler, *request) (any, error) {
	return object{{"status", "ok"}, {"reason", "single node cluster"}}, nil
}

func checkAlarms(h *Handler, _ *request) (any, error) {
	all := []object{}
	for _, resource := range h.Sessions.Alarms() {
		all = append(all, object{{"node", nodeName()}, {"resource", resource}})
	}
	if len(all) > 0 {
		return nil, unhealthy("There are alarms in effect in the cluster", member{"alarms", all})
	}
	return healthy, nil
}

func checkPort(h *Handler, r *request) (any, error) {
	wanted, err := strconv.Atoi(r.variables["port"])
	if err != nil {
		return nil, badRequest("Invalid port")
	}
	ports := []any{}
	for _, l := range h.listeners() {
		if tcp, ok := l.Address.(*net.TCPAddr); ok {
			if tcp.Port == wanted {
				return object{{"status", "ok"}, {"port", wanted}}, nil
			}
			ports = append(ports, tcp.Port)
		}
	}
	return nil, unhealthy("No active listener", member{"missing", wanted}, member{"ports", ports})
}

func checkProtocol(h *Handler, r *request) (any, error) {
	var active []string
	for _, l := range h.listeners() {
		active = append(active, l.Protocol)
	}
	slices.Sort(active)
	active = slices.Compact(active)
	missing := []string{}
	for wanted := range strings.SplitSeq(r.variables["protocol"], ",") {
		if !slices.Contains(active, protocolName(wanted)) {
			missing = append(missing, wanted)
		}
	}
	if len(missing) > 0 {
		return nil, unhealthy("No active listener", member{"missing", missing}, member{"protocols", active})
	}
	return object{{"status", "ok"}, {"protocols", active}}, nil
}

// protocolName is the name of a protocol among its aliases.
func protocolName(s string) string {
	switch s = strings.ToLower(s); s {
	case "amqp091", "amqp0.9.1", "amqp0-9-1":
		return "amqp"
	case "amqps", "amqp/tls", "amqp/ssl":
		return "amqp/ssl"
	case "management":
		return "http"
	}
	return s
}

const alivenessQueue = "aliveness-test"

// testAliveness declares a queue, publishes to it and gets the message.
func testAliveness(_ *Handler, r *request) (any, error) {
	for _, kind := range []access.Kind{access.Configure, access.Read} {
		if err := r.mayQueue(kind, alivenessQueue); err != nil {
			return nil, err
		}
	}
	if err := r.mayExchange(access.Write, ""); err != nil {
		return nil, err
	}
	_, err := r.host.DeclareQueue(r.http.Context(), nil, vhost.QueueDeclare{Name: alivenessQueue})
	if err != nil {
		return nil, err
	}
	said := rand.Text()
	m, err := message.New("", alivenessQueue, []byte{0, 0}, []byte(said))
	if err != nil {
		return nil, err
	}
	if _, err := r.host.Publish(m, nil, 0); err != nil {
		return nil, err
	}
	for {
		d, found, err := r.host.Get(nil, alivenessQueue, &queue.Consumer{NoAck: true})
		switch {
		case err != nil:
			return nil, err
		case !found:
			return nil, unhealthy("the message that was published did not arrive")
		}
		if string(d.Message.Body) == said {
			return healthy, nil
		}
	}
}
