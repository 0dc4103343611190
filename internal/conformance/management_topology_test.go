package conformance

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func managementTopologyCases() []Case {
	return []Case{
		{"management/queues", managementQueues},
		{"management/queues/delete", managementQueuesDelete},
		{"management/queues/list", managementQueuesList},
		{"management/queues/get", managementQueuesGet},
		{"management/exchanges", managementExchanges},
		{"management/exchanges/publish", managementPublish},
		{"management/bindings", managementBindings},
		{"management/consumers", managementConsumers},
		{"management/connections", managementConnections},
		{"management/overview", managementOverview},
		{"management/health", managementHealth},
		{"management/limits", managementLimits},
		{"management/definitions", managementDefinitions},
	}
}

// inVHost is the management API, and a virtual host for the case alone.
func (c *C) inVHost() (api *API, vhost string) {
	c.Helper()
	vhost, _ = c.VHost("v")
	return c.Manage(), vhost
}

// in is the broker's URL for a virtual host.
func (c *C) in(vhost string) string {
	c.Helper()
	u, err := url.Parse(c.url)
	c.OK(err)
	u.Path, u.RawPath = "/"+vhost, "/"+url.PathEscape(vhost)
	return u.String()
}

func decode(text string, to any) error { return json.Unmarshal([]byte(text), to) }

func badRequest(reason string) string { return `400 {"error":"bad_request","reason":"` + reason + `"}` }

func managementQueues(c *C) {
	api, vhost := c.inVHost()
	queue := func(name string) string { return Path("queues", vhost, name) }
	put := func(name string, b body) Answer { return api.Do("PUT", queue(name), b) }
	c.Equal("before", api.Do("GET", queue("q"), nil), notFound)
	c.Equal("made", put("q", body{"durable": true}), "201")
	c.Equal("made again", put("q", body{"durable": true}), "204")
	c.Equal("otherwise", put("q", body{"durable": false}),
		badRequest("inequivalent arg 'durable' for queue 'q' in vhost 'v': received 'false' but current is 'true'"))
	c.Equal("a text that is no TTL", put("r", body{"durable": true, "arguments": body{"x-message-ttl": "x"}}),
		badRequest(`invalid arg 'x-message-ttl' for queue 'r' in vhost 'v': \"expected integer, got longstr\"`))
	c.Equal("a negative TTL", put("r", body{"durable": true, "arguments": body{"x-message-ttl": -1}}),
		badRequest(`invalid arg 'x-message-ttl' for queue 'r' in vhost 'v': {value_negative,-1}`))
	c.Equal("a type that is none", put("r", body{"durable": true, "arguments": body{"x-queue-type": "z"}}),
		badRequest(`invalid arg 'x-queue-type' for queue 'r' in vhost 'v': \"unsupported queue type 'z'\"`))
	c.Equal("arguments as PHP has them", put("r", body{"durable": true, "arguments": []string{}}), "201")
	c.Equal("a reserved name", put("amq.q", body{"durable": true}), `401 {"error":"not_authorised","reason":"Access refused."}`)
	c.Equal("a long name", put(strings.Repeat("x", 256), body{"durable": true}), badRequest(`queue should be less than 255 bytes, actually was 256\n`))
	c.Equal("without a body", api.Do("PUT", queue("s"), nil), "201")
	c.Equal("no virtual host", api.Do("PUT", Path("queues", vhost+"x", "q"), body{}), `404 {"error":"not_found","reason":"vhost_not_found"}`)
	c.Equal("an action", api.Do("POST", queue("q")+"/actions", body{"action": "z"}), `400 {"error":"bad_request","reason":["unknown","z"]}`)
	c.Equal("no action", api.Do("POST", queue("q")+"/actions", body{}), badRequest("[{key_missing,action}]"))
	c.Equal("bindings", api.Get(queue("q")+"/bindings"), []any{body{
		"source": "", "vhost": "v", "destination": "q", "destination_type": "queue", "routing_key": "q", "arguments": body{}, "properties_key": "q",
	}})

	quorum := body{"durable": true, "arguments": body{"x-queue-type": "quorum"}}
	c.Equal("a quorum queue", put("k", quorum), "201")
	for name, want := range map[string]shape{"q": classicShape(), "k": quorumShape()} {
		var q any
		c.Becomes("statistics of "+name, func() any { // are shown a while after the queue was made
			q = api.Get(queue(name))
			return at(q, "messages") != nil && at(q, "consumers") != nil
		}, true)
		c.Fields("the queue "+name, q, want, tolerance{
			"head_message_timestamp delayed_retry message_bytes_dlx messages_delayed messages_ready_ram messages_unacknowledged_ram", "quorum queues count other things inside",
		})
	}
}

