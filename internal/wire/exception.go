package wire

import "fmt"

// Reply codes of AMQP 0-9-1, section 1.1 "constants" of the generated
// specification.
const (
	ReplySuccess       = 200
	ContentTooLarge    = 311
	NoRoute            = 312
	NoConsumers        = 313
	ConnectionForced   = 320
	InvalidPath        = 402
	AccessRefused      = 403
	NotFound           = 404
	ResourceLocked     = 405
	PreconditionFailed = 406
	FrameError         = 501
	SyntaxError        = 502
	CommandInvalid     = 503
	ChannelError       = 504
	UnexpectedFrame    = 505
	ResourceError      = 506
	NotAllowed         = 530
	NotImplemented     = 540
	InternalError      = 541
)

// Exception is an AMQP exception: why a channel or a connection is closed.
type Exception struct {
	Code uint16
	// Text is the explanation without the name of the code, as in
	// "no queue 'q' in vhost '/'".
	Text string
}

// Errorf makes an Exception; the format is that of fmt.Sprintf.
func Errorf(code uint16, format string, a ...any) *Exception {
	return &Exception{Code: code, Text: fmt.Sprintf(format, a...)}
}

// Error returns the code and the reply text.
func (e *Exception) Error() string { return fmt.Sprintf("%d %s", e.Code, e.ReplyText()) }

// ReplyText returns what RabbitMQ sends as reply-text: the name of the code,
// " - " and the explanation, cut to the 255 octets of a short string. A text
// that is cut ends in three dots.
func (e *Exception) ReplyText() string {
	name := codeName(e.Code)
	if e.Text == "" {
		return name
	}
	text := name + " - " + e.Text
	if len(text) > maxShortString {
		text = text[:maxShortString-3] + "..."
	}
	return text
}

// IsConnection reports whether the code is a hard error, which closes the
// connection. A soft error closes only the channel.
func (e *Exception) IsConnection() bool {
	switch e.Code {
	case ContentTooLarge, NoRoute, NoConsumers, AccessRefused, NotFound, ResourceLocked, PreconditionFailed:
		return false
	}
	return true
}

func codeName(code uint16) string {
	switch code {
	case ContentTooLarge:
		return "CONTENT_TOO_LARGE"
	case NoRoute:
		return "NO_ROUTE"
	case NoConsumers:
		return "NO_CONSUMERS"
	case ConnectionForced:
		return "CONNECTION_FORCED"
	case InvalidPath:
		return "INVALID_PATH"
	case AccessRefused:
		return "ACCESS_REFUSED"
	case NotFound:
		return "NOT_FOUND"
	case ResourceLocked:
		return "RESOURCE_LOCKED"
	case PreconditionFailed:
		return "PRECONDITION_FAILED"
	case FrameError:
		return "FRAME_ERROR"
	case SyntaxError:
		return "SYNTAX_ERROR"
	case CommandInvalid:
		return "COMMAND_INVALID"
	case ChannelError:
		return "CHANNEL_ERROR"
	case UnexpectedFrame:
		return "UNEXPECTED_FRAME"
	case ResourceError:
		return "RESOURCE_ERROR"
	case NotAllowed:
		return "NOT_ALLOWED"
	case NotImplemented:
		return "NOT_IMPLEMENTED"
	case InternalError:
		return "INTERNAL_ERROR"
	case ReplySuccess:
		return "OK"
	}
	return fmt.Sprintf("REPLY_%d", code)
}
