package retry

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func none() float64 { panic("no jitter, so nothing random") }

func TestSchedules(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name string
		p    Policy
		want []time.Duration
	}{
		{"steps", Policy{MaxAttempts: 4, Exhausted: Park, Steps: []time.Duration{s, 2 * s, 4 * s}}, []time.Duration{s, 2 * s, 4 * s}},
		{"last step repeats", Policy{MaxAttempts: 5, Exhausted: Park, Steps: []time.Duration{s, 9 * s}}, []time.Duration{s, 9 * s, 9 * s, 9 * s}},
		{"more steps than attempts", Policy{MaxAttempts: 2, Exhausted: Park, Steps: []time.Duration{s, 9 * s}}, []time.Duration{s}},
		{"exponential", Policy{MaxAttempts: 6, Exhausted: Park, First: s, Max: 10 * s}, []time.Duration{s, 2 * s, 4 * s, 8 * s, 10 * s}},
		{"factor", Policy{MaxAttempts: 4, Exhausted: Park, First: s, Factor: 1.5}, []time.Duration{s, 1500 * time.Millisecond, 2250 * time.Millisecond}},
		{"factor 1", Policy{MaxAttempts: 3, Exhausted: Park, First: s, Factor: 1}, []time.Duration{s, s}},
		{"one attempt", Policy{MaxAttempts: 1, Exhausted: Discard}, []time.Duration{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.p.Validate(); err != nil {
				t.Fatal(err)
			}
			if got := c.p.Schedule(); !slices.Equal(got, c.want) {
				t.Errorf("schedule %v, want %v", got, c.want)
			}
			for i, want := range c.want {
				if got := c.p.Wait(i+1, none); got != want {
					t.Errorf("after attempt %d: %v, want %v", i+1, got, want)
				}
			}
		})
	}
}

func TestValidateNamesTheField(t *testing.T) {
	good := Policy{MaxAttempts: 3, Exhausted: Park, First: time.Second}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for field, spoil := range map[string]func(*Policy){
		"MaxAttempts": func(p *Policy) { p.MaxAttempts = 0 },
		"Exhausted":   func(p *Policy) { p.Exhausted = "" },
		"Steps":       func(p *Policy) { p.Steps = []time.Duration{time.Second} },
		"no waits":    func(p *Policy) { p.First = 0 },
		"First":       func(p *Policy) { p.First = -1; p.MaxAttempts = 1 },
		"Factor":      func(p *Policy) { p.Factor = 0.5 },
		"Max is":      func(p *Policy) { p.Max = time.Millisecond },
		"Jitter":      func(p *Policy) { p.Jitter = 1.5 },
		"ParkAtOnce":  func(p *Policy) { p.ParkAtOnce = []Reason{"sloth"} },
		"Jitter is":   func(p *Policy) { p.Jitter = math.NaN() },
		"step 2":      func(p *Policy) { p.First = 0; p.Steps = []time.Duration{time.Second, 0} },
	} {
		p := good
		spoil(&p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("spoiled %s: %v", field, err)
		}
	}
	if err := (Policy{}).Validate(); err == nil {
		t.Error("the zero policy is unbounded and must be refused")
	}
}

func genPolicy(t *rapid.T) Policy {
	p := Policy{
		MaxAttempts: rapid.IntRange(1, 2000).Draw(t, "attempts"),
		Exhausted:   rapid.SampledFrom([]Exhausted{Park, Discard}).Draw(t, "exhausted"),
		Jitter:      rapid.Float64Range(0, 1).Draw(t, "jitter"),
	}
	wait := rapid.Int64Range(1, int64(365*24*time.Hour))
	if rapid.Bool().Draw(t, "steps") {
		for range rapid.IntRange(1, 5).Draw(t, "n") {
			p.Steps = append(p.Steps, time.Duration(wait.Draw(t, "step")))
		}
	} else {
		p.First = time.Duration(wait.Draw(t, "first"))
		p.Factor = rapid.Float64Range(1, 10).Draw(t, "factor")
		if rapid.Bool().Draw(t, "bounded") {
			p.Max = p.First + time.Duration(wait.Draw(t, "max"))
		}
	}
	return p
}

func TestWaitsArePositiveBoundedAndNeverShorterThanTheSchedule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := genPolicy(t)
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		if p.MaxAttempts == 1 {
			return
		}
		r := rapid.Float64Range(0, 0.999).Draw(t, "random")
		attempt := rapid.IntRange(1, p.MaxAttempts-1).Draw(t, "attempt")
		base := p.Schedule()[attempt-1]
		wait := p.Wait(attempt, func() float64 { return r })
		if base <= 0 || wait < base || wait > p.Longest() {
			t.Fatalf("attempt %d waits %v: schedule %v, longest %v", attempt, wait, base, p.Longest())
		}
		if p.Max > 0 && base > p.Max {
			t.Fatalf("%v is longer than Max %v", base, p.Max)
		}
		if len(p.Steps) == 0 && attempt > 1 && base < p.Schedule()[attempt-2] {
			t.Fatalf("exponential waits shrink: %v", p.Schedule())
		}
	})
}

