package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	replicas  = 3
	customers = 5
	orders    = 20 // of each customer
)

// demo starts three replicas, places orders at all of them at once, and waits until all are shipped.
func demo(ctx context.Context, out io.Writer, c config) error {
	c.listen, c.operators = "127.0.0.1:0", "127.0.0.1:0"
	running, stop := context.WithCancel(ctx)
	defer stop()
	var serving errgroup.Group
	var urls []string
	var first *service
	for range replicas {
		s, err := open(ctx, c)
		if err != nil {
			stop()
			return errors.Join(err, serving.Wait())
		}
		fmt.Fprintf(out, "a replica is at %s, and its locks at %s/debug/locks\n", s.url, s.operators)
		urls, first = append(urls, s.url), s
		serving.Go(func() error { return s.run(running) })
	}
	clients, cctx := errgroup.WithContext(ctx)
	for i := range customers * orders {
		clients.Go(func() error {
			_, err := place(cctx, urls, i, order{fmt.Sprint("o-", i), fmt.Sprint("customer ", i%customers), int64(i)})
			return err
		})
	}
	err := clients.Wait()
	shipped := 0
	for err == nil && shipped < customers*orders {
		select {
		case <-time.After(c.shipEvery):
			err = first.QueryRowContext(ctx, `SELECT count(*) FROM shipments`).Scan(&shipped)
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	fmt.Fprintf(out, "%d orders of %d customers at %d replicas: %d shipped\n", customers*orders, customers, replicas, shipped)
	stop()
	return errors.Join(err, serving.Wait())
}

// place sends an order to one replica after the other until it is placed. Sending it again does no harm.
func place(ctx context.Context, urls []string, first int, o order) (receipt, error) {
	form := url.Values{"id": {o.ID}, "customer": {o.Customer}, "amount": {strconv.FormatInt(o.Amount, 10)}}.Encode()
	for i := first; ; i++ {
		r, err := send(ctx, urls[i%len(urls)]+"/orders?"+form)
		if err == nil || ctx.Err() != nil || !errors.Is(err, errAgain) {
			return r, err
		}
	}
}

var errAgain = errors.New("not known to be placed")

func send(ctx context.Context, url string) (r receipt, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return r, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return r, fmt.Errorf("%w: %w", errAgain, err)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		return r, json.NewDecoder(resp.Body).Decode(&r)
	case http.StatusServiceUnavailable:
		return r, errAgain
	}
	return r, errors.New(resp.Status)
}
