package zklock_test

import (
	"context"
	"fmt"
	"log"

	"github.com/turnstile-go/turnstile/zklock"
)

// A lock for each invoice. Nobody makes or removes them.
func ExampleKeyed() {
	m, closeAll := connectExample()
	defer closeAll()
	invoices, err := zklock.NewKeyed(m, "/locks/invoices") // once in a process
	if err != nil {
		log.Fatal(err)
	}
	for _, id := range []string{"2026/42", "2026/43"} {
		err := invoices.Do(context.Background(), id, func(context.Context) error {
			fmt.Println("alone with invoice", id, "at", invoices.Path(id))
			return nil
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// alone with invoice 2026/42 at /locks/invoices/2026%2F42
	// alone with invoice 2026/43 at /locks/invoices/2026%2F43
}
