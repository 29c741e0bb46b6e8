package core

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// Creates of a path and a search for a node there exclude each other. Creates of other paths do
// not wait. No entry stays when they are over.
func TestCreatesAndSearches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c creates
		ctx, cancel := context.WithCancel(t.Context())
		begin := func(path string) {
			if err := c.begin(t.Context(), path); err != nil {
				t.Error(err)
			}
		}
		var alone, created bool
		begin("/a")
		begin("/a")
		go func() { alone = c.alone(t.Context(), "/a") == nil }()
		synctest.Wait()
		go func() { begin("/a"); created = true }()
		begin("/b")
		c.end("/b")
		c.end("/a")
		synctest.Wait()
		if alone || created {
			t.Error("a create is under way, and one waits")
		}
		c.end("/a")
		synctest.Wait()
		if !alone || created {
			t.Errorf("no create is under way: searching %v, created %v", alone, created)
		}
		gaveUp := make(chan error, 2)
		go func() { gaveUp <- c.begin(ctx, "/a") }()
		go func() { gaveUp <- c.alone(ctx, "/a") }()
		synctest.Wait()
		cancel()
		for range 2 {
			if err := <-gaveUp; !errors.Is(err, context.Canceled) {
				t.Errorf("gave up waiting: %v", err)
			}
		}
		c.shared("/a")
		synctest.Wait()
		if !created {
			t.Error("the search is over, and a create still waits")
		}
		c.end("/a")
		if len(c.m) != 0 {
			t.Errorf("left: %v", c.m)
		}
	})
}
