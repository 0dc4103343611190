package demo

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func testPlan(count int) []Message {
	return Plan(count, "test", rand.New(rand.NewPCG(1, 2)))
}

func TestHonestCourierPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := testPlan(300)
		courier := newFake(plan, honest)
		run := New(courier, plan)
		start := time.Now()
		report, err := run.Do(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// Per 25 messages: two fail twice, one overruns and one panics once, one fails at all four attempts.
		want := Result{Published: 300, Delivered: 288, Parked: 12, Retries: 12 * (2*2 + 1 + 1 + 3)}
		if report.Result != want {
			t.Errorf("result %+v, want %+v", report.Result, want)
		}
		if err := report.Result.Err(); err != nil {
			t.Error(err)
		}
		if len(report.Problems) > 0 {
			t.Errorf("problems %q", report.Problems)
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("took %s", took)
		}
		if !courier.removed {
			t.Error("the topology was left behind")
		}
	})
}

func TestDishonestCourierFails(t *testing.T) {
	plan := testPlan(100)
	number := func(is func(Message) bool) int { return slices.IndexFunc(plan, is) }
	succeeds := number(func(m Message) bool { return m.Behaviour == Succeeds })
	hopeless := number(func(m Message) bool { return m.Behaviour == AlwaysFails })

	tests := []struct {
		name   string
		fault  func(*faults)
		passes bool
		got    func(Result) int
	}{
		{"loses one", func(f *faults) { f.lose = succeeds }, false, func(r Result) int { return r.Lost }},
		{"loses a parked one", func(f *faults) { f.unpark = hopeless }, false, func(r Result) int { return r.Lost }},
		{"delivers one early", func(f *faults) { f.hurry = succeeds }, false, func(r Result) int { return r.Early }},
		{"delivers one with a wrong key", func(f *faults) { f.misroute = succeeds }, false, func(r Result) int { return r.WrongKey }},
		{"delivers one to a wrong queue", func(f *faults) { f.misdeliver = succeeds }, false, func(r Result) int { return r.WrongKey }},
		{"delivers one twice", func(f *faults) { f.repeat = succeeds }, true, func(r Result) int { return r.Duplicates }},
		{"parks one twice", func(f *faults) { f.parkTwice = hopeless }, true, func(r Result) int { return r.Duplicates }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fault := honest
				test.fault(&fault)
				start := time.Now()
				report, err := New(newFake(plan, fault), plan).Do(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if got := test.got(report.Result); got != 1 {
					t.Errorf("counted %d, want 1: %+v", got, report.Result)
				}
				if err := report.Result.Err(); (err == nil) != test.passes {
					t.Errorf("passes: %v, want %v", err, test.passes)
				}
				if len(report.Problems) == 0 {
					t.Error("nothing says which message it was")
				}
				if took := time.Since(start); took > 20*time.Second {
					t.Errorf("took %s", took)
				}
			})
		})
	}
}

func TestRefusedPublishEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := testPlan(50)
		fault := honest
		fault.refuse, fault.removal = errRefused, errors.New("gone away")
		courier := newFake(plan, fault)
		_, err := New(courier, plan).Do(t.Context())
		if !errors.Is(err, errRefused) || !errors.Is(err, fault.removal) {
			t.Errorf("error %v, want both the refusal and the failed removal", err)
		}
	})
}

func TestFailedRemovalDoesNotHideTheReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fault := honest
		fault.removal = errors.New("a node is down")
		report, err := New(newFake(testPlan(50), fault), testPlan(50)).Do(t.Context())
		if err != nil || report.Result.Published != 50 || !errors.Is(report.Left, fault.removal) {
			t.Errorf("error %v, published %d, left %v", err, report.Result.Published, report.Left)
		}
	})
}

func TestSilentBrokerEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fault := honest
		fault.silent = true
		if _, err := New(newFake(testPlan(50), fault), testPlan(50)).Do(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the end of patience", err)
		}
	})
}

func TestInterruptedRunWaitsForWhatIsOnItsWay(t *testing.T) {
	for _, disposable := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			plan := testPlan(300)
			courier := newFake(plan, honest)
			run := New(courier, plan)
			run.Disposable = disposable
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("interrupted"))
			defer cancel()
			start := time.Now()
			_, err := run.Do(ctx)
			if err == nil || err.Error() != "interrupted" {
				t.Errorf("error %v, want the cause of the interruption", err)
			}
			took := time.Since(start)
			if disposable && took > 2*time.Second {
				t.Errorf("left after %s, want at once", took)
			}
			if !disposable {
				if n := len(courier.ready); n > 0 || took > 8*time.Second {
					t.Errorf("left %d messages behind after %s", n, took)
				}
			}
			if !courier.removed {
				t.Error("the topology was left behind")
			}
			courier.lanes.Wait()
		})
	}
}

func TestPlanHasEveryBehaviourAndBothDestinations(t *testing.T) {
	seen := map[Behaviour]int{}
	exchange, early, late := 0, 0, 0
	ids := map[string]bool{}
	for _, m := range testPlan(300) {
		seen[m.Behaviour]++
		ids[m.ID] = true
		if m.Exchange != "" {
			exchange++
		}
		if m.Delay < time.Second {
			early++
		}
		if m.Delay > 4*time.Second {
			late++
		}
		if m.Delay < minDelay || m.Delay > maxDelay || m.Delay%delayStep != 0 {
			t.Errorf("%s has the delay %s", m.ID, m.Delay)
		}
	}
	for b := Succeeds; b <= AlwaysPanics; b++ {
		if seen[b] == 0 {
			t.Errorf("behaviour %d is missing", b)
		}
	}
	if exchange != 150 || len(ids) != 300 || early == 0 || late == 0 {
		t.Errorf("%d to the exchange, %d ids, %d with short and %d with long delays", exchange, len(ids), early, late)
	}
}
