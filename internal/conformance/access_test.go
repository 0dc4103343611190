package conformance

import (
	"regexp"
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/internal/wire"
)

func accessCases() []Case {
	return slices.Concat(loginCases(), permissionCases(), topicPermissionCases(), hostCases())
}

// refusal is the text of a refused access. Since 4.0 it says which kind of access.
func refusal(kind, what string) any {
	text := "access to " + what + " in vhost 'vhost' refused for user 'user'"
	return changedIn(v40, "403 ACCESS_REFUSED - "+text, "403 ACCESS_REFUSED - "+kind+" "+text)
}

func loginCases() []Case {
	login := func(title string, prepare func(c *C, t *Tenant), user, password, host string, want any) Case {
		return Case{"access/login " + title, func(c *C) {
			t := c.Tenant()
			if prepare != nil {
				prepare(c, t)
			}
			name := strings.NewReplacer("USER", t.User, "VHOST", t.VHost)
			r := c.Started()
			ok := login("")
			ok.Response = "\x00" + name.Replace(user) + "\x00" + password
			r.Send(0, ok)
			answer := r.Next()
			if answer == "connection.tune" {
				r.Send(0, &wire.ConnectionTuneOk{ChannelMax: 100, FrameMax: 8192}, &wire.ConnectionOpen{VirtualHost: name.Replace(host)})
				answer = r.Next()
			}
			c.Equal("answer", answer, want)
		}}
	}
	const refused = "connection.close 403 ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details see the broker logfile. (0,0)"
	permit := func(_ *C, t *Tenant) { t.Permit("", "", "") }
	return []Case{
		login("with permissions", permit, "USER", "secret", "VHOST", "connection.open-ok"),
		login("without permissions", nil, "USER", "secret", "VHOST",
			"connection.close 530 NOT_ALLOWED - access to vhost 'vhost' refused for user 'user' (10,40)"),
		login("to an unknown virtual host", nil, "USER", "secret", "VHOST2",
			"connection.close 530 NOT_ALLOWED - vhost vhost2 not found (10,40)"),
		login("with a wrong password", permit, "USER", "Secret", "VHOST", refused),
		login("with a blank password", permit, "USER", "", "VHOST", refused),
		login("as nobody", permit, "USER2", "secret", "VHOST", refused),
		login("of a user without a password", func(c *C, t *Tenant) {
			c.Put(map[string]any{"password_hash": "", "tags": ""}, "users", t.User)
			t.Permit("", "", "")
		}, "USER", "secret", "VHOST", refused),
		login("with a changed password", func(c *C, t *Tenant) {
			t.Permit("", "", "")
			c.Put(map[string]any{"password": "changed", "tags": ""}, "users", t.User)
		}, "USER", "changed", "VHOST", "connection.open-ok"),
		{"access/deleted user", func(c *C) {
			t := c.Tenant()
			t.Permit(".*", ".*", ".*")
			closed := t.Dial().NotifyClose(make(chan *amqp.Error, 1))
			c.Delete("users", t.User)
			c.Equal("exception", c.closing(closed), "320 CONNECTION_FORCED - user 'user' is deleted")
		}},
	}
}

// closing waits for the broker to close a connection and returns the exception.
func (c *C) closing(closed <-chan *amqp.Error) string {
	c.Helper()
	select {
	case e := <-closed:
		if e == nil {
			c.Fatal("closed without an exception")
		}
		return c.plain(errorText(e))
	case <-time.After(patience):
		c.Fatal("the connection stays open")
	}
	return ""
}

// An attempt is a method that needs permissions: for each kind what it says without it.
type attempt struct {
	name string
	do   func(ch *amqp.Channel) error
	// needs are the permissions in the order in which they are asked for, as refusals.
	needs []need
}

type need struct{ kind, what string }

