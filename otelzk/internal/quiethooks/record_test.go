package quiethooks

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/zktest"
)

// dialer is that of session.WithDialer.
type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// record is all that a client sends, step by step.
type record struct {
	mu    sync.Mutex
	step  string
	now   []string // what this step has sent so far
	lines []string // of the earlier steps

	listed map[string]time.Time // when a listing was sent last
}

// over returns a dialer whose connections are recorded.
func (r *record) over(dial dialer) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &conn{Conn: c, to: r}, nil
	}
}

// begin begins a step. Requests of one moment come in any order, so those of a step are sorted.
func (r *record) begin(step string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.now)
	for _, line := range r.now {
		r.lines = append(r.lines, r.step+": "+line)
	}
	r.step, r.now = step, nil
}

// forget forgets what was sent so far.
func (r *record) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = nil
}

// all returns the requests of all steps that are over.
func (r *record) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lines
}

func (r *record) add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if strings.HasPrefix(line, zktest.OpGetChildren2.String()) { // callers of one moment share a listing, or not, as they come
		if r.listed[line].Equal(time.Now()) {
			return
		}
		if r.listed == nil {
			r.listed = make(map[string]time.Time)
		}
		r.listed[line] = time.Now()
	}
	r.now = append(r.now, line)
}

// conn records what is written to it.
type conn struct {
	net.Conn
	to      *record
	greeted bool // the handshake is over, which is no request
	rest    []byte
}

func (c *conn) Write(b []byte) (int, error) { // by one goroutine at a time
	c.rest = append(c.rest, b...)
	for len(c.rest) >= 4 {
		n := 4 + int(binary.BigEndian.Uint32(c.rest))
		if len(c.rest) < n {
			break
		}
		if frame := c.rest[4:n]; !c.greeted {
			c.greeted = true
		} else if line := describe(frame); line != "" {
			c.to.add(line)
		}
		c.rest = c.rest[n:]
	}
	return c.Conn.Write(b)
}

var (
	// A node's id is random.
	id = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	// A traceparent is the one thing that a hook adds to a request. The data of a node then also has another length.
	traceparent = regexp.MustCompile(`,"traceparent":"[-0-9a-f]*"`)
	sized       = regexp.MustCompile(`(\\x[0-9a-f]{2}|.){4}\{"id":`)
)

// A round of the heartbeats: a sync, and a check that changes nothing. They come at times of their own.
var rounds = []string{`sync \x00\x00\x00\x01/`, `multi \x00\x00\x00\x0d\x00\xff\xff\xff\xff\x00\x00\x00\x01/\xff\xff\xff\xff\xff\xff\xff\xff\x01\xff\xff\xff\xff`}

// describe returns all of a request but its number, and "" for a heartbeat.
func describe(frame []byte) string {
	op, body := zktest.Op(binary.BigEndian.Uint32(frame[4:])), frame[8:]
	switch op {
	case zktest.OpPing:
		return ""
	case zktest.OpSetWatches:
		body = body[8:] // the last transaction that the client has seen
	}
	var text strings.Builder
	for _, b := range body {
		if b >= ' ' && b <= '~' {
			text.WriteByte(b)
		} else {
			fmt.Fprintf(&text, `\x%02x`, b)
		}
	}
	plain := traceparent.ReplaceAllString(id.ReplaceAllString(text.String(), "ID"), "")
	line := fmt.Sprintf("%v %s", op, sized.ReplaceAllString(plain, `{"id":`))
	if slices.Contains(rounds, line) {
		return ""
	}
	return line
}
