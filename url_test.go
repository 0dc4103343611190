package dormouse_test

import (
	"strings"
	"testing"

	"github.com/dormousemq/dormouse"
)

func TestConnectErrorsKeepThePassword(t *testing.T) {
	for _, urls := range []string{
		"amqp://guest:s3c%zzret@127.0.0.1:1/",
		"amqp://guest:s3c,ret@127.0.0.1:1/",
		"amqp://guest:s3c ret@127.0.0.1:1/",
		"http://guest:s3cret@127.0.0.1:1/",
		"amqp://guest:s3cret@127.0.0.1:1/",
	} {
		c, err := dormouse.Connect(t.Context(), urls, dormouse.Options{})
		if err == nil {
			_ = c.Close()
			t.Fatalf("%s: connected", urls)
		}
		if strings.Contains(err.Error(), "s3c") {
			t.Errorf("%s: the error shows the password: %v", urls, err)
		}
	}
}
