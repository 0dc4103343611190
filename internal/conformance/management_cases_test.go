package conformance

import (
	"net/http"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

type body = map[string]any

func managementCases() []Case {
	return []Case{
		{"management/login", managementLogin},
		{"management/tags", managementTags},
		{"management/vhosts", managementVHosts},
		{"management/users", managementUsers},
		{"management/permissions", managementPermissions},
		{"management/policies", managementPolicies},
		{"management/bodies", managementBodies},
	}
}

// at is what is at a path of names in an object.
func at(v any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		o, _ := v.(map[string]any)
		v = o[name]
	}
	return v
}

const notFound = `404 {"error":"Object Not Found","reason":"Not Found"}`

func managementLogin(c *C) {
	request, err := http.NewRequestWithContext(c.Context(), http.MethodGet, c.managementURL()+"/api/whoami", nil)
	c.OK(err)
	answer := c.roundTrip(request)
	c.Equal("without credentials", answer.Status, 401)
	c.Equal("the challenge", answer.Header.Get("WWW-Authenticate"), `Basic realm="RabbitMQ Management"`)

	nobody := c.User("nobody", "")
	c.Equal("a wrong password", c.ManageAs(nobody, "wrong").Do("GET", "/whoami", nil).Status, 401)
	c.Equal("a user without tags", c.ManageAs(nobody, nobody).Do("GET", "/whoami", nil), `401 {"error":"not_authorised","reason":"Not management user"}`)
	somebody := c.User("somebody", "management")
	who := c.ManageAs(somebody, somebody).Get("/whoami")
	c.Equal("who it is", at(who, "name"), "somebody")
	c.Equal("a path that is none", c.Manage().Do("GET", "/nonsense", nil), notFound)
	c.Equal("a method that is none", c.Manage().Do("PATCH", "/vhosts", nil).Status, 405)
	c.Equal("the methods", c.Manage().Do("POST", "/vhosts", nil).Header.Get("Allow"), "HEAD, GET, OPTIONS")
}

func managementTags(c *C) {
	vhost, _ := c.VHost("v")
	for _, tag := range []string{"management", "policymaker", "monitoring", "administrator"} {
		user := c.User(tag, tag)
		if tag != "monitoring" {
			c.Manage().Must("PUT", Path("permissions", vhost, user), body{"configure": "^may", "write": "^may", "read": "^may"})
		}
		api := c.ManageAs(user, user)
		var got []string
		for _, path := range []string{
			"/overview", "/vhosts", "/users", "/nodes", "/permissions", "/policies", "/connections", "/queues",
			"/global-parameters", "/parameters", "/cluster-name",
			Path("queues", vhost), Path("queues", vhost+"x"), Path("exchanges", vhost, "amq.topic"), Path("vhosts", vhost),
			Path("users", user), Path("policies", vhost),
		} {
			a := api.Do("GET", path, nil)
			for a.Status == 500 && c.version.before(v43) { // which stumbles over virtual hosts that other cases delete meanwhile
				a = api.Do("GET", path, nil)
			}
			if a.Status != 200 {
				got = append(got, strings.ReplaceAll(path, c.prefix, "")+" "+a.String())
			}
		}
		put := func(path string, b body) {
			got = append(got, "PUT "+strings.ReplaceAll(path, c.prefix, "")+" "+api.Do("PUT", path, b).String())
		}
		put(Path("queues", vhost, "may"), body{"durable": true})
		put(Path("queues", vhost, "not"), body{"durable": true})
		put(Path("policies", vhost, "p-"+tag), body{"pattern": "x", "definition": body{"max-length": 3}})
		put(Path("operator-policies", vhost, "o-"+tag), body{"pattern": "x", "definition": body{"max-length": 3}})
		put(Path("users", user), body{"password": user, "tags": tag})
		noEntry := `401 {"error":"not_authorised","reason":"User not authorised to access virtual host"}`
		if !c.version.before(v43) {
			noEntry = `404 {"error":"not_found","reason":"Not Found"}`
		}
		want := strings.ReplaceAll(show(managementTagged[tag]), "NO ENTRY", noEntry)
		c.Equal("with the tag "+tag, got, want)
	}
}

