"""What Dormouse adds, used from another language: the delay ladder, which is plain AMQP on every broker, and on the
embedded broker the exchange of the delayed-message plugin."""

import os
import time
import unittest

import pika

from client import BrokerTest, Deliveries, body

ANY = "dm.*.*.*.*.*.*.*.*.*"


class Ladder(BrokerTest):
    def delay(self, ch, key, ladder_key, text):
        ch.basic_publish("dormouse.delay", key, text, pika.BasicProperties(
            delivery_mode=2, headers={"BCC": [ladder_key]}), mandatory=True)

    def test_the_ladder_delays_a_message_to_a_queue(self):
        ch = self.channel()
        ch.confirm_delivery()
        ch.queue_declare("email")
        ch.queue_bind("email", "dormouse.due", ANY + ".q.email")
        email = Deliveries(ch, "email", auto_ack=True)
        published = time.monotonic()
        self.delay(ch, "email", "dm.0.0.0.0.0.0.0.0.4.q.email", b"hello")
        method, properties, content = email.next()
        self.assertGreaterEqual(time.monotonic() - published, 0.4)
        self.assertEqual((method.routing_key, content), ("email", b"hello"))
        self.assertNotIn("BCC", properties.headers)

    def test_the_ladder_delays_a_message_to_an_exchange_which_then_routes_it_by_its_own_key(self):
        ch = self.channel()
        ch.confirm_delivery()
        ch.exchange_declare("orders", "topic")
        ch.exchange_bind("orders", "dormouse.due", ANY + ".x.orders")
        for queue in ("unpaid", "paid"):
            ch.queue_declare(queue)
            ch.queue_bind(queue, "orders", "*." + queue)
        unpaid = Deliveries(ch, "unpaid", auto_ack=True)
        published = time.monotonic()
        self.delay(ch, "order.unpaid", "dm.0.0.0.0.0.0.0.1.3.x.orders", b"42")
        method, properties, _ = unpaid.next()
        self.assertGreaterEqual(time.monotonic() - published, 1.3)
        self.assertEqual(method.routing_key, "order.unpaid")
        self.assertEqual([death["queue"] for death in properties.headers["x-death"]],
                         ["dormouse.delay.300ms", "dormouse.delay.1s"])
        self.assertEqual(ch.queue_declare("paid", passive=True).method.message_count, 0)

    @unittest.skipUnless(os.environ.get("EMBEDDED") == "1", "RabbitMQ needs a plugin for it")
    def test_an_x_delayed_message_exchange(self):
        ch = self.channel()
        ch.confirm_delivery()
        ch.exchange_declare("later", "x-delayed-message", arguments={"x-delayed-type": "direct"})
        ch.queue_declare("due")
        ch.queue_bind("due", "later", "key")
        due = Deliveries(ch, "due", auto_ack=True)
        published = time.monotonic()
        for delay in (600, 300):
            ch.basic_publish("later", "key", str(delay), pika.BasicProperties(headers={"x-delay": delay}))
        for delay in (300, 600):
            delivery = due.next()
            self.assertGreaterEqual(time.monotonic() - published, delay / 1000)
            self.assertEqual(body(delivery), str(delay))
            self.assertEqual(delivery[0].exchange, "later")
            self.assertEqual(delivery[1].headers["x-delay"], -delay)
