package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/turnstile-go/turnstile/zklock"
)

var errTooLong = errors.New("the work takes too long")

// Work that takes too long ends by its own context. The lock is held until the function returns.
func ExampleMutex_Do_timeout() {
	m, closeAll := connectExample()
	defer closeAll()
	lock, err := zklock.New(m, "/locks/report")
	if err != nil {
		log.Fatal(err)
	}
	err = lock.Do(context.Background(), func(ctx context.Context) error {
		ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Millisecond, errTooLong)
		defer cancel()
		<-ctx.Done() // work that looks at its context
		return context.Cause(ctx)
	})
	fmt.Println(err)
	// Output: the work takes too long
}

// Work that looks at no context cannot be ended. Somebody can be told that it takes too long.
func ExampleMutex_Lock_timeout() {
	m, closeAll := connectExample()
	defer closeAll()
	lock, err := zklock.New(m, "/locks/report")
	if err != nil {
		log.Fatal(err)
	}
	if err := lock.Lock(context.Background()); err != nil {
		log.Fatal(err)
	}
	told := make(chan struct{})
	late, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	stop := context.AfterFunc(late, func() {
		fmt.Println("the report takes too long; the lock is held:", lock.Held())
		close(told)
	})
	<-told // the work
	stop() // before cancel, which would call the function
	cancel()
	if err := lock.Unlock(); err != nil {
		log.Fatal(err)
	}
	// Output: the report takes too long; the lock is held: true
}
