// Package java finds the Java of this machine, for package zktest, which runs ZooKeeper's own server, and for tests
// that run other Java programs.
package java

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// ErrMissing is matched by errors that say that something is not installed.
var ErrMissing = errors.New("java: not installed")

// Jars is where Debian's packages put their jars. The manifest of a jar there names the jars it needs, except a
// logger.
const Jars = "/usr/share/java"

// QuickStart are the flags for a program that is started often and does not run for long.
var QuickStart = []string{
	"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
	// Without this, a killed JVM leaves a file in /tmp/hsperfdata_*.
	"-XX:-UsePerfData",
}

// Tool returns the path of one of Java's programs, from JAVA_HOME or else from PATH.
func Tool(name string) (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		if path, err := exec.LookPath(filepath.Join(home, "bin", name)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%w: no %s in JAVA_HOME or PATH", ErrMissing, name)
	}
	return path, nil
}
