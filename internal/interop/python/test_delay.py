"""The delayed queue as programs build it on stock RabbitMQ: a direct exchange, a queue named after its TTL that nobody
consumes, and a dead-letter exchange in front of the queue that is worked on."""

import time
import unittest
from datetime import datetime, timezone

import pika

from client import SLOW, BrokerTest, Deliveries, body


class Delay(BrokerTest):
    def test_a_queue_of_300_ms(self):
        self.delayed(300)

    @unittest.skipUnless(SLOW, "takes ten seconds")
    def test_delayed_queue_10000(self):
        self.delayed(10_000)

    def delayed(self, ttl):
        ch = self.channel()
        queue, processed = f"delayed_queue_{ttl}", f"processed_exchange_{ttl}"
        ch.exchange_declare("delayed_exchange", "direct", durable=True)
        ch.exchange_declare(processed, "direct", durable=True)
        ch.queue_declare(queue, durable=True, arguments={
            "x-message-ttl": ttl,
            "x-dead-letter-exchange": processed,
            "x-dead-letter-routing-key": "processed",
        })
        ch.queue_bind(queue, "delayed_exchange", f"delay.{ttl}")
        ch.queue_declare(f"processed_queue_{ttl}", durable=True)
        ch.queue_bind(f"processed_queue_{ttl}", processed, "processed")
        deliveries = Deliveries(ch, f"processed_queue_{ttl}")

        published = time.monotonic()
        ch.basic_publish("delayed_exchange", f"delay.{ttl}", b'{"order":42}', pika.BasicProperties(
            delivery_mode=2, content_type="application/json", headers={"attempt": 1}))
        method, properties, content = deliveries.next(ttl / 1000 + 5)
        took = (time.monotonic() - published) * 1000
        ch.basic_ack(method.delivery_tag)

        self.assertGreaterEqual(took, ttl)
        self.assertEqual(content, b'{"order":42}')
        self.assertEqual((method.exchange, method.routing_key), (processed, "processed"))
        self.assertEqual((properties.delivery_mode, properties.content_type), (2, "application/json"))
        headers = properties.headers
        self.assertEqual(headers["attempt"], 1)
        self.assertEqual(headers["x-first-death-queue"], queue)
        self.assertEqual(headers["x-first-death-reason"], "expired")
        self.assertEqual(headers["x-first-death-exchange"], "delayed_exchange")
        self.assertEqual(len(headers["x-death"]), 1)
        death = dict(headers["x-death"][0])
        died = death.pop("time").replace(tzinfo=timezone.utc)
        self.assertEqual(death, {
            "count": 1,
            "reason": "expired",
            "queue": queue,
            "exchange": "delayed_exchange",
            "routing-keys": [f"delay.{ttl}"],
        })
        self.assertLess(abs((datetime.now(timezone.utc) - died).total_seconds()), 5)

    def test_several_delays_at_once_arrive_in_the_order_of_their_times(self):
        ch = self.channel()
        ch.exchange_declare("levels", "direct")
        ch.queue_declare("work")
        for ttl in (600, 400, 200):
            ch.queue_declare(f"level_{ttl}", arguments={
                "x-message-ttl": ttl, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "work"})
            ch.queue_bind(f"level_{ttl}", "levels", str(ttl))
        for ttl in (600, 400, 200):
            ch.basic_publish("levels", str(ttl), str(ttl))
        work = Deliveries(ch, "work", auto_ack=True)
        self.assertEqual([body(work.next()) for _ in range(3)], ["200", "400", "600"])

    def test_the_time_to_live_of_a_message(self):
        ch = self.channel()
        ch.queue_declare("kept", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "expired"})
        ch.queue_declare("expired")
        expired = Deliveries(ch, "expired", auto_ack=True)
        ch.basic_publish("", "kept", b"short", pika.BasicProperties(expiration="200"))
        _, properties, _ = expired.next()
        self.assertIsNone(properties.expiration)
        self.assertEqual(properties.headers["x-death"][0]["original-expiration"], "200")

    def test_a_worker_whose_rejected_messages_come_back_after_a_while(self):
        ch = self.channel()
        ch.exchange_declare("retry", "direct")
        ch.exchange_declare("jobs", "direct")
        ch.queue_declare("job", arguments={"x-dead-letter-exchange": "retry"})
        ch.queue_declare("job.wait", arguments={"x-message-ttl": 150, "x-dead-letter-exchange": "jobs"})
        ch.queue_bind("job", "jobs", "job")
        ch.queue_bind("job.wait", "retry", "job")
        jobs = Deliveries(ch, "job")
        ch.basic_publish("jobs", "job", b"fails")
        for attempt in range(3):
            method, properties, _ = jobs.next()
            deaths = (properties.headers or {}).get("x-death", [])
            rejected = [d["count"] for d in deaths if (d["queue"], d["reason"]) == ("job", "rejected")]
            self.assertEqual(sum(rejected), attempt)
            if attempt < 2:
                ch.basic_nack(method.delivery_tag, requeue=False)
            else:
                ch.basic_ack(method.delivery_tag)
