package queue_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Check refuses what an acquisition refuses, before any I/O.
func TestRequestCheck(t *testing.T) {
	for name, r := range map[string]queue.Request{
		"no kind":         {},
		"another prefix":  {Kind: queue.Mutex(), Prefix: queue.PrefixRead},
		"a negative":      {Kind: queue.Mutex(), Weight: -1},
		"a request":       {Kind: queue.Mutex(), Data: []byte(queue.RevokeMessage)},
		"a long name":     {Kind: queue.Mutex(), Name: strings.Repeat("n", 201)},
		"a name of bytes": {Kind: queue.Mutex(), Name: "\xff"},
	} {
		if err := r.Check(); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	good := queue.Request{Kind: queue.Writer(), Prefix: queue.PrefixRead, Weight: 2, Data: []byte("web-3"), Name: "prices"}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
}