func managementQueuesDelete(c *C) {
	api, vhost := c.inVHost()
	queue := Path("queues", vhost, "q")
	c.Equal("none", api.Do("DELETE", queue, nil), notFound)
	c.Equal("the messages of none", api.Do("DELETE", queue+"/contents", nil), notFound)
	api.Must("PUT", queue, body{"durable": true})
	api.Must("POST", Path("exchanges", vhost, "amq.default", "publish"), posted("q", "m"))
	c.Equal("if it is empty", api.Do("DELETE", queue+"?if-empty=true", nil), badRequest("queue 'q' in vhost 'v' not empty"))
	c.Equal("the messages", api.Do("DELETE", queue+"/contents", nil), "204")
	ch := c.ChannelOn(c.dial(c.in(vhost)))
	_, err := ch.Consume("q", "tag", false, false, false, false, nil)
	c.OK(err)
	c.Equal("if it is unused", api.Do("DELETE", queue+"?if-unused=true", nil), badRequest("queue 'q' in vhost 'v' in use"))
	c.OK(ch.Cancel("tag", false))
	c.Equal("if both", api.Do("DELETE", queue+"?if-empty=true&if-unused=true", nil), "204")
	api.Must("PUT", queue, body{"durable": true, "arguments": body{"x-queue-type": "stream"}})
	c.Equal("the messages of a stream", api.Do("DELETE", queue+"/contents", nil),
		badRequest("queue.purge not supported by stream queues queue 'q' in vhost 'v'"))
	c.Equal("deleted", api.Do("DELETE", queue, nil), "204")
}

func managementQueuesList(c *C) {
	api, vhost := c.inVHost()
	for _, name := range []string{"b", "c", "a", "aa"} {
		api.Must("PUT", Path("queues", vhost, name), body{"durable": true, "arguments": body{"x-max-length": 3}})
	}
	list := func(query string) Answer { return api.Do("GET", Path("queues", vhost)+"?"+query, nil) }
	c.Equal("columns", api.Get(Path("queues", vhost)+"?columns=name,durable&sort=name&name=b"), []any{
		body{"name": "a", "durable": true}, body{"name": "aa", "durable": true}, body{"name": "b", "durable": true}, body{"name": "c", "durable": true},
	})
	c.Equal("of one queue", api.Get(Path("queues", vhost, "a")+"?columns=name,arguments.x-max-length"),
		changedIn(v40, body{"name": "a", "arguments": body{"x-max-length": 3}}, body{"name": "a", "arguments": body{"x-max-length": 3, "x-queue-type": "classic"}}))
	c.Equal("in reverse", list("columns=name&sort=name&sort_reverse=true"), `200 [{"name":"c"},{"name":"b"},{"name":"aa"},{"name":"a"}]`)
	c.Equal("a page", list("columns=name&sort=name&page=2&page_size=3"),
		`200 {"filtered_count":4,"item_count":1,"items":[{"name":"c"}],"page":2,"page_count":2,"page_size":3,"total_count":4}`)
	c.Equal("by name", list("columns=name&sort=name&page=1&name=A"),
		`200 {"filtered_count":2,"item_count":2,"items":[{"name":"a"},{"name":"aa"}],"page":1,"page_count":1,"page_size":100,"total_count":4}`)
	c.Equal("by a pattern", list("columns=name&sort=name&page=1&name=%5E%5Bbc%5D&use_regex=true"),
		`200 {"filtered_count":2,"item_count":2,"items":[{"name":"b"},{"name":"c"}],"page":1,"page_count":1,"page_size":100,"total_count":4}`)
	c.Equal("by nonsense", list("columns=name&page=1&name=%5E%5Bbc&use_regex=true"), changedIn(v43, badRequest("Pagination parameters are invalid"),
		`200 {"filtered_count":0,"item_count":0,"items":[],"page":1,"page_count":0,"page_size":100,"total_count":4}`))
	c.Equal("too far", list("page=9&page_size=2"), `400 {"error":"page_out_of_range","reason":"Page out of range, page: 9 page size: 2, len: 4"}`)
	c.Equal("no number", list("page=x"), badRequest("Pagination parameters are invalid"))
	invalid := func(what string) string {
		return `400 {"error":"invalid_pagination_parameters","reason":"Invalid pagination parameters: ` + what + `"}`
	}
	c.Equal("page 0", list("page=0"), invalid("page number 0, page size undefined"))
	c.Equal("a large page", list("page=1&page_size=501"), invalid("page number 1, page size 501"))
	c.Equal("an empty page", list("page=1&page_size=0"), invalid("page number 1, page size 0"))
	c.Equal("of no virtual host", api.Do("GET", Path("queues", vhost+"x"), nil), notFound)
}

