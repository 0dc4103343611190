package management

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"

	"github.com/dormousemq/dormouse/internal/access"
)

// logins counts attempts to log in.
type logins struct{ succeeded, failed atomic.Uint64 }

// login finds out who makes a request.
func (h *Handler) login(r *http.Request) (*access.Identity, error) {
	name, password, ok := r.BasicAuth()
	if !ok {
		h.logins.failed.Add(1)
		return nil, errAnonymous()
	}
	identity, err := h.Users.Authenticate(name, password)
	if err == nil && name == access.Guest && !isLocal(r) {
		err = access.ErrRefused
	}
	if err != nil {
		h.logins.failed.Add(1)
		h.Logger.Warn("management login failed", "user", name, "peer", r.RemoteAddr, "reason", err)
		return nil, &failure{http.StatusUnauthorized, "not_authorized", "Not_Authorized"}
	}
	h.logins.succeeded.Add(1)
	return identity, nil
}

// isLocal tells whether a request comes from this machine and was meant for it. The
// password of guest is no secret: a web page whose name is made to stand for a loopback
// address could use it, but its requests carry that name.
func isLocal(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() {
		return false
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// rule says who may use an endpoint, by the user's tags.
type rule int

// The rules.
const (
	anyManager   rule = iota // who has one of the tags of the management API
	policymakers             // and may change policies and parameters
	monitors                 // and may look at connections of others and at nodes
	administrators
)

// The tags. Source: https://www.rabbitmq.com/docs/management#permissions.
const (
	tagManagement  = "management"
	tagPolicymaker = "policymaker"
	tagMonitoring  = "monitoring"
)

// satisfied tells whether a user may do what the rule is about, and what to say if not.
func (r rule) satisfied(u *access.Identity) (bool, string) {
	administrator := u.Has(access.Administrator)
	if !administrator && !u.Has(tagManagement) && !u.Has(tagPolicymaker) && !u.Has(tagMonitoring) {
		return false, "Not management user"
	}
	switch r {
	case policymakers:
		return administrator || u.Has(tagPolicymaker), "User not authorised to access object"
	case monitors:
		return administrator || u.Has(tagMonitoring), "Not monitor user"
	case administrators:
		return administrator, "Not administrator user"
	}
	return true, ""
}

// allows checks the rule of an endpoint and finds the virtual host of its path.
func (h *Handler) allows(e *endpoint, r *request) error {
	if ok, reason := e.may.satisfied(r.user); !ok {
		return notAuthorised(reason)
	}
	if method := r.http.Method; method != http.MethodGet && method != http.MethodHead {
		if ok, reason := e.change.satisfied(r.user); !ok {
			return notAuthorised(reason)
		}
	}
	name, named := r.variables[vhostVariable]
	if !named {
		return nil
	}
	r.host = h.Hosts.Host(name)
	switch {
	case r.host == nil && r.http.Method == http.MethodPut:
		return unknown("vhost_not_found")
	case r.host == nil:
		return notFound()
	case e.may != administrators && !r.user.MayEnter(name):
		return unknown("Not Found")
	}
	return nil
}

// sees tells whether a user sees all virtual hosts, and the connections of all users.
func sees(u *access.Identity) bool {
	ok, _ := monitors.satisfied(u)
	return ok
}

func listAttempts(h *Handler, r *request) (any, error) {
	if r.variables["node"] != nodeName() {
		return nil, notFound()
	}
	succeeded, failed := h.logins.succeeded.Load(), h.logins.failed.Load()
	return []object{{
		{"protocol", "http"}, {"auth_attempts", succeeded + failed}, {"auth_attempts_failed", failed}, {"auth_attempts_succeeded", succeeded},
	}}, nil
}

func resetAttempts(h *Handler, r *request) (any, error) {
	if r.variables["node"] != nodeName() {
		return nil, notFound()
	}
	h.logins.succeeded.Store(0)
	h.logins.failed.Store(0)
	return nil, nil
}
