"""Publishing and consuming through pika: confirms, returns, prefetch, acknowledgements, get, transactions, errors."""

import os
from datetime import datetime
from decimal import Decimal

import pika

from client import URL, BrokerTest, Deliveries, body


class Channel(BrokerTest):
    def test_publisher_confirms(self):
        ch = self.channel()
        ch.confirm_delivery()
        ch.queue_declare("confirmed")
        for i in range(200):
            ch.basic_publish("", "confirmed", str(i), pika.BasicProperties(delivery_mode=2))
        self.assertEqual(ch.queue_declare("confirmed", passive=True).method.message_count, 200)

    def test_a_mandatory_message_that_no_queue_takes_comes_back(self):
        ch = self.channel()
        ch.confirm_delivery()
        with self.assertRaises(pika.exceptions.UnroutableError) as caught:
            ch.basic_publish("", "no-such-queue", b"lost", pika.BasicProperties(message_id="m1"), mandatory=True)
        (returned,) = caught.exception.messages
        self.assertEqual((returned.method.reply_code, returned.method.reply_text), (312, "NO_ROUTE"))
        self.assertEqual((returned.method.routing_key, returned.properties.message_id), ("no-such-queue", "m1"))
        self.assertEqual(returned.body, b"lost")

    def test_a_full_queue_that_rejects_says_so(self):
        ch = self.channel()
        ch.confirm_delivery()
        ch.queue_declare("full", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
        ch.basic_publish("", "full", b"fits")
        with self.assertRaises(pika.exceptions.NackError):
            ch.basic_publish("", "full", b"too many")

    def test_prefetch(self):
        ch = self.channel()
        ch.queue_declare("prefetched")
        for text in "abc":
            ch.basic_publish("", "prefetched", text)
        ch.basic_qos(prefetch_count=2)
        deliveries = Deliveries(ch, "prefetched")
        first = deliveries.next()
        deliveries.next()
        self.assertEqual(ch.queue_declare("prefetched", passive=True).method.message_count, 1)
        self.assertEqual(deliveries.received, [])
        ch.basic_ack(first[0].delivery_tag)
        self.assertEqual(body(deliveries.next()), "c")

    def test_nack_requeues_and_reject_dead_letters(self):
        ch = self.channel()
        ch.queue_declare("refused", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
        ch.queue_declare("dead")
        deliveries, dead = Deliveries(ch, "refused"), Deliveries(ch, "dead", auto_ack=True)
        ch.basic_publish("", "refused", b"x")
        method, _, _ = deliveries.next()
        self.assertFalse(method.redelivered)
        ch.basic_nack(method.delivery_tag)
        method, _, _ = deliveries.next()
        self.assertTrue(method.redelivered)
        ch.basic_reject(method.delivery_tag, requeue=False)
        _, properties, _ = dead.next()
        self.assertEqual(properties.headers["x-death"][0]["reason"], "rejected")
        self.assertEqual(properties.headers["x-death"][0]["count"], 1)

    def test_acknowledging_many_at_once(self):
        ch = self.channel()
        ch.queue_declare("many")
        for text in "abc":
            ch.basic_publish("", "many", text)
        deliveries = Deliveries(ch, "many")
        tags = [deliveries.next()[0].delivery_tag for _ in range(3)]
        ch.basic_ack(tags[1], multiple=True)
        ch.close()
        again = self.channel()
        method, _, content = Deliveries(again, "many").next()
        self.assertEqual((content, method.redelivered), (b"c", True))

    def test_get_purge_and_delete(self):
        ch = self.channel()
        ch.confirm_delivery()
        ch.queue_declare("got")
        self.assertEqual(ch.basic_get("got"), (None, None, None))
        for text in "abc":
            ch.basic_publish("", "got", text)
        method, _, content = ch.basic_get("got")
        self.assertEqual((content, method.message_count), (b"a", 2))
        ch.basic_ack(method.delivery_tag)
        self.assertEqual(ch.basic_get("got", auto_ack=True)[2], b"b")
        self.assertEqual(ch.queue_purge("got").method.message_count, 1)
        self.assertEqual(ch.queue_delete("got").method.message_count, 0)
        self.refused(404, ch.queue_declare, "got", passive=True)

    def test_bodies_of_any_size(self):
        ch = self.channel()
        ch.queue_declare("sizes")
        deliveries = Deliveries(ch, "sizes", auto_ack=True)
        for size in (0, 1, 131_063, 131_064, 131_065, 3_000_000):
            content = os.urandom(size)
            ch.basic_publish("", "sizes", content)
            self.assertEqual(deliveries.next()[2], content)

    def test_properties_and_headers_arrive_as_they_were_sent(self):
        ch = self.channel()
        ch.queue_declare("properties")
        headers = {
            "text": "grüße", "empty": "", "yes": True, "no": False, "nothing": None, "small": -1, "large": 2**40,
            "half": Decimal("0.5"), "list": [1, "two", [3]], "nested": {"deep": {"deeper": "x"}}, "when": datetime(2026, 1, 2, 3, 4, 5),
        }
        sent = pika.BasicProperties(
            content_type="text/plain", content_encoding="utf-8", headers=headers, delivery_mode=1, priority=3,
            correlation_id="c", reply_to="r", message_id="m", timestamp=1_700_000_000, type="t", user_id="guest", app_id="a")
        deliveries = Deliveries(ch, "properties", auto_ack=True)
        ch.basic_publish("", "properties", b"x", sent)
        _, properties, _ = deliveries.next()
        self.assertEqual(properties, sent)

    def test_a_transaction(self):
        ch = self.channel()
        ch.queue_declare("transacted")
        ch.tx_select()
        ch.basic_publish("", "transacted", b"dropped")
        ch.tx_rollback()
        ch.basic_publish("", "transacted", b"kept")
        ch.tx_commit()
        self.assertEqual(ch.queue_declare("transacted", passive=True).method.message_count, 1)

    def test_an_error_closes_the_channel_and_leaves_the_connection(self):
        connection = self.connect()
        self.channel(connection).queue_declare("settled", arguments={"x-message-ttl": 1000})
        self.refused(406, self.channel(connection).queue_declare, "settled", arguments={"x-message-ttl": 2000})
        self.refused(404, self.channel(connection).exchange_declare, "no-such-exchange", passive=True)
        self.channel(connection).queue_declare("settled", passive=True)

    def test_a_wrong_password_is_refused(self):
        to = pika.URLParameters(URL)
        to.credentials = pika.PlainCredentials("guest", "wrong")
        with self.assertRaises(pika.exceptions.ProbableAuthenticationError):
            pika.BlockingConnection(to)

    def test_an_idle_connection_lives_by_its_heartbeats(self):
        connection = self.connect(heartbeat=1)
        connection.process_data_events(time_limit=3.5)
        self.assertTrue(connection.is_open)
        self.channel(connection).queue_declare("", exclusive=True)
