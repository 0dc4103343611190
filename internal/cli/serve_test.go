package cli

import (
	"testing"
	"time"
)

func TestConsumerTimeoutFlag(t *testing.T) {
	for text, want := range map[string]time.Duration{"30m": 30 * time.Minute, "1d": 24 * time.Hour, "off": -1} {
		if got, err := consumerTimeout(text); got != want || err != nil {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0s", "-1s", "soon"} {
		if got, err := consumerTimeout(text); err == nil {
			t.Errorf("%q: %v and no error", text, got)
		}
	}
}
