package otelzk_test

import (
	"context"
	"errors"
	"testing"
)

// A cancelled Lock is no error. The delete of its node is its child all the same.
func TestCancelled(t *testing.T) {
	dir := directory(t)
	c := newClient(t, dir)
	_, wait, cancel := contend(t, c, dir)
	cancel()
	if err := wait(); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	c.started(t, "delete /", 0)
	sameTree(t, c.tree(t, nil), `
caller
  zklock lock mutex canceled position=1 attempts=1 links=1
    create / CLIENT lock-
    getChildren / CLIENT .
    getData / CLIENT lock-0000000001
    getData / CLIENT lock-0000000000
    zklock watch canceled lock-0000000000 links=1
    delete / CLIENT lock-0000000001
`)
}

// A busy TryLock is no error.
func TestBusy(t *testing.T) {
	dir := directory(t)
	c, holder := newClient(t, dir), newClient(t, dir)
	must(t, holder.mx.Lock(patient(t)))
	if ok, err := c.mx.TryLock(patient(t)); ok || err != nil {
		t.Fatal(ok, err)
	}
	sameTree(t, c.tree(t, nil), `
zklock trylock mutex busy position=1 attempts=1
  sync / CLIENT .
  getChildren / CLIENT .
`)
}
