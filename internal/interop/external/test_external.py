"""Logging in through pika by a client certificate instead of a password: the mechanism EXTERNAL over TLS."""

import os
import ssl
import unittest

import pika

ADDRESS = pika.URLParameters(os.environ["AMQP_URL"])
CERTIFICATES = os.environ["CERTIFICATES"]


def connect(certificate=None, credentials=None):
    context = ssl.create_default_context(cafile=os.path.join(CERTIFICATES, "authority.pem"))
    if certificate:
        context.load_cert_chain(os.path.join(CERTIFICATES, certificate + ".pem"))
    return pika.BlockingConnection(pika.ConnectionParameters(
        ADDRESS.host, ADDRESS.port, ssl_options=pika.SSLOptions(context, ADDRESS.host),
        credentials=credentials or pika.credentials.ExternalCredentials()))


class External(unittest.TestCase):
    def test_a_certificate_is_the_user_of_its_subject(self):
        connection = connect("alice")
        self.addCleanup(connection.close)
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("alice.q")
        channel.basic_publish("", "alice.q", b"x" * 100_000, pika.BasicProperties(user_id="alice"))
        self.assertEqual(channel.basic_get("alice.q", auto_ack=True)[2], b"x" * 100_000)
        with self.assertRaises(pika.exceptions.ChannelClosedByBroker) as caught:
            channel.queue_declare("bob.q")
        self.assertEqual(caught.exception.reply_code, 403)
        self.assertIn("refused for user 'alice'", caught.exception.reply_text)

    def test_without_a_certificate_it_is_not_offered(self):
        with self.assertRaises(pika.exceptions.AuthenticationError):
            connect()

    def test_a_certificate_of_nobody_is_refused(self):
        with self.assertRaises(pika.exceptions.ProbableAuthenticationError) as caught:
            connect("nobody")
        self.assertIn("ACCESS_REFUSED", str(caught.exception))

    def test_a_certificate_of_another_authority_is_refused(self):
        with self.assertRaises(pika.exceptions.AMQPConnectionError):
            connect("stranger")

    def test_a_password_still_does(self):
        connect(credentials=pika.PlainCredentials("guest", "guest")).close()


if __name__ == "__main__":
    unittest.main()