// Whatever the results, a message ends after at most MaxAttempts attempts, and only the policy decides how.
func TestEveryMessageEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := genPolicy(t)
		for attempt := 1; ; attempt++ {
			if attempt > p.MaxAttempts {
				t.Fatalf("attempt %d of %d", attempt, p.MaxAttempts)
			}
			r := rapid.SampledFrom([]Result{Failed, FailedUntil}).Draw(t, "result")
			d := p.Decide(Attempt{Number: attempt, Result: r, Reason: ForError, Until: time.Minute}, func() float64 { return 0.5 })
			if d.Action == ActRetry {
				if r == FailedUntil && (d.Wait != time.Minute || !d.Chosen) {
					t.Fatalf("the handler's minute became %+v", d)
				}
				continue
			}
			if attempt != p.MaxAttempts {
				t.Fatalf("ended with %v at attempt %d of %d", d.Action, attempt, p.MaxAttempts)
			}
			if (p.Exhausted == Park) != (d.Action == ActPark) {
				t.Fatalf("policy says %s, decision %v", p.Exhausted, d.Action)
			}
			return
		}
	})
}

func TestDecide(t *testing.T) {
	p := Policy{MaxAttempts: 3, Exhausted: Discard, First: time.Second, ParkAtOnce: []Reason{ForPanic}}
	for _, c := range []struct {
		name    string
		attempt Attempt
		want    Decision
	}{
		{"success", Attempt{Number: 1, Result: Succeeded}, Decision{Action: ActDone}},
		{"success at the last", Attempt{Number: 3, Result: Succeeded}, Decision{Action: ActDone}},
		{"failure", Attempt{Number: 2, Result: Failed}, Decision{Action: ActRetry, Wait: 2 * time.Second}},
		{"failure at the last", Attempt{Number: 3, Result: Failed}, Decision{Action: ActDiscard}},
		{"beyond the last", Attempt{Number: 9, Result: Failed}, Decision{Action: ActDiscard}},
		{"hopeless is parked even so", Attempt{Number: 1, Result: Hopeless}, Decision{Action: ActPark}},
		{"a reason that parks", Attempt{Number: 1, Result: Failed, Reason: ForPanic}, Decision{Action: ActPark}},
		{"another reason", Attempt{Number: 1, Result: Failed, Reason: ForTimeout}, Decision{Action: ActRetry, Wait: time.Second}},
		{"worthless", Attempt{Number: 1, Result: Worthless}, Decision{Action: ActDiscard}},
		{"until", Attempt{Number: 1, Result: FailedUntil, Until: time.Hour}, Decision{Action: ActRetry, Wait: time.Hour, Chosen: true}},
		{"until in the past", Attempt{Number: 1, Result: FailedUntil, Until: -time.Hour}, Decision{Action: ActRetry, Chosen: true}},
		{"snoozed beyond the last", Attempt{Number: 9, Result: Snoozed, Until: time.Hour}, Decision{Action: ActSnooze, Wait: time.Hour, Chosen: true}},
	} {
		if got := p.Decide(c.attempt, none); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// The rows are what RabbitMQ 3.10.8, 4.0.5 and 4.3.6 were seen to send.
func TestAssess(t *testing.T) {
	for _, c := range []struct {
		name string
		e    Evidence
		want Count
	}{
		{"first", Evidence{}, Count{}},
		{"first, 3.10 quorum sends 0", Evidence{HasCount: true}, Count{}},
		{"third attempt", Evidence{Counted: 2}, Count{Failed: 2}},
		{"quorum after a crash", Evidence{HasCount: true, DeliveryCount: 1, Redelivered: true}, Count{Crashes: 1}},
		{"quorum after three", Evidence{Counted: 1, HasCount: true, DeliveryCount: 3, Redelivered: true}, Count{Failed: 1, Crashes: 3}},
		{"4.3 quorum given back by nack: acquired, not failed", Evidence{HasCount: true, Redelivered: true}, Count{}},
		{"classic after a crash", Evidence{Redelivered: true}, Count{Crashes: 1}},
		{"classic, excused", Evidence{Redelivered: true, Excused: 1}, Count{}},
		{"quorum, one of two excused", Evidence{HasCount: true, DeliveryCount: 2, Redelivered: true, Excused: 1}, Count{Crashes: 1}},
		{"more excuses than crashes", Evidence{HasCount: true, DeliveryCount: 1, Redelivered: true, Excused: 3}, Count{}},
		{"broker loop on 3.10: nothing carried", Evidence{Rejected: 2, DiedUnacked: true, HasCount: true}, Count{Failed: 2}},
		{"broker loop on 4.x quorum: count carried", Evidence{Rejected: 2, DiedUnacked: true, HasCount: true, DeliveryCount: 2, Redelivered: true}, Count{Failed: 2, Carried: true}},
		{"broker loop on 4.3 classic: flag carried", Evidence{Rejected: 1, DiedUnacked: true, Redelivered: true}, Count{Failed: 1, Carried: true}},
		{"rejected in another queue", Evidence{DiedUnacked: true, HasCount: true, DeliveryCount: 2, Redelivered: true}, Count{Carried: true}},
		{"nonsense header", Evidence{Counted: -5}, Count{}},
	} {
		if got := Assess(c.e); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
