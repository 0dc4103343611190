// Package differ compares the embedded broker with a real RabbitMQ 4.3 step by step: a seed makes a small random AMQP
// program, which runs on both at once, and after each step both must have answered and delivered the same and hold the
// same. The first difference is shrunk and printed as a program.
//
// The package has tests only, and DORMOUSE_TEST_AMQP must name a RabbitMQ 4.3 among its URLs:
//
//	DORMOUSE_TEST_AMQP=amqp://guest:guest@127.0.0.1:5672/ go test ./internal/differ/ -run TestDiffer -for 10m -seed 1000 -v
//
// What RabbitMQ leaves to chance is neither generated nor compared; where that is decided stands why.
package differ
