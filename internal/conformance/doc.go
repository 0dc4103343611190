// Package conformance holds the cases that say how an AMQP broker behaves: each is a small program over a stock client
// with an expected observation. The same cases run on the embedded broker and on real RabbitMQ of several versions, so
// that the expectations are known to be true of RabbitMQ and the embedded broker is known to meet them.
//
// The package has tests only. DORMOUSE_TEST_AMQP names real brokers, as AMQP URLs separated by commas; without it only
// the embedded broker is tested:
//
//	DORMOUSE_TEST_AMQP=amqp://guest:guest@127.0.0.1:5672/ go test ./internal/conformance/
//
// The same, with what each broker does side by side, is written by
//
//	DORMOUSE_TEST_AMQP=url,url,url go test ./internal/conformance/ -v -run TestReport -report ../../docs/conformance.md
//
// which fails where the embedded broker differs from RabbitMQ 4.3 and the case does not say why (see C.Deviates).
//
// A case that fails on real RabbitMQ is a wrong expectation; one that fails on the embedded broker alone is a deviation.
package conformance
