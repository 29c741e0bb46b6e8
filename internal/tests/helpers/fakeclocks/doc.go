// Package fakeclocks builds test binaries whose clocks can be set while they run. With them a test can step
// the wall clock of a client, and let it find that its machine was suspended.
//
// Go programs ask the kernel for the time themselves, and not the C library, so that a preloaded library
// cannot change their clocks. [Build] changes Go's runtime instead, by go build -overlay: what time.Now
// returns, and the clock by which timers fire. It also changes package internal/clock, which asks the kernel
// for how long the machine was suspended.
//
// The binary finds the settings in a file that it maps into its memory. So they take effect at once, and
// also before a process that is stopped executes its next instruction. A process that starts another one
// changes the other's clocks, or a process changes its own:
//
//	clocks := fakeclocks.New(t)
//	cmd := exec.Command(fakeclocks.Build(t, "./zklock", true), "-test.run=…")
//	cmd.Env = append(os.Environ(), clocks.Env())
//
// The package tested must import this one.
package fakeclocks