func attempts() []attempt {
	declare := func(name string, args amqp.Table) func(*amqp.Channel) error {
		return func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclare(name, true, false, false, false, args)
			return err
		}
	}
	exchange := func(name string, args amqp.Table) func(*amqp.Channel) error {
		return func(ch *amqp.Channel) error {
			return ch.ExchangeDeclare(name, "direct", true, false, false, false, args)
		}
	}
	publish := func(exchange, key string) func(*amqp.Channel) error {
		return func(ch *amqp.Channel) error { return publishOn(ch, exchange, key, amqp.Publishing{}) }
	}
	queue, x := "queue 'q'", "exchange 'x'"
	return []attempt{
		{"queue.declare", declare("new", nil), []need{{"configure", "queue 'new'"}}},
		{"queue.declare of one that is there", declare("q", amqp.Table{}), []need{{"configure", queue}}},
		{"queue.declare with a dead-letter exchange", declare("new", amqp.Table{"x-dead-letter-exchange": "dlx"}),
			[]need{{"configure", "queue 'new'"}, {"read", "queue 'new'"}, {"write", "exchange 'dlx'"}}},
		{"queue.declare with the default dead-letter exchange", declare("new", amqp.Table{"x-dead-letter-exchange": ""}),
			[]need{{"configure", "queue 'new'"}, {"read", "queue 'new'"}, {"write", "exchange 'amq.default'"}}},
		{"queue.delete", func(ch *amqp.Channel) error { return deleteQueue(ch, "q") }, []need{{"configure", queue}}},
		{"queue.delete of none", func(ch *amqp.Channel) error { return deleteQueue(ch, "none") }, []need{{"configure", "queue 'none'"}}},
		{"queue.purge", func(ch *amqp.Channel) error { _, err := ch.QueuePurge("q", false); return err }, []need{{"read", queue}}},
		{"queue.bind", func(ch *amqp.Channel) error { return ch.QueueBind("q", "k", "x", false, nil) }, []need{{"write", queue}, {"read", x}}},
		{"queue.unbind", func(ch *amqp.Channel) error { return ch.QueueUnbind("q", "k", "x", nil) }, []need{{"write", queue}, {"read", x}}},
		{"exchange.declare", exchange("new", nil), []need{{"configure", "exchange 'new'"}}},
		{"exchange.declare of one that is there", exchange("x", nil), []need{{"configure", x}}},
		{"exchange.declare with an alternate exchange", exchange("new", amqp.Table{"alternate-exchange": "ae"}),
			[]need{{"configure", "exchange 'new'"}, {"read", "exchange 'new'"}, {"write", "exchange 'ae'"}}},
		{"exchange.delete", func(ch *amqp.Channel) error { return ch.ExchangeDelete("x", false, false) }, []need{{"configure", x}}},
		{"exchange.bind", func(ch *amqp.Channel) error { return ch.ExchangeBind("y", "k", "x", false, nil) }, []need{{"write", "exchange 'y'"}, {"read", x}}},
		{"exchange.unbind", func(ch *amqp.Channel) error { return ch.ExchangeUnbind("y", "k", "x", false, nil) }, []need{{"write", "exchange 'y'"}, {"read", x}}},
		{"basic.publish", publish("x", "k"), []need{{"write", x}}},
		{"basic.publish to the default exchange", publish("", "q"), []need{{"write", "exchange 'amq.default'"}}},
		{"basic.get", func(ch *amqp.Channel) error { _, _, err := ch.Get("q", true); return err }, []need{{"read", queue}}},
		{"basic.consume", func(ch *amqp.Channel) error {
			_, err := ch.Consume("q", "", true, false, false, false, nil)
			return err
		}, []need{{"read", queue}}},
	}
}

// fill makes what attempts are about.
func (t *Tenant) fill() {
	t.c.Helper()
	ch := t.Admin()
	_, err := ch.QueueDeclare("q", true, false, false, false, nil)
	t.c.OK(err)
	for _, name := range []string{"x", "y"} {
		t.c.OK(ch.ExchangeDeclare(name, "direct", true, false, false, false, nil))
	}
}

// resource is the name in "queue 'q'".
func (n need) resource() string { return strings.Split(n.what, "'")[1] }