// posted is what is posted to publish.
func posted(key, payload string) body {
	return body{"routing_key": key, "payload": payload, "payload_encoding": "string", "properties": body{}}
}

func managementQueuesGet(c *C) {
	api, vhost := c.inVHost()
	api.Must("PUT", Path("queues", vhost, "q"), body{"durable": true})
	publish := func(m body) { api.Must("POST", Path("exchanges", vhost, "amq.default", "publish"), m) }
	properties := body{
		"headers":       body{"n": 1, "s": "x", "b": true, "f": 1.5, "l": []any{1, "a"}, "o": body{"k": 2}},
		"delivery_mode": 2, "priority": 3, "expiration": "100000", "timestamp": 12345, "content_type": "text/plain", "message_id": "m", "user_id": "guest",
	}
	one := posted("q", "hi")
	one["properties"] = properties
	publish(one)
	publish(posted("q", "two"))
	publish(body{"routing_key": "q", "payload": "/w==", "payload_encoding": "base64", "properties": body{}})

	get := func(b body) Answer { return api.Do("POST", Path("queues", vhost, "q", "get"), b) }
	got := func(b body) any {
		var v any
		c.OK(decode(get(b).Body, &v))
		return v
	}
	shown := func(payload, encoding string, size, left int, redelivered bool, properties any) body {
		return body{
			"payload": payload, "payload_encoding": encoding, "payload_bytes": size, "message_count": left, "redelivered": redelivered,
			"exchange": "", "routing_key": "q", "properties": properties,
		}
	}
	none := []any{}
	c.Equal("given back", got(body{"count": 2, "ackmode": "ack_requeue_true", "encoding": "auto"}),
		[]any{shown("hi", "string", 2, 2, false, properties), shown("two", "string", 3, 1, false, none)})
	c.Equal("in base64, rejected", got(body{"count": 1, "ackmode": "reject_requeue_true", "encoding": "base64", "truncate": 1}),
		[]any{shown("aA==", "base64", 2, 2, true, properties)})
	c.Equal("as a text", got(body{"count": "1", "ackmode": "ack_requeue_true", "encoding": "auto", "truncate": 1}),
		[]any{shown("h", "string", 2, 2, true, properties)})
	c.Equal("nothing", get(body{"count": 0, "ackmode": "ack_requeue_true", "encoding": "auto"}), "200 []")
	c.Equal("taken", got(body{"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}), []any{shown("hi", "string", 2, 2, true, properties)})
	c.Equal("thrown away", got(body{"count": 1, "ackmode": "reject_requeue_false", "encoding": "auto"}), []any{shown("two", "string", 3, 1, true, none)})
	c.Equal("all", got(body{"count": -1, "ackmode": "ack_requeue_false", "encoding": "auto"}), []any{shown("/w==", "base64", 1, 0, false, none)})
	c.Equal("an empty queue", get(body{"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}), "200 []")

	c.Equal("no such mode", get(body{"count": 1, "ackmode": "z", "encoding": "auto"}), changedIn(v43, "500",
		badRequest("Invalid ackmode value: z. Valid values are: ack_requeue_true, ack_requeue_false, reject_requeue_true, reject_requeue_false")))
	c.Equal("no such encoding", get(body{"count": 1, "ackmode": "ack_requeue_true", "encoding": "z"}), badRequest("Unsupported encoding. Please use auto or base64."))
	c.Equal("no number", get(body{"count": "z", "ackmode": "ack_requeue_true", "encoding": "auto"}), `400 {"error":"bad_request","reason":["not_integer","z"]}`)
	for _, name := range []string{"count", "ackmode", "encoding"} {
		b := body{"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}
		delete(b, name)
		c.Equal("without "+name, get(b), badRequest("[{key_missing,"+name+"}]"))
	}
	c.Equal("no queue", api.Do("POST", Path("queues", vhost, "z", "get"), body{"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}),
		changedIn(v40, `404 {"error":"not_found","reason":"NOT_FOUND - no queue 'z' in vhost 'v'"}`, `404 {"error":"not_found","reason":"queue_not_found"}`))
	api.Must("PUT", Path("queues", vhost, "s"), body{"durable": true, "arguments": body{"x-queue-type": "stream"}})
	if c.version.before(v40) { // which now and then answers 500 for good
		return
	}
	c.Becomes("a stream", func() any {
		return api.Do("POST", Path("queues", vhost, "s", "get"), body{"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}).String()
	}, badRequest("540 basic.get not supported by stream queues queue 's' in vhost 'v'"))
}

func managementExchanges(c *C) {
	api, vhost := c.inVHost()
	exchange := func(name string) string { return Path("exchanges", vhost, name) }
	put := func(name string, b body) Answer { return api.Do("PUT", exchange(name), b) }
	c.Equal("before", api.Do("GET", exchange("x"), nil), notFound)
	c.Equal("made", put("x", body{"type": "topic", "durable": true}), "201")
	c.Equal("made again", put("x", body{"type": "topic", "durable": true}), "204")
	c.Equal("otherwise", put("x", body{"type": "fanout", "durable": true}),
		badRequest("inequivalent arg 'type' for exchange 'x' in vhost 'v': received 'fanout' but current is 'topic'"))
	c.Equal("a type that is none", put("y", body{"type": "z"}), badRequest("invalid exchange type 'z'"))
	c.Equal("without a type", put("d", body{"durable": true}), "201")
	c.Equal("a direct one", at(api.Get(exchange("d")), "type"), "direct")
	c.Equal("a reserved name", put("amq.z", body{"type": "topic"}), `401 {"error":"not_authorised","reason":"Access refused."}`)
	c.Equal("with arguments", put("h", body{"type": "headers", "auto_delete": true, "internal": true, "arguments": body{"alternate-exchange": "x", "n": 1}}), "201")
	h, _ := api.Get(exchange("h")).(body)
	c.Equal("who made it", h["user_who_performed_action"], whoMade(c))
	delete(h, "user_who_performed_action")
	c.Equal("shown", h, body{
		"arguments": body{"alternate-exchange": "x", "n": 1}, "auto_delete": true, "durable": false, "internal": true, "name": "h", "type": "headers",
		"vhost": "v", "incoming": []any{}, "outgoing": []any{},
	})
	c.Equal("listed", api.Do("GET", Path("exchanges", vhost)+"?columns=name,type&sort=name&page=3&page_size=4", nil),
		`200 {"filtered_count":10,"item_count":2,"items":[{"name":"h","type":"headers"},{"name":"x","type":"topic"}],"page":3,"page_count":3,"page_size":4,"total_count":10}`)
	c.Equal("deleted, a reserved one", api.Do("DELETE", exchange("amq.topic"), nil), `401 {"error":"not_authorised","reason":"Access refused."}`)
	api.Must("PUT", Path("queues", vhost, "q"), body{"durable": true})
	api.Must("POST", Path("bindings", vhost, "e", "x", "q", "q"), body{"routing_key": "k"})
	c.Equal("deleted if it is unused", api.Do("DELETE", exchange("x")+"?if-unused=true", nil), badRequest("exchange 'x' in vhost 'v' in use"))
	c.Equal("deleted", api.Do("DELETE", exchange("x"), nil), "204")
	c.Equal("deleted again", api.Do("DELETE", exchange("x"), nil), notFound)
}

// whoMade is the user that is said to have made an exchange.
func whoMade(c *C) any {
	if c.Deviates("who has declared an exchange is not kept") {
		return nil
	}
	return "guest"
}

func managementPublish(c *C) {
	api, vhost := c.inVHost()
	api.Must("PUT", Path("queues", vhost, "q"), body{"durable": true})
	post := func(change body) Answer {
		m := posted("q", "m")
		for name, v := range change {
			if m[name] = v; v == nil {
				delete(m, name)
			}
		}
		return api.Do("POST", Path("exchanges", vhost, "amq.default", "publish"), m)
	}
	c.Equal("routed", post(nil), `200 {"routed":true}`)
	c.Equal("not routed", post(body{"routing_key": "z"}), `200 {"routed":false}`)
	c.Equal("base64", post(body{"payload": "aGk=", "payload_encoding": "base64"}), `200 {"routed":true}`)
	c.Equal("no base64", post(body{"payload": "%%", "payload_encoding": "base64"}), `400 {"error":"bad_request","reason":["not_base64","%%"]}`)
	c.Equal("another encoding", post(body{"payload_encoding": "zip"}), `400 {"error":"bad_request","reason":["unsupported_encoding","zip"]}`)
	for _, name := range []string{"routing_key", "properties", "payload", "payload_encoding"} {
		c.Equal("without "+name, post(body{name: nil}), badRequest("[{key_missing,"+name+"}]"))
	}
	c.Equal("a payload that is no text", post(body{"payload": 5}), badRequest("payload_not_string"))
	for name, v := range map[string]any{"delivery_mode": "x", "priority": "4"} {
		c.Equal("the property "+name, post(body{"properties": body{name: v}}), `400 {"error":"bad_request","reason":["not_int","`+name+`"]}`)
	}
	c.Equal("a property that is no text", post(body{"properties": body{"content_type": 7}}), `400 {"error":"bad_request","reason":["not_string","content_type"]}`)
	c.Equal("another user", post(body{"properties": body{"user_id": "z"}}),
		badRequest("406 PRECONDITION_FAILED - user_id property set to 'z' but authenticated user was 'guest'"))
	c.Equal("no expiration", post(body{"properties": body{"expiration": "x"}}), badRequest("406 PRECONDITION_FAILED - invalid expiration 'x': no_integer"))
	c.Equal("no exchange", api.Do("POST", Path("exchanges", vhost, "z", "publish"), posted("q", "m")),
		changedIn(v40, badRequest("404 NOT_FOUND - no exchange 'z' in vhost 'v'"), `404 {"error":"not_found","reason":"exchange_not_found"}`))
}

func managementBindings(c *C) {
	api, vhost := c.inVHost()
	api.Must("PUT", Path("exchanges", vhost, "x"), body{"type": "topic"})
	api.Must("PUT", Path("queues", vhost, "q"), body{"durable": true})
	to := Path("bindings", vhost, "e", "x", "q", "q")
	place := func(b body) string {
		a := api.Must("POST", to, b)
		return a.String() + " " + a.Header.Get("Location")
	}
	c.Equal("a key", place(body{"routing_key": "a.b c~+/", "arguments": body{}}), "201 q/a.b%2Bc%257E%252B%252F")
	c.Equal("no key", place(body{}), "201 q/~")
	c.Equal("to an exchange", api.Do("POST", Path("bindings", vhost, "e", "x", "e", "amq.fanout"), body{"routing_key": "k"}), "201")
	c.Equal("to nothing", api.Do("POST", Path("bindings", vhost, "e", "x", "q", "z"), body{}), `404 {"error":"not_found","reason":"no queue 'z' in vhost 'v'"}`)
	c.Equal("of nothing", api.Do("POST", Path("bindings", vhost, "e", "z", "q", "q"), body{}), `404 {"error":"not_found","reason":"no exchange 'z' in vhost 'v'"}`)
	c.Equal("of the default exchange", api.Do("POST", Path("bindings", vhost, "e", "amq.default", "q", "q"), body{}), `401 {"error":"not_authorised","reason":"Access refused."}`)
	shown := func(destination, kind, key, properties string) body {
		return body{
			"source": "x", "vhost": "v", "destination": destination, "destination_type": kind, "routing_key": key, "arguments": body{}, "properties_key": properties,
		}
	}
	plain, named := shown("q", "queue", "", "~"), shown("q", "queue", "a.b c~+/", "a.b+c%7E%2B%2F")
	inner := shown("amq.fanout", "exchange", "k", "k")
	c.Equal("between them", api.Get(to), []any{plain, named})
	c.Equal("between exchanges", api.Get(Path("bindings", vhost, "e", "x", "e", "amq.fanout")), []any{inner})
	c.Equal("from it", api.Get(Path("exchanges", vhost, "x", "bindings", "source")), []any{inner, plain, named})
	c.Equal("to it", api.Get(Path("exchanges", vhost, "amq.fanout", "bindings", "destination")), []any{inner})
	c.Equal("from nothing", api.Do("GET", Path("exchanges", vhost, "z", "bindings", "source"), nil), "200 []")
	c.Equal("to nothing yet", api.Do("GET", Path("bindings", vhost, "e", "x", "q", "z"), nil), "200 []")
	c.Equal("of one key", api.Get(to+"/~"), plain)
	c.Equal("of another", api.Get(to+Path("a.b+c%7E%2B%2F")), named)
	c.Equal("escaped in another way", api.Get(to+Path("a.b%20c%7E%2B%2F")), named)
	c.Equal("of no key", api.Do("GET", to+"/z", nil), notFound)
	c.Equal("deleted, no key", api.Do("DELETE", to+"/z", nil), notFound)
	c.Equal("deleted", api.Do("DELETE", to+"/~", nil), "204")
	c.Equal("deleted again", api.Do("DELETE", to+"/~", nil), notFound)
	c.Equal("deleted, of the default exchange", api.Do("DELETE", Path("bindings", vhost, "e", "amq.default", "q", "q", "q"), nil),
		`401 {"error":"not_authorised","reason":"Access refused."}`)

	place(body{"routing_key": "k", "arguments": body{"n": 1}})
	place(body{"routing_key": "k", "arguments": body{"n": "1"}})
	all, _ := api.Get(to).([]any)
	c.Equal("with arguments", len(all), 3)
	for _, b := range all {
		key, _ := at(b, "properties_key").(string)
		c.Equal("shown", api.Get(to+Path(key)), b)
		c.Equal("deleted by its key", api.Do("DELETE", to+Path(key), nil), "204")
	}
	c.Equal("none left", api.Do("GET", to, nil), "200 []")
}

func managementHealth(c *C) {
	api, vhost := c.inVHost()
	check := func(name string) Answer { return api.Do("GET", "/health/checks/"+name, nil) }
	const ok = `200 {"status":"ok"}`
	for _, name := range []string{"alarms", "local-alarms", "certificate-expiration/1/weeks"} {
		c.Equal(name, check(name), ok)
	}
	for _, name := range []string{
		"is-in-service", "below-node-connection-limit", "ready-to-serve-clients", "metadata-store/initialized", "metadata-store/initialized/with-data",
		strings.TrimPrefix(Path("quorum-queues-without-elected-leaders", "vhost", vhost, "pattern", ".*"), "/"),
	} {
		c.Equal(c.plain(name), check(name), changedIn(v43, notFound, ok))
	}
	c.Equal("no time", check("certificate-expiration/x/weeks"), badRequest("Invalid expiration value."))
	c.Equal("no unit", check("certificate-expiration/1/x"), badRequest("Time unit not recognised. Supported units: days, weeks, months, years."))
	c.Equal("no port", check("port-listener/x").Status, 400)
	c.Equal("nobody there", check("port-listener/1").Status, http.StatusServiceUnavailable)
	c.Equal("AMQP", check("protocol-listener/amqp").Status, 200)
	mqtt := check("protocol-listener/mqtt")
	c.Equal("MQTT", mqtt.Status, http.StatusServiceUnavailable)
	var v any
	c.OK(decode(mqtt.Body, &v))
	c.Equal("why", at(v, "reason"), "No active listener")
	c.Equal("alive", api.Do("GET", Path("aliveness-test", vhost), nil), ok)
	c.Equal("not alive", api.Do("GET", Path("aliveness-test", vhost+"x"), nil), notFound)
	c.Equal("the version", api.Do("GET", "/version", nil).Status, changedIn(v40, 404, 200))
}

func managementConsumers(c *C) {
	api, vhost := c.inVHost()
	api.Must("PUT", Path("queues", vhost, "q"), body{"durable": true})
	ch := c.ChannelOn(c.dial(c.in(vhost)))
	c.OK(ch.Qos(7, 0, false))
	_, err := ch.Consume("q", "tag", false, false, false, false, amqp.Table{"x-priority": 2})
	c.OK(err)
	var all []any
	c.Becomes("consumers", func() any { // whose channel is known a while later
		all, _ = api.Get(Path("consumers", vhost)).([]any)
		return len(all) == 1 && at(all[0], "channel_details.number") != nil
	}, true)
	c.Fields("a consumer", all[0], consumerShape(), tolerance{"consumer_timeout", "it is not kept for each consumer"})
	for path, want := range map[string]any{
		"consumer_tag": "tag", "ack_required": true, "exclusive": false, "prefetch_count": 7, "arguments": body{"x-priority": 2}, "active": true,
		"activity_status": "up", "queue": body{"name": "q", "vhost": "v"}, "channel_details.number": 1, "channel_details.user": "guest",
	} {
		c.Equal(path, at(all[0], path), want)
	}
	c.Equal("of no virtual host", api.Do("GET", Path("consumers", vhost+"x"), nil), notFound)
}

func managementConnections(c *C) {
	api, vhost := c.inVHost()
	c.Equal("none", api.Do("GET", Path("connections", "none"), nil), notFound)
	c.Equal("closed, none", api.Do("DELETE", Path("connections", "none"), nil), notFound)
	c.Equal("no channel", api.Do("GET", Path("channels", "none"), nil), notFound)
	c.Equal("of nobody", api.Do("GET", Path("connections", "username", vhost), nil), "200 []")
	conn := c.dial(c.in(vhost))
	ch := c.ChannelOn(conn)
	c.OK(ch.Tx())
	c.OK(ch.PublishWithContext(c.Context(), "amq.fanout", "", false, false, amqp.Publishing{}))
	var all, channels []any
	c.Becomes("connections", func() any {
		all, _ = api.Get(Path("vhosts", vhost, "connections")).([]any)
		return len(all) == 1 && at(all[0], "state") != nil && at(all[0], "user") != nil && at(all[0], "recv_oct_details") != nil
	}, true)
	c.Becomes("channels", func() any {
		channels, _ = api.Get(Path("vhosts", vhost, "channels")).([]any)
		return len(channels) == 1 && at(channels[0], "messages_uncommitted") == 1.0
	}, true)
	c.Fields("a connection", all[0], connectionShape())
	global := tolerance{"global_prefetch_count", "RabbitMQ 4.3 has no limit for all consumers of a channel by default"}
	c.Fields("a channel", channels[0], channelShape(), global)
	for path, want := range map[string]any{"ssl": false, "protocol": "AMQP 0-9-1", "user": "guest", "vhost": "v", "auth_mechanism": "PLAIN", "type": "network", "state": "running"} {
		c.Equal(path, at(all[0], path), want)
	}
	for path, want := range map[string]any{"number": 1, "transactional": true, "confirm": false, "prefetch_count": 0, "acks_uncommitted": 0} {
		c.Equal(path, at(channels[0], path), want)
	}
	name, _ := at(all[0], "name").(string)
	c.Equal("found by its name", at(api.Get(Path("connections", name)), "name") == name, true)
	of, _ := api.Get(Path("connections", name, "channels")).([]any)
	c.Equal("its channels", len(of), 1)
	channel, _ := at(channels[0], "name").(string)
	c.Equal("the name of a channel", channel, name+" (1)")
	c.Equal("the same channel", at(api.Get(Path("channels", channel)), "name"), channel)
	closed := make(chan *amqp.Error, 1)
	conn.NotifyClose(closed)
	c.Equal("closed", api.Do("DELETE", Path("connections", name), nil), "204")
	select {
	case e := <-closed:
		c.Equal("the reason", errorText(e), "320 CONNECTION_FORCED - Closed via management plugin")
	case <-time.After(patience):
		c.Fatal("the connection is still open")
	}
	c.Becomes("gone", func() any { return api.Do("GET", Path("connections", name), nil) }, notFound)
}

func managementOverview(c *C) {
	api := c.Manage()
	var o, n any
	c.Becomes("totals", func() any { o = api.Get("/overview"); return at(o, "queue_totals.messages") != nil }, true)
	sockets := tolerance{"contexts* listeners[].socket_opts* require_definition_json_extension", "these are options of Erlang's HTTP server"}
	c.Fields("the overview", o, overviewShape(), sockets)
	list, _ := api.Get("/nodes").([]any)
	c.Equal("nodes", len(list), 1)
	n = list[0]
	c.Fields("a node", n, nodeShape(), sockets,
		tolerance{"disk_free* sockets_* mem_used_details* fd_used_details* log_files* config_files*", "the broker under test has no folder, and limits no sockets"})
	name, _ := at(n, "name").(string)
	c.Equal("the same node", at(o, "node"), name)
	c.Equal("by its name", at(api.Get(Path("nodes", name)), "running"), true)
	c.Equal("no node", api.Do("GET", Path("nodes", "none@nowhere"), nil), changedIn(v40, "500", notFound))
}
