//go:build linux || darwin || freebsd

package supervise

// IsHelper reports whether this process is a guard, or is to become a command. Then it must call
// [Helper] and nothing else.
func IsHelper() bool { return isGuard() || isStarter() }

// Helper is the whole life of a helper. It returns the exit status.
func Helper() int {
	if isStarter() {
		return becomeCommand()
	}
	runGuard()
	return 0
}
