package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// managementOffset is how far above its AMQP port a RabbitMQ's HTTP API listens.
const managementOffset = 10000

// An API is a user of the management HTTP API of the broker under test.
type API struct {
	c              *C
	name, password string
}

// An Answer is that of the management API.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// String is the status and the body, on one line each.
func (a Answer) String() string {
	if a.Body == "" {
		return strconv.Itoa(a.Status)
	}
	return fmt.Sprintf("%d %s", a.Status, a.Body)
}

// Manage is the management API as the user of the broker's URL, an administrator.
func (c *C) Manage() *API {
	c.Helper()
	uri, err := amqp.ParseURI(c.url)
	c.OK(err)
	return c.ManageAs(uri.Username, uri.Password)
}

// ManageAs is the management API as another user.
func (c *C) ManageAs(name, password string) *API { return &API{c, name, password} }

// Do makes a request: a path below /api, whose variables are escaped as with [Path], and a
// body that becomes JSON, nil for none.
func (a *API) Do(method, path string, body any) Answer {
	a.c.Helper()
	var text io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		a.c.OK(err)
		text = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(a.c.Context(), method, a.c.managementURL()+"/api"+path, text)
	a.c.OK(err)
	request.SetBasicAuth(a.name, a.password)
	request.Header.Set("Content-Type", "application/json")
	return a.c.roundTrip(request)
}

func (c *C) roundTrip(request *http.Request) Answer {
	c.Helper()
	var response *http.Response
	if c.manager != nil {
		if request.RemoteAddr = "127.0.0.1:1"; request.Body == nil {
			request.Body = http.NoBody // as in a server
		}
		recorder := httptest.NewRecorder()
		c.manager.ServeHTTP(recorder, request)
		response = recorder.Result()
	} else {
		var err error
		response, err = http.DefaultClient.Do(request)
		c.OK(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	c.OK(err)
	return Answer{response.StatusCode, response.Header, c.plain(string(answer))}
}

// Must is Do, and ends the case when the broker refuses.
func (a *API) Must(method, path string, body any) Answer {
	a.c.Helper()
	answer := a.Do(method, path, body)
	if answer.Status >= 300 {
		a.c.Fatalf("%s %s: %v", method, a.c.plain(path), answer)
	}
	return answer
}

// Get is the answer to a GET as encoding/json decodes it.
func (a *API) Get(path string) any {
	a.c.Helper()
	var v any
	a.c.OK(json.Unmarshal([]byte(a.Must(http.MethodGet, path, nil).Body), &v))
	return v
}

// Path is a path whose segments are escaped.
func Path(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteString("/" + url.PathEscape(s))
	}
	return b.String()
}

// Becomes waits until a look at the broker shows what is wanted: RabbitMQ's management
// API is some seconds behind. It fails the case when that takes too long.
func (c *C) Becomes(what string, look func() any, want any) {
	c.Helper()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	late := time.After(patience)
	for c.plain(show(look())) != show(resolve(want, c.version)) {
		select {
		case <-again.C:
		case <-late:
			c.Equal(what, look(), want)
			return
		}
	}
}

// VHost makes a virtual host for the case alone, and returns its name and the URL that
// leads into it.
func (c *C) VHost(alias string) (name, into string) {
	c.Helper()
	name = c.Unique(alias)
	api := c.Manage()
	api.Must(http.MethodPut, Path("vhosts", name), map[string]any{})
	c.cleanLater(http.MethodDelete, Path("vhosts", name))
	uri, err := url.Parse(c.url)
	c.OK(err)
	api.Must(http.MethodPut, Path("permissions", name, uri.User.Username()), map[string]string{"configure": ".*", "write": ".*", "read": ".*"})
	uri.Path = "/" + name
	return name, uri.String()
}

// User makes a user for the case alone, whose password is the name, and returns the name.
func (c *C) User(alias, tags string) string {
	c.Helper()
	name := c.Unique(alias)
	c.Manage().Must(http.MethodPut, Path("users", name), map[string]string{"password": name, "tags": tags})
	c.cleanLater(http.MethodDelete, Path("users", name))
	return name
}

// cleanLater makes a request when the case is over, whatever becomes of it.
func (c *C) cleanLater(method, path string) {
	api := c.Manage()
	c.Cleanup(func() {
		request, err := http.NewRequest(method, c.managementURL()+"/api"+path, nil)
		if err != nil {
			c.Errorf("clean up: %v", err)
			return
		}
		request.SetBasicAuth(api.name, api.password)
		if a := c.roundTrip(request); a.Status >= 300 && a.Status != http.StatusNotFound {
			c.Errorf("clean up: %s %s: %v", method, c.plain(path), a)
		}
	})
}

func (c *C) managementURL() string {
	c.Helper()
	if c.manager != nil {
		return "http://127.0.0.1:15672"
	}
	uri, err := amqp.ParseURI(c.url)
	c.OK(err)
	return "http://" + net.JoinHostPort(uri.Host, strconv.Itoa(uri.Port+managementOffset))
}