// managementTagged is what users with a tag get other than 200. The monitor has no
// permission in the virtual host.
var managementTagged = map[string][]string{
	"management": {
		`/users 401 {"error":"not_authorised","reason":"Not administrator user"}`,
		`/nodes 401 {"error":"not_authorised","reason":"Not monitor user"}`,
		`/permissions 401 {"error":"not_authorised","reason":"Not administrator user"}`,
		`/global-parameters 401 {"error":"not_authorised","reason":"User not authorised to access object"}`,
		`/parameters 401 {"error":"not_authorised","reason":"User not authorised to access object"}`,
		`/queues/vx 404 {"error":"Object Not Found","reason":"Not Found"}`,
		`/vhosts/v 401 {"error":"not_authorised","reason":"Not administrator user"}`,
		`/users/management 401 {"error":"not_authorised","reason":"Not administrator user"}`,
		`PUT /queues/v/may 201`,
		`PUT /queues/v/not 401 {"error":"not_authorised","reason":"Access refused."}`,
		`PUT /policies/v/p-management 401 {"error":"not_authorised","reason":"User not authorised to access object"}`,
		`PUT /operator-policies/v/o-management 401 {"error":"not_authorised","reason":"Not administrator user"}`,
		`PUT /users/management 401 {"error":"not_authorised","reason":"Not administrator user"}`,
	},
	"policymaker": {
		`/users 401 {"error":"not_authorised","reason":"Not administrator user"}`,
		`/nodes 401 {"error":"not_authorised","reason":"Not monitor user"}`,
		`/permissions 401 {"error":"not_authorised","reason":"Not administrator user"}`,
		`/queues/vx 404 {"error":"Object Not Found","reason":"Not Found"}`,
		`/vhosts/v 401 {"error":"not_authorised","reason":"Not administrator user"}`,
		`/users/policymaker 401 {"error":"not_authorised","reason":"Not administrator user"}`,
		`PUT /queues/v/may 204`,
		`PUT /queues/v/not 401 {"error":"not_authorised","reason":"Access refused."}`,
		`PUT /policies/v/p-policymaker 201`,
		`PUT /operator-policies/v/o-policymaker 401 {"error":"not_authorised","reason":"Not administrator user"}`,
		`PUT /users/policymaker 401 {"error":"not_authorised","reason":"Not administrator user"}`,
	},
	"monitoring": {
		`/users 401 {"error":"not_authorised","reason":"Not administrator user"}`,
		`/permissions 401 {"error":"not_authorised","reason":"Not administrator user"}`,
		`/global-parameters 401 {"error":"not_authorised","reason":"User not authorised to access object"}`,
		`/parameters 401 {"error":"not_authorised","reason":"User not authorised to access object"}`,
		`/queues/v NO ENTRY`,
		`/queues/vx 404 {"error":"Object Not Found","reason":"Not Found"}`,
		`/exchanges/v/amq.topic NO ENTRY`,
		`/vhosts/v 401 {"error":"not_authorised","reason":"Not administrator user"}`,
		`/users/monitoring 401 {"error":"not_authorised","reason":"Not administrator user"}`,
		`/policies/v NO ENTRY`,
		`PUT /queues/v/may NO ENTRY`,
		`PUT /queues/v/not NO ENTRY`,
		`PUT /policies/v/p-monitoring 401 {"error":"not_authorised","reason":"User not authorised to access object"}`,
		`PUT /operator-policies/v/o-monitoring 401 {"error":"not_authorised","reason":"Not administrator user"}`,
		`PUT /users/monitoring 401 {"error":"not_authorised","reason":"Not administrator user"}`,
	},
	"administrator": {
		`/queues/vx 404 {"error":"Object Not Found","reason":"Not Found"}`,
		`PUT /queues/v/may 204`,
		`PUT /queues/v/not 401 {"error":"not_authorised","reason":"Access refused."}`,
		`PUT /policies/v/p-administrator 201`,
		`PUT /operator-policies/v/o-administrator 201`,
		`PUT /users/administrator 204`,
	},
}

