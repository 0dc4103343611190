package management

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/dormousemq/dormouse/internal/policy"
	"github.com/dormousemq/dormouse/internal/wire"
)

// failure is an answer that says why a request is refused.
type failure struct {
	status int
	kind   string // the member "error"
	reason any
}

func (f *failure) Error() string { return f.kind + ": " + string(appendJSON(nil, f.reason)) }

// body is the failure as RabbitMQ words it.
func (f *failure) body() object {
	if found, ok := f.reason.(object); ok {
		return found
	}
	return object{{"error", f.kind}, {"reason", f.reason}}
}

// errAnonymous is the answer to a request without credentials: it has no body.
func errAnonymous() error { return &failure{status: http.StatusUnauthorized} }

func badRequest(reason any) error { return &failure{http.StatusBadRequest, "bad_request", reason} }

// missingKey says which member the body lacks.
func missingKey(name string) error { return badRequest("[{key_missing," + name + "}]") }

// notFound is said of what a path names.
func notFound() error { return &failure{http.StatusNotFound, "Object Not Found", "Not Found"} }

// unknown is said of what a body or an operation names.
func unknown(reason string) error { return &failure{http.StatusNotFound, "not_found", reason} }

func notAuthorised(reason string) error {
	return &failure{http.StatusUnauthorized, "not_authorised", reason}
}

func accessRefused() error { return notAuthorised("Access refused.") }

// channelFailure says what a channel would be closed with, for the operations that
// RabbitMQ does by a channel of its own.
func channelFailure(err error) error {
	e, ok := errors.AsType[*wire.Exception](err)
	switch {
	case ok && e.Code == wire.PreconditionFailed:
		return badRequest(e.Error())
	case ok && e.Code == wire.NotImplemented:
		return badRequest(fmt.Sprintf("%d %s", e.Code, e.Text))
	}
	return err
}

// maxName is how long a name may be, in bytes.
const maxName = 255

// checkName refuses a name of a queue that is too long for AMQP.
func checkName(what, name string) error {
	if len(name) > maxName {
		return badRequest(fmt.Sprintf("%s should be less than %d bytes, actually was %d\n", what, maxName, len(name)))
	}
	return nil
}

// asFailure makes a failure of what another package has returned.
func asFailure(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if invalid, ok := errors.AsType[*policy.ValidationError](err); ok {
		return &failure{http.StatusBadRequest, "bad_request", invalid.Error()}
	}
	e, ok := errors.AsType[*wire.Exception](err)
	if !ok {
		return &failure{http.StatusInternalServerError, "internal_server_error", err.Error()}
	}
	switch e.Code {
	case wire.NotFound:
		return &failure{http.StatusNotFound, "not_found", e.Text}
	case wire.AccessRefused:
		return &failure{http.StatusUnauthorized, "not_authorised", "Access refused."}
	case wire.InternalError:
		return &failure{http.StatusInternalServerError, "internal_server_error", e.Text}
	}
	return &failure{http.StatusBadRequest, "bad_request", e.Text}
}
