"""What the tests of this folder share: connections to the broker under test, and waiting with a deadline."""

import os
import time
import unittest

import pika

URL = os.environ["AMQP_URL"]
SLOW = os.environ.get("SLOW") == "1"


class BrokerTest(unittest.TestCase):
    """A test with connections that are closed when it ends."""

    def connect(self, **parameters):
        to = pika.URLParameters(URL)
        for name, value in parameters.items():
            setattr(to, name, value)
        connection = pika.BlockingConnection(to)
        self.addCleanup(lambda: connection.is_open and connection.close())
        return connection

    def channel(self, connection=None):
        return (connection or self.connect()).channel()

    def refused(self, code, operation, *arguments, **named):
        """The operation closes its channel with this reply code."""
        with self.assertRaises(pika.exceptions.ChannelClosedByBroker) as caught:
            operation(*arguments, **named)
        self.assertEqual(caught.exception.reply_code, code)


class Deliveries:
    """What a consumer has received."""

    def __init__(self, channel, queue, **options):
        self.channel = channel
        self.received = []
        self.tag = channel.basic_consume(queue, self._receive, **options)

    def _receive(self, _channel, method, properties, body):
        self.received.append((method, properties, body))

    def next(self, seconds=10):
        """Wait for the next delivery: (method, properties, body)."""
        deadline = time.monotonic() + seconds
        while not self.received:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"nothing received in {seconds} s")
            self.channel.connection.process_data_events(time_limit=left)
        return self.received.pop(0)

    def cancel(self):
        self.channel.basic_cancel(self.tag)


def body(delivery):
    return delivery[2].decode()
