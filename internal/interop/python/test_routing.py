"""Exchanges and queues through pika: topics, headers, exchanges bound to exchanges, exclusive and server-named queues."""

import time

import pika

from client import BrokerTest, Deliveries, body


class Routing(BrokerTest):
    def received(self, ch, queue, publish, routes):
        """Publish one message for each of routes, then read what reached the queue, in order."""
        deliveries = Deliveries(ch, queue, auto_ack=True)
        for route in routes:
            publish(route)
        ch.basic_publish("", queue, b"end")
        bodies = []
        while not bodies or bodies[-1] != "end":
            bodies.append(body(deliveries.next()))
        deliveries.cancel()
        return bodies[:-1]

    def temporary(self, ch):
        return ch.queue_declare("", exclusive=True).method.queue

    def test_topics(self):
        ch = self.channel()
        ch.exchange_declare("topics", "topic")
        keys = ["order", "order.new", "order.new.eu", "eu", "order.", ""]
        for pattern, matches in {
            "order.*": ["order.new", "order."],
            "order.#": ["order", "order.new", "order.new.eu", "order."],
            "#.eu": ["order.new.eu", "eu"],
            "*.*.eu": ["order.new.eu"],
            "#": keys,
        }.items():
            with self.subTest(pattern):
                queue = self.temporary(ch)
                ch.queue_bind(queue, "topics", pattern)
                got = self.received(ch, queue, lambda key: ch.basic_publish("topics", key, key), keys)
                self.assertEqual(got, matches)

    def test_headers(self):
        ch = self.channel()
        ch.exchange_declare("by-headers", "headers")
        messages = {"both": {"kind": "a", "size": 1}, "one": {"kind": "a", "size": 2}, "none": {"kind": "b"}}
        for match, matches in {"all": ["both"], "any": ["both", "one"]}.items():
            with self.subTest(match):
                queue = self.temporary(ch)
                ch.queue_bind(queue, "by-headers", "", {"x-match": match, "kind": "a", "size": 1})
                got = self.received(ch, queue, lambda name: ch.basic_publish(
                    "by-headers", "", name, pika.BasicProperties(headers=messages[name])), messages)
                self.assertEqual(got, matches)

    def test_fanout_an_exchange_bound_to_an_exchange_and_unbinding(self):
        ch = self.channel()
        ch.exchange_declare("from", "fanout")
        ch.exchange_declare("to", "direct")
        queue = self.temporary(ch)
        ch.queue_bind(queue, "to", "a")
        ch.exchange_bind("to", "from")
        publish = lambda key: ch.basic_publish("from", key, key)
        self.assertEqual(self.received(ch, queue, publish, ["a", "b"]), ["a"])
        ch.queue_unbind(queue, "to", "a")
        self.assertEqual(self.received(ch, queue, publish, ["a"]), [])

    def test_an_alternate_exchange_takes_what_has_no_route(self):
        ch = self.channel()
        ch.exchange_declare("unrouted", "fanout")
        ch.exchange_declare("main", "direct", arguments={"alternate-exchange": "unrouted"})
        queue = self.temporary(ch)
        ch.queue_bind(queue, "unrouted")
        self.assertEqual(self.received(ch, queue, lambda key: ch.basic_publish("main", key, key), ["nowhere"]), ["nowhere"])

    def test_the_broker_names_a_queue_and_keeps_it_for_its_connection(self):
        connection = self.connect()
        queue = self.temporary(self.channel(connection))
        self.assertRegex(queue, "^amq.gen-")
        self.refused(405, self.channel().queue_declare, queue, passive=True)
        connection.close()
        deadline = time.monotonic() + 10
        while True:
            with self.assertRaises(pika.exceptions.ChannelClosedByBroker) as caught:
                self.channel().queue_declare(queue, passive=True)
            if caught.exception.reply_code == 404:
                break
            self.assertLess(time.monotonic(), deadline, "the exclusive queue outlives its connection")

    def test_a_consumer_is_told_when_its_queue_is_deleted_and_an_auto_delete_queue_goes_with_its_consumer(self):
        ch = self.channel()
        ch.queue_declare("deleted")
        cancelled = []
        ch.add_on_cancel_callback(cancelled.append)
        deliveries = Deliveries(ch, "deleted")
        ch.queue_delete("deleted")
        deadline = time.monotonic() + 10
        while not cancelled and time.monotonic() < deadline:
            ch.connection.process_data_events(time_limit=0.1)
        self.assertEqual([c.method.consumer_tag for c in cancelled], [deliveries.tag])
        ch.queue_declare("auto", auto_delete=True)
        Deliveries(ch, "auto").cancel()
        self.refused(404, ch.queue_declare, "auto", passive=True)

    def test_a_request_and_its_reply(self):
        server, ch = self.channel(), self.channel()
        server.queue_declare("rpc")
        requests = Deliveries(server, "rpc")
        replies_to = self.temporary(ch)
        replies = Deliveries(ch, replies_to, auto_ack=True)
        ch.basic_publish("", "rpc", b"hello", pika.BasicProperties(reply_to=replies_to, correlation_id="7"))
        method, properties, content = requests.next()
        server.basic_publish("", properties.reply_to, content.upper(),
                             pika.BasicProperties(correlation_id=properties.correlation_id))
        server.basic_ack(method.delivery_tag)
        _, properties, content = replies.next()
        self.assertEqual((content, properties.correlation_id), (b"HELLO", "7"))

    def test_priorities(self):
        ch = self.channel()
        ch.confirm_delivery()
        ch.queue_declare("prioritised", arguments={"x-max-priority": 5})
        for priority in (1, 5, 3):
            ch.basic_publish("", "prioritised", str(priority), pika.BasicProperties(priority=priority))
        deliveries = Deliveries(ch, "prioritised", auto_ack=True)
        self.assertEqual([body(deliveries.next()) for _ in range(3)], ["5", "3", "1"])