func managementVHosts(c *C) {
	api := c.Manage()
	path := Path("vhosts", c.Unique("v"))
	c.cleanLater("DELETE", path)
	c.Equal("before", api.Do("GET", path, nil), notFound)
	c.Equal("made", api.Do("PUT", path, body{"description": "one", "tags": "a, b"}), "201")
	c.Equal("changed", api.Do("PUT", path, body{"description": "two", "tags": []string{"c"}}), "204")
	v := api.Get(path)
	c.Equal("description", at(v, "description"), "two")
	c.Equal("tags", at(v, "tags"), []any{"c"})
	c.Equal("deleted", api.Do("DELETE", path, nil), "204")
	c.Equal("deleted again", api.Do("DELETE", path, nil), notFound)
}

func managementUsers(c *C) {
	api := c.Manage()
	name := c.Unique("u")
	path := Path("users", name)
	c.cleanLater("DELETE", path)
	c.Equal("before", api.Do("GET", path, nil), notFound)
	c.Equal("made", api.Do("PUT", path, body{"password": "secret", "tags": "monitoring, policymaker"}), "201")
	c.Equal("can log in", c.ManageAs(name, "secret").Do("GET", "/whoami", nil).Status, 200)
	u := api.Get(path)
	c.Equal("tags", at(u, "tags"), []any{"monitoring", "policymaker"})
	c.Equal("algorithm", at(u, "hashing_algorithm"), "rabbit_password_hashing_sha256")
	hash := at(u, "password_hash")
	c.Equal("without tags", api.Do("PUT", path, body{"password": "secret"}), `400 {"error":"bad_request","reason":"tags_not_present"}`)
	c.Equal("another password", api.Do("PUT", path, body{"password": "other", "tags": []string{"management"}}), "204")
	c.Equal("cannot log in", c.ManageAs(name, "secret").Do("GET", "/whoami", nil).Status, 401)
	c.Equal("the hash again", api.Do("PUT", path, body{"password_hash": hash, "tags": "management"}), "204")
	c.Equal("can log in again", c.ManageAs(name, "secret").Do("GET", "/whoami", nil).Status, 200)
	c.Equal("no hash", api.Do("PUT", path, body{"password_hash": "abc", "tags": ""}), `400 {"error":"bad_request","reason":["not_base64","abc"]}`)
	c.Equal("deleted", api.Do("DELETE", path, nil), "204")
	c.Equal("deleted again", api.Do("DELETE", path, nil), notFound)
}

func managementPermissions(c *C) {
	api := c.Manage()
	vhost, _ := c.VHost("v")
	user := c.User("u", "management")
	path := Path("permissions", vhost, user)
	c.Equal("before", api.Do("GET", path, nil), notFound)
	c.Equal("incomplete", api.Do("PUT", path, body{"configure": "", "write": ""}), `400 {"error":"bad_request","reason":"[{key_missing,read}]"}`)
	c.Equal("made", api.Do("PUT", path, body{"configure": "a", "write": "b", "read": "c"}), "201")
	c.Equal("changed", api.Do("PUT", path, body{"configure": "a", "write": "b", "read": "d"}), "204")
	c.Equal("shown", api.Get(path), body{"user": "u", "vhost": "v", "configure": "a", "write": "b", "read": "d"})
	c.Equal("of the user", api.Get(Path("users", user, "permissions")), []any{body{"user": "u", "vhost": "v", "configure": "a", "write": "b", "read": "d"}})
	c.Equal("for nobody", api.Do("PUT", Path("permissions", vhost, user+"x"), body{"configure": "a", "write": "b", "read": "c"}),
		`400 {"error":"bad_request","reason":"vhost_or_user_not_found"}`)
	c.Equal("deleted", api.Do("DELETE", path, nil), "204")
	c.Equal("deleted again", api.Do("DELETE", path, nil), notFound)

	topic := Path("topic-permissions", vhost, user)
	c.Equal("topics", api.Do("PUT", topic, body{"exchange": "amq.topic", "write": "a", "read": "b"}), "201")
	c.Equal("shown topics", api.Get(topic), []any{body{"user": "u", "vhost": "v", "exchange": "amq.topic", "write": "a", "read": "b"}})
	c.Equal("topics deleted", api.Do("DELETE", topic, nil), "204")
	c.Equal("topics gone", api.Do("GET", topic, nil), notFound)
}

