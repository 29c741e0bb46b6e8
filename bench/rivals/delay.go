package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/zktest"
)

// delayCommand is the first argument of a process that is a delayed way to a server. It is a process
// of its own so that it shares no processor of the Go runtime with the rivals written in Go. It
// sleeps in the kernel, for all frames that are under way at once.
const delayCommand = "delay"

// delay is how long each frame takes, each way.
const delay = time.Millisecond

// delayer is such a process.
type delayer struct {
	cmd  *exec.Cmd
	in   io.Closer // its end is the process's
	addr string
}

// startDelayer starts one before a server: ZooKeeper's, which zktest.Proxy knows, or another.
func startDelayer(zooKeeper bool, target string) (*delayer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	kind := "tcp"
	if zooKeeper {
		kind = "zk"
	}
	cmd := exec.Command(self, delayCommand, kind, target)
	cmd.Stderr = os.Stderr
	in, err0 := cmd.StdinPipe()
	out, err1 := cmd.StdoutPipe()
	if err := errors.Join(err0, err1); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	d := &delayer{cmd: cmd, in: in}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("delay of %s: %w", target, err), d.Close())
	}
	d.addr = strings.TrimSpace(line)
	return d, nil
}

func (d *delayer) Close() error {
	_ = d.in.Close()
	return d.cmd.Wait()
}

// runDelayer is that process: it says where it listens, and ends with its input.
func runDelayer(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 2 {
		return fmt.Errorf("%s: want a kind and an address, got %q", delayCommand, args)
	}
	runtime.GOMAXPROCS(64)
	var way interface {
		io.Closer
		Addr() string
	}
	if args[0] == "zk" {
		p, err := zktest.NewProxy(args[1])
		if err != nil {
			return err
		}
		p.Delay(delay)
		way = p
	} else {
		r, err := startRelay(args[1], delay)
		if err != nil {
			return err
		}
		way = r
	}
	fmt.Fprintln(out, way.Addr())
	_, err := io.Copy(io.Discard, in)
	return errors.Join(err, way.Close())
}
