package retry

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBreaker(t *testing.T) {
	now := time.Unix(0, 0)
	b := NewBreaker(BreakerPolicy{Failures: 3, Pause: time.Second, MaxPause: 3 * time.Second})
	admit := func(want bool, wantAgain time.Time) {
		t.Helper()
		if ok, again := b.Admit(now); ok != want || !again.Equal(wantAgain) {
			t.Fatalf("admitted %v until %v, want %v until %v", ok, again, want, wantAgain)
		}
	}
	fail := func(opens bool) {
		t.Helper()
		if b.Failed(now) != opens {
			t.Fatalf("after %d failures the breaker is %s", b.Failures(), b.State())
		}
	}
	admit(true, time.Time{})
	fail(false)
	fail(false)
	if b.Succeeded() {
		t.Error("it was not open")
	}
	fail(false)
	fail(false)
	fail(true)
	for _, pause := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second} {
		until := now.Add(pause)
		admit(false, until)
		fail(false) // one that began before
		now = until
		admit(true, time.Time{})
		admit(false, time.Time{}) // one at a time
		fail(true)
	}
	now = now.Add(time.Hour)
	admit(true, time.Time{})
	b.Abandoned()
	admit(true, time.Time{})
	if !b.Succeeded() || b.State() != BreakerClosed || b.Failures() != 0 {
		t.Error("a success must close it")
	}
	fail(false)
	admit(true, time.Time{})
}

func TestBreakerIsOffByDefault(t *testing.T) {
	b := NewBreaker(BreakerPolicy{})
	for range 1000 {
		if b.Failed(time.Unix(0, 0)) {
			t.Fatal("opened")
		}
	}
}

// Whatever happens, a breaker never lets more than one through while it is not closed, and never stays shut for ever.
func TestBreakerNeverStarves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := BreakerPolicy{Failures: rapid.IntRange(1, 5).Draw(t, "failures"), Pause: time.Second, MaxPause: time.Minute}
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		b, now, running := NewBreaker(p), time.Unix(0, 0), 0
		for _, step := range rapid.SliceOf(rapid.IntRange(0, 3)).Draw(t, "steps") {
			switch {
			case step == 3:
				now = now.Add(time.Minute)
			case running > 0 && step == 0:
				running--
				b.Failed(now)
			case running > 0 && step == 1:
				running--
				b.Succeeded()
			case running > 0:
				running--
				b.Abandoned()
			default:
				wasClosed := b.State() == BreakerClosed
				if ok, _ := b.Admit(now); ok {
					running++
					if !wasClosed && b.State() != BreakerProbing {
						t.Fatal("let one through and does not watch it")
					}
				}
			}
		}
		now = now.Add(time.Hour)
		if ok, _ := b.Admit(now); !ok && running == 0 {
			t.Fatalf("%s for ever", b.State())
		}
	})
}

func TestBreakerValidate(t *testing.T) {
	for _, p := range []BreakerPolicy{{Failures: -1}, {Failures: 1}, {Pause: time.Second}, {Failures: 1, Pause: time.Second, MaxPause: 1}} {
		if p.Validate() == nil {
			t.Errorf("%+v is accepted", p)
		}
	}
	if err := (BreakerPolicy{}).Validate(); err != nil {
		t.Error(err)
	}
}
