package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	neturl "net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

const (
	processes = 3
	clients   = 200
	apples    = 150 // fewer than clients
)

// demo starts three processes of this program, sends them the requests of 200 clients at once,
// and counts the answers.
func demo(ctx context.Context, out io.Writer, c config) error {
	db, err := openStock(ctx, c.db)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.fill(ctx, "apple", apples); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var servers []*process
	for range processes {
		p, err := start(self, "-listen", "127.0.0.1:0", "-zk", c.zk, "-db", c.db, "-log", "error")
		if err != nil {
			return err
		}
		defer p.kill() // does nothing when it was stopped
		fmt.Fprintln(out, "a server is", p.url)
		servers = append(servers, p)
	}

	var mu sync.Mutex
	soldOut := 0
	var sold []receipt
	g, gctx := errgroup.WithContext(ctx)
	for i := range clients {
		g.Go(func() error {
			r, err := buy(gctx, servers[i%processes].url, "apple")
			for errors.Is(err, errTryAgain) { // after two seconds in the queue
				r, err = buy(gctx, servers[i%processes].url, "apple")
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				sold = append(sold, r)
			case errors.Is(err, errSoldOut):
				soldOut++
			default:
				return err
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	left, err := db.left(ctx, "apple")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d clients for %d apples: %d sold, %d times sold out, %d left\n",
		clients, apples, len(sold), soldOut, left)
	if len(sold) != apples-left || len(sold)+soldOut != clients {
		return errors.New("the numbers do not add up")
	}
	if err := oneByOne(sold); err != nil {
		return err
	}
	fmt.Fprintln(out, "one by one, in the order of their fencing tokens")
	for _, p := range servers {
		err = errors.Join(err, p.stop())
	}
	return err
}

// oneByOne checks that each deduction has seen the one before it, so that none was lost.
func oneByOne(sold []receipt) error {
	slices.SortFunc(sold, func(a, b receipt) int { return b.Left - a.Left })
	for i := 1; i < len(sold); i++ {
		if a, b := sold[i-1], sold[i]; a.Left == b.Left || a.Token >= b.Token {
			return fmt.Errorf("sold twice, or in another order: %+v and %+v", a, b)
		}
	}
	return nil
}

// errTryAgain is the answer 503: nothing was done.
var errTryAgain = errors.New("try again")

// buy asks a server for one of an item.
func buy(ctx context.Context, url, id string) (receipt, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/stock/deduct?id="+neturl.QueryEscape(id), nil)
	if err != nil {
		return receipt{}, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return receipt{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return receipt{}, err
	}
	switch resp.StatusCode {
	case http.StatusOK:
		var r receipt
		return r, json.Unmarshal(body, &r)
	case http.StatusConflict:
		return receipt{}, errSoldOut
	case http.StatusServiceUnavailable:
		return receipt{}, fmt.Errorf("%w: %s", errTryAgain, body)
	}
	return receipt{}, fmt.Errorf("%s: %s", resp.Status, body)
}

// process is a server in a process of its own.
type process struct {
	cmd *exec.Cmd
	url string
}

// start starts a server and returns when it listens.
func start(exe string, args ...string) (*process, error) {
	cmd := exec.Command(exe, args...)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		p := process{cmd: cmd}
		p.kill()
		return nil, fmt.Errorf("%s does not listen: %w", exe, err)
	}
	return &process{cmd: cmd, url: url}, nil
}

// stop tells a server to finish its requests and to end.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		p.kill() // not every system has this signal
		return nil
	}
	return p.cmd.Wait()
}

// kill ends a server at once.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}
