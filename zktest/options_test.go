package zktest_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/misusetest"
	"github.com/turnstile-go/turnstile/zktest"
)

// Both kinds of servers refuse the same bad values.
func TestBadCommonOptions(t *testing.T) {
	for name, opts := range map[string][]zktest.CommonOption{
		"nil":               {nil},
		"no servers":        {zktest.Servers(0)},
		"even":              {zktest.Servers(2)},
		"negative":          {zktest.Servers(-1)},
		"no tick":           {zktest.TickTime(0)},
		"negative tick":     {zktest.TickTime(-time.Second)},
		"part of a ms":      {zktest.TickTime(1500 * time.Microsecond)},
		"longest tick":      {zktest.TickTime(math.MaxInt32 * time.Millisecond), zktest.MaxSessionTimeout(time.Minute)},
		"too long":          {zktest.ContainerCheck(1000 * time.Hour)},
		"no check":          {zktest.ContainerCheck(0)},
		"no min":            {zktest.MinSessionTimeout(0), zktest.MaxSessionTimeout(time.Second)},
		"negative min":      {zktest.MinSessionTimeout(-time.Second)},
		"no max":            {zktest.MaxSessionTimeout(0)},
		"max below default": {zktest.MaxSessionTimeout(999 * time.Millisecond)},
		"min over max":      {zktest.MinSessionTimeout(time.Hour)},
		"min over max, set": {zktest.MinSessionTimeout(2 * time.Second), zktest.MaxSessionTimeout(time.Second)},
	} {
		var ours []zktest.Option
		var real []zktest.RealOption
		for _, opt := range opts {
			ours, real = append(ours, opt), append(real, opt)
		}
		refusedByNew(t, name, ours...)
		refusedByNewReal(t, name, real...)
	}
}

func TestBadServerOptions(t *testing.T) {
	for name, opt := range map[string]zktest.Option{
		"nil":        nil,
		"many":       zktest.Servers(65),
		"no packets": zktest.MaxPacket(3),
		"packets":    zktest.MaxPacket(1 << 30),
		"no version": zktest.Version("3.7"),
		"no user":    zktest.SASLUser("", "x"),
	} {
		refusedByNew(t, name, opt)
	}
}

func refusedByNew(t *testing.T, name string, opts ...zktest.Option) {
	t.Helper()
	srv, err := zktest.New(opts...)
	if err == nil {
		_ = srv.Close()
		t.Errorf("New, %s: no error", name)
	}
}

// refusedByNewReal checks that the options fail before ZooKeeper is looked for.
func refusedByNewReal(t *testing.T, name string, opts ...zktest.RealOption) {
	t.Helper()
	e, err := zktest.NewReal(opts...)
	if err == nil {
		_ = e.Close()
	}
	if err == nil || errors.Is(err, zktest.ErrNoZooKeeper) {
		t.Errorf("NewReal, %s: error %v", name, err)
	}
}

// A nil context, and an object that nothing has made, are a panic that says so, at once.
func TestMisuse(t *testing.T) {
	target := sharedServer(t)
	srv, proxy := zktest.Start(t), zktest.StartProxy(t, target)
	misusetest.Check(t, misusetest.Package{
		Name: "zktest",
		Objects: []misusetest.Object{
			{Zero: &zktest.Server{}, Made: srv},
			{Zero: &zktest.Proxy{}, Made: proxy},
			{Zero: &zktest.Ensemble{}, Made: shared.ensemble},
			{Zero: &zktest.Fault{}},
		},
		Values: []any{zktest.Direction(0), zktest.Op(0)},
	})
}
