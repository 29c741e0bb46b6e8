package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
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

// demo starts three processes of this program, has 200 clients ask them all at once, and
// counts.
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
	fmt.Fprintf(out, "%d clients for %d apples: %d sold, %d told that there are no more, %d left\n",
		clients, apples, len(sold), soldOut, left)
	if len(sold) != apples-left || len(sold)+soldOut != clients {
		return errors.New("these do not add up")
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

// oneByOne reports whether each deduction has seen the one before it: none was lost.
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
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/stock/deduct?id="+id, nil)
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

// stop has a server finish what it does, and end.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		p.kill() // there is no such signal everywhere
		return nil
	}
	return p.cmd.Wait()
}

// kill ends a server at once.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}