func permissionCases() []Case {
	var cases []Case
	for _, a := range attempts() {
		cases = append(cases, Case{"access/" + a.name, func(c *C) {
			t := c.Tenant()
			t.fill()
			patterns := map[string][]string{}
			for i := range len(a.needs) + 1 {
				of := func(kind string) string {
					if len(patterns[kind]) == 0 {
						return ""
					}
					return "^(" + strings.Join(patterns[kind], "|") + ")$"
				}
				t.Permit(of("configure"), of("write"), of("read"))
				got := t.Refused(a.do)
				if i == len(a.needs) {
					c.Equal("with all it needs", got, "")
					return
				}
				n := a.needs[i]
				c.Equal("without "+n.kind, got, refusal(n.kind, n.what))
				patterns[n.kind] = append(patterns[n.kind], regexp.QuoteMeta(n.resource()))
			}
		}})
	}
	refused := func(name string, permissions [3]string, do func(ch *amqp.Channel) error, want any) Case {
		return Case{"access/" + name, func(c *C) {
			t := c.Tenant()
			t.fill()
			t.Permit(permissions[0], permissions[1], permissions[2])
			c.Equal("exception", t.Refused(do), want)
		}}
	}
	none, all := [3]string{}, [3]string{".*", ".*", ".*"}
	passiveQueue := func(ch *amqp.Channel) error { return checkQueue(ch, "q") }
	passiveExchange := func(ch *amqp.Channel) error {
		return ch.ExchangeDeclarePassive("x", "direct", true, false, false, false, nil)
	}
	for kind, one := range map[string][3]string{"configure": {".*", "", ""}, "write": {"", ".*", ""}, "read": {"", "", ".*"}} {
		cases = append(cases,
			refused("passive queue.declare with "+kind, one, passiveQueue, ""),
			refused("passive exchange.declare with "+kind, one, passiveExchange, ""))
	}
	const (
		onDefault = "403 ACCESS_REFUSED - operation not permitted on the default exchange"
		reserved  = "403 ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'"
	)
	return append(cases,
		refused("passive queue.declare", none, passiveQueue, changedIn(v43, "", refusal("configure", "queue 'q'"))),
		refused("passive exchange.declare", none, passiveExchange, changedIn(v43, "", refusal("configure", "exchange 'x'"))),
		refused("passive declaration of the default exchange", none, func(ch *amqp.Channel) error {
			return ch.ExchangeDeclarePassive("", "direct", true, false, false, false, nil)
		}, onDefault),
		refused("queue.declare of a reserved name", none, func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclare("amq.mine", true, false, false, false, nil)
			return err
		}, reserved),
		refused("exchange.declare of a reserved name", none, func(ch *amqp.Channel) error {
			return ch.ExchangeDeclare("amq.mine", "direct", true, false, false, false, nil)
		}, refusal("configure", "exchange 'amq.mine'")),
		refused("exchange.declare of an unknown type", none, func(ch *amqp.Channel) error {
			return ch.ExchangeDeclare("new", "magic", true, false, false, false, nil)
		}, changedIn(v40, "503 COMMAND_INVALID - unknown exchange type 'magic'", "406 PRECONDITION_FAILED - unknown exchange type 'magic'")),
		refused("exchange.delete of a system exchange", none, func(ch *amqp.Channel) error {
			return ch.ExchangeDelete("amq.topic", false, false)
		}, "403 ACCESS_REFUSED - deletion of system exchange 'amq.topic' in vhost 'vhost' not allowed"),
		refused("queue.bind to the default exchange", none, func(ch *amqp.Channel) error {
			return ch.QueueBind("q", "k", "", false, nil)
		}, refusal("write", "queue 'q'")),
		refused("queue.bind to the default exchange with all permissions", all, func(ch *amqp.Channel) error {
			return ch.QueueBind("q", "k", "", false, nil)
		}, onDefault),
		refused("exchange.bind of the default exchange", none, func(ch *amqp.Channel) error {
			return ch.ExchangeBind("", "k", "x", false, nil)
		}, refusal("write", "exchange 'amq.default'")),
		refused("basic.publish to no exchange", none, func(ch *amqp.Channel) error {
			return publishOn(ch, "none", "k", amqp.Publishing{})
		}, refusal("write", "exchange 'none'")),
		refused("a wrong argument is looked at later", [3]string{".*", "", ""}, func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclare("new", true, false, false, false, amqp.Table{"x-message-ttl": "never", "x-dead-letter-exchange": "dlx"})
			return err
		}, refusal("read", "queue 'new'")),
		refused("line breaks do not count", [3]string{"^n", "", ""}, func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclare("\nq", true, false, false, false, nil)
			return err
		}, refusal("configure", "queue 'q'")),
		refused("replies need no permission to be consumed", none, func(ch *amqp.Channel) error {
			_, err := ch.Consume("amq.rabbitmq.reply-to", "", true, false, false, false, nil)
			return err
		}, ""),
		Case{"access/queue.declare of a server-named queue", func(c *C) {
			t := c.Tenant()
			t.Permit("^mine$", "", "")
			got := t.Refused(func(ch *amqp.Channel) error {
				_, err := ch.QueueDeclare("", false, true, true, false, nil)
				return err
			})
			got = regexp.MustCompile(`amq\.gen-[-\w]{22}`).ReplaceAllString(got, "amq.gen-RANDOM")
			c.Equal("exception", got, refusal("configure", "queue 'amq.gen-RANDOM'"))
			t.Permit(`^amq\.gen-`, "", "")
			c.Equal("with permission", t.Refused(func(ch *amqp.Channel) error {
				_, err := ch.QueueDeclare("", false, true, true, false, nil)
				return err
			}), "")
		}},
		Case{"access/user-id", func(c *C) {
			t := c.Tenant()
			t.Permit(".*", ".*", ".*")
			as := func(user string) string {
				return t.Refused(func(ch *amqp.Channel) error { return publishOn(ch, "amq.direct", "k", amqp.Publishing{UserId: user}) })
			}
			c.Equal("one's own", as(t.User), "")
			c.Equal("another's", as("other"), "406 PRECONDITION_FAILED - user_id property set to 'other' but authenticated user was 'user'")
			c.Put(map[string]any{"password": t.Password, "tags": "impersonator"}, "users", t.User)
			c.Equal("another's as an impersonator", as("other"), "")
		}},
		Case{"access/changes hold for open connections", func(c *C) {
			t := c.Tenant()
			t.Permit("", "", "")
			conn := t.Dial()
			do := func() string {
				return c.refusedOn(conn, func(ch *amqp.Channel) error { return publishOn(ch, "amq.direct", "k", amqp.Publishing{}) })
			}
			c.Equal("without", do(), refusal("write", "exchange 'amq.direct'"))
			t.Permit("", "amq", "")
			c.Equal("with", do(), "")
			t.Permit("", "other", "")
			c.Equal("without again", do(), refusal("write", "exchange 'amq.direct'"))
			c.Delete("permissions", t.VHost, t.User)
			c.Equal("without any", do(), refusal("write", "exchange 'amq.direct'"))
			c.Equal("the connection is closed", conn.IsClosed(), false)
		}},
	)
}

