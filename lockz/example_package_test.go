package lockz_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/turnstile-go/turnstile/lockz"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// The example of the package's documentation, on a server in this process. A program serves the page
// for operators on an address of its own, such as localhost:6060.
func Example() {
	server, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	operators := http.NewServeMux()
	if err := run(context.Background(), server.ConnectString(), operators); err != nil {
		log.Fatal(err)
	}
	// Output:
	// holds the mutex /locks/invoice-42: request 42
	// connected
}

func run(ctx context.Context, servers string, operators *http.ServeMux) error {
	m, err := session.Connect(ctx, servers)
	if err != nil {
		return err
	}
	defer m.Close()
	operators.Handle("/debug/locks", lockz.Handler(m)) // a *http.ServeMux; before the first lock

	lock, err := zklock.New(m, "/locks/invoice-42")
	if err != nil {
		return err
	}
	return lock.Do(queue.WithLabel(ctx, "request 42"), func(context.Context) error {
		return look(operators)
	})
}

// look asks for the page as an operator does: curl 'localhost:6060/debug/locks?format=json'
func look(operators http.Handler) error {
	answer := httptest.NewRecorder()
	operators.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/debug/locks?format=json", nil))
	var page struct {
		Managers []struct {
			State string
			Holds []struct{ Kind, Path, Label string }
		}
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &page); err != nil {
		return err
	}
	for _, m := range page.Managers {
		for _, hold := range m.Holds {
			fmt.Printf("holds the %s %s: %s\n", hold.Kind, hold.Path, hold.Label)
		}
		fmt.Println(m.State)
	}
	return nil
}
