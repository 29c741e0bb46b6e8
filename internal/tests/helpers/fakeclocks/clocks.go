package fakeclocks

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
)

// fileEnv is the environment variable that names the file with the settings.
const fileEnv = "TURNSTILE_FAKE_CLOCKS"

// The file has two numbers of eight bytes, in the order of bytes of this machine: by how many seconds the wall
// clock is ahead, and for how many nanoseconds the machine was suspended.
const (
	wallAt   = 0
	asleepAt = 8
	fileSize = 16
)

// Clocks are the clocks of a process that runs a binary of [Build].
type Clocks struct{ file string }

// New returns clocks that are right.
func New(t *testing.T) Clocks {
	t.Helper()
	c := Clocks{filepath.Join(t.TempDir(), "clocks")}
	expect.NoError(t, os.WriteFile(c.file, make([]byte, fileSize), 0o600))
	return c
}

// Own returns the clocks of this process. It returns false if this is not a process with other clocks than
// those of its machine.
func Own() (Clocks, bool) {
	file := os.Getenv(fileEnv)
	return Clocks{file}, file != ""
}

// Env is the environment variable that gives a process these clocks.
func (c Clocks) Env() string { return fileEnv + "=" + c.file }

// SetWall sets by how much the wall clock is ahead, in whole seconds.
func (c Clocks) SetWall(ahead time.Duration) error { return c.write(wallAt, int64(ahead/time.Second)) }

// SetAsleep sets for how long the machine was suspended. That is how far the clock of timers is behind. The
// process must be stopped, so that its clock never goes back.
func (c Clocks) SetAsleep(d time.Duration) error { return c.write(asleepAt, int64(d)) }

func (c Clocks) write(at, value int64) error {
	f, err := os.OpenFile(c.file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(value)), at)
	return err
}