func topicPermissionCases() []Case {
	publish := func(exchange, key string, headers amqp.Table) func(ch *amqp.Channel) error {
		return func(ch *amqp.Channel) error { return publishOn(ch, exchange, key, amqp.Publishing{Headers: headers}) }
	}
	topic := func(name string, do func(ch *amqp.Channel) error, want any) Case {
		return Case{"access/topic " + name, func(c *C) {
			t := c.Tenant()
			t.Permit(".*", ".*", ".*")
			ch := t.Admin()
			_, err := ch.QueueDeclare("q", true, false, false, false, nil)
			c.OK(err)
			c.OK(ch.ExchangeDeclare("other", "topic", true, false, false, false, nil))
			t.Topics("amq.topic", `^(ok|{username}\.{vhost})$`, `^ok`)
			t.Topics("amq.direct", "^$", "^$") // means nothing for what is no topic exchange
			c.Equal("exception", t.Refused(do), want)
		}}
	}
	return []Case{
		topic("publish", publish("amq.topic", "ok", nil), ""),
		topic("publish with another key", publish("amq.topic", "no", nil), refusal("write", "topic 'no' in exchange 'amq.topic'")),
		topic("publish with an empty key", publish("amq.topic", "", nil), refusal("write", "topic '' in exchange 'amq.topic'")),
		topic("publish with another CC", publish("amq.topic", "ok", amqp.Table{"CC": []any{"ok", "cc"}}),
			changedIn(v40, "", refusal("write", "topic 'cc' in exchange 'amq.topic'"))),
		topic("publish with another BCC", publish("amq.topic", "ok", amqp.Table{"BCC": []any{"bcc"}}),
			changedIn(v40, "", refusal("write", "topic 'bcc' in exchange 'amq.topic'"))),
		topic("publish to another topic exchange", publish("other", "no", nil), ""),
		topic("publish to a direct exchange", publish("amq.direct", "no", nil), ""),
		topic("bind", func(ch *amqp.Channel) error { return ch.QueueBind("q", "ok.#", "amq.topic", false, nil) }, ""),
		topic("bind with another key", func(ch *amqp.Channel) error { return ch.QueueBind("q", "#", "amq.topic", false, nil) },
			refusal("read", "topic '#' in exchange 'amq.topic'")),
		topic("unbind with another key", func(ch *amqp.Channel) error { return ch.QueueUnbind("q", "#", "amq.topic", nil) },
			refusal("read", "topic '#' in exchange 'amq.topic'")),
		topic("bind to a direct exchange", func(ch *amqp.Channel) error { return ch.QueueBind("q", "no", "amq.direct", false, nil) }, ""),
		topic("exchange.bind with another key", func(ch *amqp.Channel) error {
			return ch.ExchangeBind("other", "no", "amq.topic", false, nil)
		}, refusal("read", "topic 'no' in exchange 'amq.topic'")),
		{"access/topic variables", func(c *C) {
			t := c.Tenant()
			t.Permit(".*", ".*", ".*")
			t.Topics("amq.topic", "^{username}-{vhost}$", "")
			c.Equal("what they stand for", t.Refused(publish("amq.topic", t.User+"-"+t.VHost, nil)), "")
			c.Equal("themselves", t.Refused(publish("amq.topic", "{username}-{vhost}", nil)),
				refusal("write", "topic '{username}-{vhost}' in exchange 'amq.topic'"))
		}},
		{"access/topic is looked at after the expiration and before the user-id", func(c *C) {
			t := c.Tenant()
			t.Permit(".*", ".*", ".*")
			t.Topics("amq.topic", "", "")
			with := func(p amqp.Publishing) string {
				return t.Refused(func(ch *amqp.Channel) error { return publishOn(ch, "amq.topic", "no", p) })
			}
			refused := refusal("write", "topic 'no' in exchange 'amq.topic'")
			c.Equal("user-id", with(amqp.Publishing{UserId: "other"}), refused)
			c.Equal("expiration", with(amqp.Publishing{Expiration: "x"}),
				changedIn(v40, refused, "406 PRECONDITION_FAILED - invalid expiration 'x': no_integer"))
		}},
	}
}

