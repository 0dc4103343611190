// Package interop shows that clients of other languages work on the embedded broker unchanged. Programs that use
// Node's amqplib and Python's pika as their manuals say run against the embedded broker, and against real RabbitMQ
// where the environment names one, so that a program that expects what RabbitMQ does not do fails too. They also publish to the delay ladder by its
// documented names alone. A Celery application runs its tasks on it.
//
// The programs are tests in their own languages: node/*.test.js for node's test runner, python/test_*.py and
// celeryapp/test_*.py for unittest; external/ logs in by a certificate over TLS. They find the
// broker's URL in AMQP_URL, each run has the broker or a virtual host for itself, and the same cases stand in node and python.
package interop
