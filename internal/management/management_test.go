package management_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dormousemq/dormouse/internal/access"
	"github.com/dormousemq/dormouse/internal/clock"
	"github.com/dormousemq/dormouse/internal/management"
	"github.com/dormousemq/dormouse/internal/session"
	"github.com/dormousemq/dormouse/internal/store"
	"github.com/dormousemq/dormouse/internal/vhost"
)

// newHandler is the API of a broker that nobody is connected to.
func newHandler(t testing.TB) *management.Handler {
	t.Helper()
	s, err := store.OpenMemory(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	o := management.Options{Store: s, Logger: log}
	if o.Hosts, err = vhost.Open(vhost.Options{Store: s, Clock: clock.Real(), Logger: log}); err != nil {
		t.Fatal(err)
	}
	if o.Users, err = access.Open(access.Options{Store: s, Logger: log, VHost: func(name string) bool { return o.Hosts.Host(name) != nil }}); err != nil {
		t.Fatal(err)
	}
	if err := o.Users.Seed(t.Context(), nil, vhost.Default); err != nil {
		t.Fatal(err)
	}
	o.Sessions = session.NewServer(session.Options{Host: o.Hosts.Host, Directory: o.Users, Logger: log})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		o.Hosts.Close()
	})
	return management.New(o)
}

// request is one of guest, from this machine.
func request(method, path, body string) *http.Request {
	r := httptest.NewRequest(method, "http://127.0.0.1:15672/api"+path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:40000"
	r.SetBasicAuth(access.Guest, "guest")
	return r
}

func do(t testing.TB, h http.Handler, r *http.Request) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(body)
}

func TestGuestOnlyFromThisMachine(t *testing.T) {
	h := newHandler(t)
	for _, c := range []struct {
		peer, host string
		want       int
	}{
		{"127.0.0.1:1", "127.0.0.1:15672", 200},
		{"127.0.0.1:1", "localhost:15672", 200},
		{"127.0.0.1:1", "localhost", 200},
		{"[::1]:1", "[::1]:15672", 200},
		{"192.0.2.1:1", "127.0.0.1:15672", 401},
		{"127.0.0.1:1", "rebound.example.org:15672", 401},
		{"127.0.0.1:1", "localhost.example.org", 401},
	} {
		r := request("GET", "/whoami", "")
		r.RemoteAddr, r.Host = c.peer, c.host
		if got, _ := do(t, h, r); got != c.want {
			t.Errorf("from %s for %s: %d, want %d", c.peer, c.host, got, c.want)
		}
	}
}

func TestOtherOrigins(t *testing.T) {
	h := newHandler(t)
	for header, values := range map[string]map[string]int{
		"Origin":         {"http://evil.example.org": 403, "http://127.0.0.1:15672": 201},
		"Sec-Fetch-Site": {"cross-site": 403, "same-site": 403, "same-origin": 204, "none": 204},
	} {
		for value, want := range values {
			r := request("PUT", "/queues/%2F/q", "{}")
			r.Header.Set(header, value)
			if got, body := do(t, h, r); got != want && !(want != 403 && got < 300) {
				t.Errorf("%s: %s gives %d %s, want %d", header, value, got, body, want)
			}
		}
	}
}

func TestBodyLimit(t *testing.T) {
	h := newHandler(t)
	text := `{"arguments":{"x":"` + strings.Repeat("x", 20_000_000) + `"}}`
	if got, body := do(t, h, request("PUT", "/queues/%2F/q", text)); got != 400 || !strings.Contains(body, "body size limit") {
		t.Errorf("a body that is too long gives %d %s", got, body)
	}
	if got, _ := do(t, h, request("GET", "/queues/%2F/q", "")); got != 404 {
		t.Errorf("the queue was made all the same: %d", got)
	}
}

func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t)
		go h.Run(t.Context())
		if got, body := do(t, h, request("PUT", "/queues/%2F/q", "{}")); got != 201 {
			t.Fatal(got, body)
		}
		synctest.Wait() // the first sample
		for range 10 {
			if got, body := do(t, h, request("POST", "/exchanges/%2F/amq.default/publish",
				`{"routing_key":"q","payload":"m","payload_encoding":"string","properties":{}}`)); got != 200 {
				t.Fatal(got, body)
			}
		}
		rate := func() (of struct {
			Messages int                    `json:"messages"`
			Details  struct{ Rate float64 } `json:"messages_details"`
		}) {
			_, body := do(t, h, request("GET", "/queues/%2F/q", ""))
			if err := json.Unmarshal([]byte(body), &of); err != nil {
				t.Fatal(err)
			}
			return of
		}
		if q := rate(); q.Messages != 10 || q.Details.Rate != 0 {
			t.Errorf("before the next sample: %+v", q)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if q := rate(); q.Messages != 10 || q.Details.Rate != 2 {
			t.Errorf("10 messages in 5 s: %+v", q)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if q := rate(); q.Details.Rate != 0 {
			t.Errorf("5 s later: %+v", q)
		}
	})
}

// Ten thousand queues are listed page by page in well under a second.
func BenchmarkListQueues(b *testing.B) {
	h := newHandler(b)
	for i := range 10_000 {
		if got, body := do(b, h, request("PUT", fmt.Sprintf("/queues/%%2F/q%05d", i), "{}")); got != 201 {
			b.Fatal(got, body)
		}
	}
	for name, query := range map[string]string{
		"all": "", "page": "?page=50&page_size=100", "sorted": "?page=50&page_size=100&sort=messages&sort_reverse=true", "found": "?page=1&name=q0999&use_regex=true",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if got, body := do(b, h, request("GET", "/queues"+query, "")); got != 200 {
					b.Fatal(got, body)
				}
			}
		})
	}
}
