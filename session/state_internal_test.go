package session

import (
	"slices"
	"testing"
	"testing/synctest"
)

func TestCanFollow(t *testing.T) {
	next := map[State][]State{
		Connecting: {Connected, Closed},
		Connected:  {Suspended, Lost, Closed},
		Suspended:  {Connected, Lost, Closed},
		Lost:       {Connecting, Closed},
		Closed:     nil,
	}
	for from := Connecting; from <= Closed+1; from++ {
		for to := Connecting; to <= Closed; to++ {
			if from > Closed && to == Closed {
				continue
			}
			if got, want := canFollow(from, to), slices.Contains(next[from], to); got != want {
				t.Errorf("%v to %v: %v, want %v", from, to, got, want)
			}
		}
	}
}

func TestSubscribers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ss subscribers
		block := make(chan struct{})
		var slow, fast, late, first []State
		ss.add(func(c Change) { <-block; slow = append(slow, c.To) }, nil)
		ss.add(func(c Change) { fast = append(fast, c.To) }, nil)
		cancel := ss.add(func(c Change) { late = append(late, c.To) }, nil)
		ss.add(func(c Change) { first = append(first, c.To) }, &Change{To: Connecting})
		all := []State{Connected, Suspended, Connected, Lost, Connecting}
		for i, s := range all {
			if i == 2 {
				synctest.Wait()
				cancel()
			}
			ss.publish(Change{To: s})
		}
		synctest.Wait()
		if !slices.Equal(fast, all) {
			t.Errorf("behind a slow one: %v, want %v", fast, all)
		}
		if !slices.Equal(late, all[:2]) {
			t.Errorf("cancelled after two: %v", late)
		}
		if want := append([]State{Connecting}, all...); !slices.Equal(first, want) {
			t.Errorf("with a first: %v, want %v", first, want)
		}
		ss.finish()
		ss.publish(Change{To: Closed})
		close(block)
		synctest.Wait() // and the bubble ends only if their goroutines have
		if !slices.Equal(slow, all) {
			t.Errorf("the slow one, at the end: %v, want %v", slow, all)
		}
		cancel()
	})
}

// A subscriber that cancels during a call gets no further call.
func TestSubscriberCancelledDuringCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ss subscribers
		block := make(chan struct{})
		told := 0
		cancel := ss.add(func(Change) { told++; <-block }, nil)
		for range 3 {
			ss.publish(Change{To: Connected})
		}
		synctest.Wait()
		cancel()
		close(block)
		synctest.Wait()
		if told != 1 {
			t.Errorf("told %d times, want once", told)
		}
	})
}