func managementPolicies(c *C) {
	api := c.Manage()
	vhost, _ := c.VHost("v")
	for _, kind := range []string{"policies", "operator-policies"} {
		path := Path(kind, vhost, "p")
		invalid := `400 {"error":"bad_request","reason":"Validation failed\n\n<<\"3\">> is not a valid maximum length\n"}`
		if kind == "policies" && c.version.before(v43) {
			invalid = strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(invalid)
		}
		c.Equal("before", api.Do("GET", path, nil), notFound)
		c.Equal("no definition", api.Do("PUT", path, body{"pattern": "."}), `400 {"error":"bad_request","reason":"[{key_missing,definition}]"}`)
		c.Equal("invalid", api.Do("PUT", path, body{"pattern": ".", "definition": body{"max-length": "3"}}),
			invalid)
		c.Equal("made", api.Do("PUT", path, body{"pattern": ".", "definition": body{"max-length": 3}, "apply-to": "queues"}), "201")
		c.Equal("changed", api.Do("PUT", path, body{"pattern": ".", "definition": body{"max-length": 4}, "apply-to": "queues", "priority": 2}), "204")
		want := body{"vhost": "v", "name": "p", "pattern": ".", "apply-to": "queues", "definition": body{"max-length": 4.0}, "priority": 2.0}
		c.Equal("shown", api.Get(path), want)
		c.Equal("listed", api.Get(Path(kind, vhost)), []any{want})
	}
	api.Must("PUT", Path("queues", vhost, "q"), body{"durable": true})
	c.Becomes("in effect", func() any { return at(api.Get(Path("queues", vhost, "q")), "effective_policy_definition") }, body{"max-length": 4.0})
	c.Equal("by name", at(api.Get(Path("queues", vhost, "q")), "policy"), "p")
	for _, kind := range []string{"policies", "operator-policies"} {
		c.Equal("deleted", api.Do("DELETE", Path(kind, vhost, "p"), nil), "204")
		c.Equal("deleted again", api.Do("DELETE", Path(kind, vhost, "p"), nil), notFound)
	}
}

func managementBodies(c *C) {
	vhost, _ := c.VHost("v")
	uri, err := amqp.ParseURI(c.url)
	c.OK(err)
	put := func(text string) Answer {
		request, err := http.NewRequestWithContext(c.Context(), http.MethodPut, c.managementURL()+"/api"+Path("queues", vhost, "q"), strings.NewReader(text))
		c.OK(err)
		request.SetBasicAuth(uri.Username, uri.Password)
		return c.roundTrip(request)
	}
	c.Equal("a body that ends too early", put("{"), `400 {"error":"bad_request","reason":"not_json"}`)
	c.Equal("a list", put("[]"), `400 {"error":"bad_request","reason":"not_json"}`)
	c.Equal("no truth value", put(`{"durable":"x"}`), `400 {"error":"bad_request","reason":["not_boolean","x"]}`)
	c.Equal("a null", put(`{"durable":true,"arguments":{"x":null}}`), `400 {"error":"bad_request","reason":"null_not_allowed"}`)
	c.Equal("a truth value in words", put(`{"durable":"true"}`), "201")
}
