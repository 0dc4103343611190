package rabbittest

import (
	"context"
	"crypto/rand"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// managementOffset is how far above its AMQP port a broker's HTTP API listens: 15672 beside 5672.
const managementOffset = 10000

// Vhost makes a virtual host for this test alone and returns the AMQP URL that leads into it.
// It is deleted with all its queues when the test ends.
func (b Broker) Vhost(t testing.TB) string {
	t.Helper()
	u, err := url.Parse(b.URL)
	if err != nil {
		t.Fatalf("%s: %v", Variable, err)
	}
	name := "test-" + strings.ToLower(rand.Text()[:12])
	b.manage(t, u, http.MethodPut, "/api/vhosts/"+name, "")
	t.Cleanup(func() { b.manage(t, u, http.MethodDelete, "/api/vhosts/"+name, "") })
	b.manage(t, u, http.MethodPut, "/api/permissions/"+name+"/"+url.PathEscape(u.User.Username()),
		`{"configure": ".*", "write": ".*", "read": ".*"}`)
	into := *u
	into.Path = "/" + name
	return into.String()
}

// manage sends one request to the HTTP API and fails the test if the broker refuses it.
func (b Broker) manage(t testing.TB, broker *url.URL, method, path, body string) {
	t.Helper()
	port, err := strconv.Atoi(broker.Port())
	if err != nil {
		port = 5672
	}
	// Not the test's context: it is cancelled before the cleanups run.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	api := "http://" + net.JoinHostPort(broker.Hostname(), strconv.Itoa(port+managementOffset))
	request, err := http.NewRequestWithContext(ctx, method, api+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	password, _ := broker.User.Password()
	request.SetBasicAuth(broker.User.Username(), password)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("the management API of RabbitMQ %s: %v", b.Version, err)
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		text, _ := io.ReadAll(response.Body)
		t.Fatalf("the management API of RabbitMQ %s: %s %s: %s: %s", b.Version, method, path, response.Status, text)
	}
}
