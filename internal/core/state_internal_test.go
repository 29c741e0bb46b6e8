package core

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/turnstile-go/turnstile/hooks"
)

func TestCanFollow(t *testing.T) {
	next := map[hooks.State][]hooks.State{
		hooks.Connecting: {hooks.Connected, hooks.Closed},
		hooks.Connected:  {hooks.Suspended, hooks.Lost, hooks.Closed},
		hooks.Suspended:  {hooks.Connected, hooks.Lost, hooks.Closed},
		hooks.Lost:       {hooks.Connecting, hooks.Closed},
		hooks.Closed:     nil,
	}
	for from := hooks.Connecting; from <= hooks.Closed+1; from++ {
		for to := hooks.Connecting; to <= hooks.Closed; to++ {
			if from > hooks.Closed && to == hooks.Closed {
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
		var slow, fast, late, first []hooks.State
		ss.add(func(c hooks.Change) { <-block; slow = append(slow, c.To) }, nil)
		ss.add(func(c hooks.Change) { fast = append(fast, c.To) }, nil)
		cancel := ss.add(func(c hooks.Change) { late = append(late, c.To) }, nil)
		ss.add(func(c hooks.Change) { first = append(first, c.To) }, &hooks.Change{To: hooks.Connecting})
		all := []hooks.State{hooks.Connected, hooks.Suspended, hooks.Connected, hooks.Lost, hooks.Connecting}
		for i, s := range all {
			if i == 2 {
				synctest.Wait()
				cancel()
			}
			ss.publish(hooks.Change{To: s})
		}
		synctest.Wait()
		if !slices.Equal(fast, all) {
			t.Errorf("behind a slow one: %v, want %v", fast, all)
		}
		if !slices.Equal(late, all[:2]) {
			t.Errorf("cancelled after two: %v", late)
		}
		if want := append([]hooks.State{hooks.Connecting}, all...); !slices.Equal(first, want) {
			t.Errorf("with a first: %v, want %v", first, want)
		}
		close(block)
		synctest.Wait()
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
		cancel := ss.add(func(hooks.Change) { told++; <-block }, nil)
		for range 3 {
			ss.publish(hooks.Change{To: hooks.Connected})
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
