package clock

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestVirtualFiresInOrderAtTheirMoments(t *testing.T) {
	v := NewVirtual(start)
	var got []string
	note := func(name string) func() {
		return func() { got = append(got, name+v.Now().Sub(start).String()) }
	}
	late, early, never := v.AfterFunc(note("late ")), v.AfterFunc(note("early ")), v.AfterFunc(note("never "))
	late.Reset(start.Add(3 * time.Second))
	early.Reset(start.Add(5 * time.Second))
	early.Reset(start.Add(2 * time.Second))
	never.Reset(start.Add(time.Second))
	never.Stop()
	v.Advance(2999 * time.Millisecond)
	if want := []string{"early 2s"}; !slices.Equal(got, want) {
		t.Fatalf("after 2.999 s: got %q, want %q", got, want)
	}
	v.Advance(time.Hour)
	if want := []string{"early 2s", "late 3s"}; !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	if now := v.Now().Sub(start); now != time.Hour+2999*time.Millisecond {
		t.Fatalf("the clock shows +%v", now)
	}
}

func TestVirtualFiresWhatItsTimersSet(t *testing.T) {
	v := NewVirtual(start)
	var fired []time.Duration
	var timer Timer
	timer = v.AfterFunc(func() {
		fired = append(fired, v.Now().Sub(start))
		timer.Reset(v.Now().Add(10 * time.Minute))
	})
	timer.Reset(start.Add(10 * time.Minute))
	v.Advance(30 * time.Minute)
	if want := []time.Duration{10 * time.Minute, 20 * time.Minute, 30 * time.Minute}; !slices.Equal(fired, want) {
		t.Fatalf("fired at %v, want %v", fired, want)
	}
}

func TestVirtualPastMomentFiresOnTheNextAdvance(t *testing.T) {
	v := NewVirtual(start)
	n := 0
	v.AfterFunc(func() { n++ }).Reset(start.Add(-time.Hour))
	v.Advance(0)
	if n != 1 || !v.Now().Equal(start) {
		t.Fatalf("fired %d times, clock at %v", n, v.Now())
	}
}

func TestRealIsNeverEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Real()
		begin := c.Now()
		fired := make(chan time.Time, 2)
		timer := c.AfterFunc(func() { fired <- c.Now() })
		timer.Reset(begin.Add(time.Minute))
		timer.Reset(begin.Add(72 * time.Hour))
		if waited := (<-fired).Sub(begin); waited != 72*time.Hour {
			t.Fatalf("fired after %v", waited)
		}
		timer.Reset(c.Now().Add(time.Second))
		timer.Stop()
		<-time.After(time.Minute)
		if len(fired) != 0 {
			t.Fatal("a stopped timer fired")
		}
	})
}