func hostCases() []Case {
	return []Case{
		{"vhost/deleted", func(c *C) {
			t := c.Tenant()
			ch := t.Admin()
			_, err := ch.QueueDeclare("q", true, false, false, false, nil)
			c.OK(err)
			_, err = ch.Consume("q", "tag", true, false, false, false, nil)
			c.OK(err)
			cancelled := ch.NotifyCancel(make(chan string, 1))
			t.Permit("", "", "")
			closed := t.Dial().NotifyClose(make(chan *amqp.Error, 1))
			c.Delete("vhosts", t.VHost)
			got := c.closing(closed)
			if c.version.before(v43) { // which now and then stops the virtual host before it tells that it is deleted
				got = strings.Replace(got, "is down", "is deleted", 1)
			}
			c.Equal("exception", got, "320 CONNECTION_FORCED - vhost 'vhost' is deleted")
			select {
			case tag := <-cancelled:
				c.Equal("the consumer is cancelled", tag, "tag")
			case <-time.After(patience):
				c.Fatal("the consumer is not cancelled")
			}
		}},
		{"vhost/made anew is empty", func(c *C) {
			t := c.Tenant()
			t.fill()
			c.Delete("vhosts", t.VHost)
			c.Put(map[string]any{}, "vhosts", t.VHost)
			_, err := amqp.Dial(t.URL(t.User, t.Password))
			c.Equal("permissions are gone", c.plain(err.Error()),
				`Exception (530) Reason: "NOT_ALLOWED - access to vhost 'vhost' refused for user 'user'"`)
			t.Permit(".*", ".*", ".*")
			c.Equal("queues are gone", t.Refused(func(ch *amqp.Channel) error { return checkQueue(ch, "q") }), "404 NOT_FOUND - no queue 'q' in vhost 'vhost'")
		}},
		{"vhost/names are apart", func(c *C) {
			one, other := c.Tenant(), c.Unique("vhost")+"/%2F ü"
			c.Put(map[string]any{}, "vhosts", other)
			defer c.Delete("vhosts", other)
			two := *one
			two.VHost = other
			one.Permit(".*", ".*", ".*")
			two.Permit(".*", ".*", ".*")
			one.fill()
			c.Equal("in the other", two.Refused(func(ch *amqp.Channel) error { return checkQueue(ch, "q") }),
				"404 NOT_FOUND - no queue 'q' in vhost 'vhost/%2F ü'")
		}},
		{"vhost/default queue type", func(c *C) {
			if c.version.before(v40) {
				c.Skip("3.10 has no default queue type")
			}
			t := c.Tenant()
			c.Put(map[string]any{"default_queue_type": "quorum"}, "vhosts", t.VHost)
			t.Permit(".*", ".*", ".*")
			declare := func(name string, durable, autoDelete, exclusive bool) string {
				return t.Refused(func(ch *amqp.Channel) error {
					if _, err := ch.QueueDeclare(name, durable, autoDelete, exclusive, false, nil); err != nil {
						return err
					}
					_, err := ch.QueueDeclare(name, durable, autoDelete, exclusive, false, amqp.Table{"x-queue-type": "classic"})
					return err
				})
			}
			c.Equal("durable", declare("durable", true, false, false),
				"406 PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'durable' in vhost 'vhost': received 'classic' but current is 'quorum'")
			c.Equal("auto-delete", declare("auto-delete", true, true, false), "")
			c.Equal("exclusive", declare("exclusive", true, false, true), "")
		}},
	}
}

func checkQueue(ch *amqp.Channel, name string) error {
	_, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
	return err
}

func publishOn(ch *amqp.Channel, exchange, key string, p amqp.Publishing) error {
	return ch.Publish(exchange, key, false, false, p)
}
