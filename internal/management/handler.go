package management

import (
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dormousemq/dormouse/internal/access"
	"github.com/dormousemq/dormouse/internal/session"
	"github.com/dormousemq/dormouse/internal/store"
	"github.com/dormousemq/dormouse/internal/vhost"
)

// Options make a Handler. Hosts, Users, Sessions, Store and Logger must be set.
type Options struct {
	Hosts    *vhost.Hosts
	Users    *access.Directory
	Sessions *session.Server
	// Store keeps the global parameters and the name of the cluster.
	Store  *store.Store
	Logger *slog.Logger
	// Listeners, if not nil, are the sockets that the broker listens on.
	Listeners func() []Listener
	// Memory and Disk, if not nil, are what the broker uses and has left.
	Memory func() Memory
	Disk   func() Disk
}

// Listener is a socket that the broker listens on.
type Listener struct {
	Protocol string // "amqp", "amqp/ssl", "http"
	Address  net.Addr
	Expires  time.Time // of the first of its certificates, zero if it has none
}

// TLS tells whether what goes over it is encrypted.
func (l Listener) TLS() bool { return strings.HasSuffix(l.Protocol, "/ssl") }

// Memory is what the broker uses, and from where on it blocks publishers, in bytes; a
// limit of 0 is none.
type Memory struct{ Used, Limit uint64 }

// Disk is the room on the disk of the data folder, and below which publishers are
// blocked, in bytes.
type Disk struct{ Free, Limit uint64 }

// Handler answers requests below /api/. Call Run beside it for rates.
type Handler struct {
	Options
	started time.Time
	routes  *routes
	guard   http.CrossOriginProtection
	samples samples
	logins  logins
	asked   chan struct{} // closed by the first request
	asking  sync.Once
	globals *Globals
}

// New returns a handler.
func New(o Options) *Handler {
	return &Handler{Options: o, started: time.Now(), routes: newRoutes(endpoints()), asked: make(chan struct{}), globals: NewGlobals(o.Store)}
}

// maxBody is the largest body of a request, in bytes, as in RabbitMQ.
const maxBody = 20_000_000

// NewServer returns an HTTP server for h, which cuts clients that are slow.
func NewServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		WriteTimeout:      2 * time.Minute,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// ServeHTTP answers one request. Requests that a web page of another origin has made are
// refused, and so are those of guest that do not come from this machine.
func (h *Handler) ServeHTTP(w http.ResponseWriter, httpRequest *http.Request) {
	h.asking.Do(func() { close(h.asked) })
	header := w.Header()
	header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-cache")
	header.Set("Vary", "accept, accept-encoding, origin")
	if err := h.guard.Check(httpRequest); err != nil {
		h.Logger.Warn("management request refused: it comes from a web page of another origin", "peer", httpRequest.RemoteAddr, "origin", httpRequest.Header.Get("Origin"))
		refuse(w, &failure{http.StatusForbidden, "forbidden", "requests from web pages of other origins are refused"})
		return
	}
	path, ok := strings.CutPrefix(httpRequest.URL.EscapedPath(), "/api")
	if !ok {
		refuse(w, &failure{http.StatusNotFound, "Object Not Found", "Not Found"})
		return
	}
	e, variables := h.routes.find(path)
	if e == nil {
		refuse(w, &failure{http.StatusNotFound, "Object Not Found", "Not Found"})
		return
	}
	header.Set("Allow", e.allowed())
	method := httpRequest.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if method == http.MethodOptions {
		w.WriteHeader(http.StatusOK)
		return
	}
	do := e.methods[method]
	if do == nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	r := &request{http: httpRequest, variables: variables}
	answer, err := h.answer(e, do, r, w)
	if err != nil {
		f := asFailure(err)
		if f.status >= http.StatusInternalServerError && f.kind != "failed" {
			h.Logger.Error("management request failed", "method", httpRequest.Method, "path", httpRequest.URL.Path, "error", err)
		}
		refuse(w, f)
		return
	}
	download(w, r)
	reply(w, answer)
}

func (h *Handler) answer(e *endpoint, do action, r *request, w http.ResponseWriter) (any, error) {
	var err error
	if r.user, err = h.login(r.http); err != nil {
		return nil, err
	}
	if err := h.allows(e, r); err != nil {
		return nil, err
	}
	r.http.Body = http.MaxBytesReader(w, r.http.Body, maxBody)
	return do(h, r)
}

// reply writes an answer.
func reply(w http.ResponseWriter, answer any) {
	switch a := answer.(type) {
	case nil:
		w.WriteHeader(http.StatusNoContent)
	case created:
		if a != "" {
			w.Header().Set("Location", string(a))
		}
		w.WriteHeader(http.StatusCreated)
	case rawJSON:
		writeText(w, http.StatusOK, a)
	default:
		write(w, http.StatusOK, answer)
	}
}

func write(w http.ResponseWriter, status int, answer any) {
	writeText(w, status, appendJSON(nil, answer))
}

func writeText(w http.ResponseWriter, status int, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // a client that has gone is no concern of ours
}

// refuse writes why a request is refused.
func refuse(w http.ResponseWriter, f *failure) {
	if f.kind == "" {
		w.Header().Set("WWW-Authenticate", `Basic realm="RabbitMQ Management"`)
		w.WriteHeader(f.status)
		return
	}
	write(w, f.status, f.body())
}
