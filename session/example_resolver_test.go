package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/turnstile-go/turnstile/session"
)

// The servers are in a file, for example one that an orchestrator mounts: a line for each.
func ExampleWithResolver() {
	ctx := context.Background()
	servers, stop := serveExample()
	defer stop()
	dir, err := os.MkdirTemp("", "servers")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "zookeeper.txt")
	if err := os.WriteFile(name, []byte(servers+"\n"), 0o600); err != nil {
		log.Fatal(err)
	}

	fromFile := func(context.Context) ([]string, error) {
		text, err := os.ReadFile(name)
		return strings.Fields(string(text)), err
	}
	m, err := session.Connect(ctx, "/shop", session.WithResolver(fromFile), quietExample())
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	fmt.Println(m.State())
	// Output:
	// connected
}

// The servers are SRV records in DNS: _zookeeper._tcp.example.com.
func ExampleWithResolver_srv() {
	resolve := func(ctx context.Context) ([]string, error) {
		_, records, err := net.DefaultResolver.LookupSRV(ctx, "zookeeper", "tcp", "example.com")
		var servers []string
		for _, r := range records {
			servers = append(servers, net.JoinHostPort(strings.TrimSuffix(r.Target, "."), strconv.Itoa(int(r.Port))))
		}
		return servers, err
	}
	m, err := session.Connect(context.Background(), "/shop", session.WithResolver(resolve))
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
}

// Consul's HTTP API returns the instances of a service that pass their checks.
func ExampleWithResolver_consul() {
	ctx := context.Background()
	servers, stop := serveExample()
	defer stop()
	consul := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { // in place of Consul's
		host, port, _ := net.SplitHostPort(servers)
		fmt.Fprintf(w, `[{"Node": {"Address": %q}, "Service": {"Address": "", "Port": %s}}]`, host, port)
	}))
	defer consul.Close()

	resolve := func(ctx context.Context) ([]string, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, consul.URL+"/v1/health/service/zookeeper?passing", nil)
		if err != nil {
			return nil, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("consul: %s", resp.Status)
		}
		var found []struct {
			Node    struct{ Address string }
			Service struct {
				Address string
				Port    int
			}
		}
		if err := json.NewDecoder(resp.Body).Decode(&found); err != nil {
			return nil, fmt.Errorf("consul: %w", err)
		}
		var all []string
		for _, f := range found {
			host := f.Service.Address
			if host == "" { // the service has the address of its node
				host = f.Node.Address
			}
			all = append(all, net.JoinHostPort(host, strconv.Itoa(f.Service.Port)))
		}
		return all, nil
	}
	m, err := session.Connect(ctx, "", session.WithResolver(resolve), quietExample())
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	fmt.Println(m.State())
	// Output:
	// connected
}
