package wire

import (
	"strings"
	"testing"
)

func TestException(t *testing.T) {
	for _, test := range []struct {
		e          *Exception
		text       string
		connection bool
	}{
		{Errorf(NotFound, "no queue '%s' in vhost '/'", "q"), "NOT_FOUND - no queue 'q' in vhost '/'", false},
		{Errorf(PreconditionFailed, "unknown delivery tag %d", 1), "PRECONDITION_FAILED - unknown delivery tag 1", false},
		{Errorf(AccessRefused, "x"), "ACCESS_REFUSED - x", false},
		{Errorf(ResourceLocked, "x"), "RESOURCE_LOCKED - x", false},
		{Errorf(ContentTooLarge, "x"), "CONTENT_TOO_LARGE - x", false},
		{Errorf(NoRoute, "x"), "NO_ROUTE - x", false},
		{Errorf(NoConsumers, "x"), "NO_CONSUMERS - x", false},
		{Errorf(ConnectionForced, "x"), "CONNECTION_FORCED - x", true},
		{Errorf(InvalidPath, "x"), "INVALID_PATH - x", true},
		{Errorf(FrameError, "x"), "FRAME_ERROR - x", true},
		{Errorf(SyntaxError, "x"), "SYNTAX_ERROR - x", true},
		{Errorf(CommandInvalid, "x"), "COMMAND_INVALID - x", true},
		{Errorf(ChannelError, "x"), "CHANNEL_ERROR - x", true},
		{Errorf(UnexpectedFrame, "x"), "UNEXPECTED_FRAME - x", true},
		{Errorf(ResourceError, "x"), "RESOURCE_ERROR - x", true},
		{Errorf(NotAllowed, "x"), "NOT_ALLOWED - x", true},
		{Errorf(NotImplemented, "x"), "NOT_IMPLEMENTED - x", true},
		{&Exception{Code: InternalError}, "INTERNAL_ERROR", true},
		{Errorf(999, "x"), "REPLY_999 - x", true},
	} {
		if got := test.e.ReplyText(); got != test.text {
			t.Errorf("reply text %q, want %q", got, test.text)
		}
		if got := test.e.IsConnection(); got != test.connection {
			t.Errorf("%v: IsConnection %v", test.e, got)
		}
	}
	if s := Errorf(NotFound, "x").Error(); s != "404 NOT_FOUND - x" {
		t.Error(s)
	}
	long := Errorf(NotFound, "%s", strings.Repeat("x", 300)).ReplyText()
	if len(long) != 255 || !strings.HasSuffix(long, "xx...") {
		t.Errorf("a long text became %d octets, %q", len(long), long)
	}
}
