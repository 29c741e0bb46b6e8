package news_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/turnstile-go/turnstile/internal/news"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n news.News
		var woken atomic.Int32
		for range 2 {
			go func() {
				<-n.Wait()
				woken.Add(1)
			}()
			synctest.Wait()
		}
		if n.Has() || woken.Load() != 0 {
			t.Fatalf("before Tell: Has is %v, %d woken", n.Has(), woken.Load())
		}
		n.Tell()
		n.Tell()
		synctest.Wait()
		if !n.Has() || woken.Load() != 2 {
			t.Errorf("after Tell: Has is %v, %d of 2 woken", n.Has(), woken.Load())
		}
		select {
		case <-n.Wait():
		default:
			t.Error("Wait after Tell returns a channel that is open")
		}
	})
}

// What many have and few wait for keeps no channel.
func TestNewsAllocates(t *testing.T) {
	all := make([]news.News, 101)
	allocs := testing.AllocsPerRun(len(all)-1, func() {
		all[0].Tell()
		<-all[0].Wait()
		all = all[1:]
	})
	if allocs != 0 {
		t.Errorf("%v allocations without a wait before Tell", allocs)
	}
}
