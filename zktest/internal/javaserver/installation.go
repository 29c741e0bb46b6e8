// Package javaserver runs ZooKeeper's own server, which is written in Java, as a child process
// on a configuration, ports and data of its own.
package javaserver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/turnstile-go/turnstile/internal/java"
)

// An Installation is a ZooKeeper on this machine, and a Java that runs it.
type Installation struct {
	java      string   // the program
	ClassPath []string // jars
}

// Find looks for Java in JAVA_HOME and then in PATH, and for ZooKeeper in ZOOKEEPER_HOME or, if that is not set, where
// Debian installs it. The error wraps missing if one of the two is not installed.
func Find(missing error) (Installation, error) {
	program, err := java.Tool("java")
	if err != nil {
		return Installation{}, fmt.Errorf("%w: %w", missing, err)
	}
	jars, err := findJars(missing)
	if err != nil {
		return Installation{}, err
	}
	return Installation{java: program, ClassPath: jars}, nil
}

// At returns the ZooKeeper in a directory, run by the same Java.
func (in Installation) At(home string) (Installation, error) {
	jars, err := jarsIn(home)
	return Installation{java: in.java, ClassPath: jars}, err
}

func findJars(missing error) ([]string, error) {
	if home := os.Getenv("ZOOKEEPER_HOME"); home != "" {
		jars, err := jarsIn(home)
		if err != nil {
			// This is not missing: the environment names this directory, and a skipped test
			// would hide that the name is wrong.
			return nil, fmt.Errorf("zktest: ZOOKEEPER_HOME: %w", err)
		}
		return jars, nil
	}
	zookeeper := filepath.Join(java.Jars, "zookeeper.jar")
	if _, err := os.Stat(zookeeper); err != nil {
		return nil, fmt.Errorf("%w: ZOOKEEPER_HOME is not set and %s is not there", missing, zookeeper)
	}
	jars := []string{zookeeper}
	// TLS needs the two jars of Netty, which the manifest of Debian's zookeeper.jar does not name.
	for _, name := range []string{"slf4j-simple.jar", "netty-codec.jar", "netty-resolver.jar"} {
		jars = append(jars, glob(java.Jars, name)...)
	}
	return jars, nil
}

// jarsIn returns the jars of the ZooKeeper in a directory.
func jarsIn(home string) ([]string, error) {
	jars := append(glob(home, "*.jar"), glob(home, "lib", "*.jar")...)
	for _, jar := range jars {
		if strings.HasPrefix(filepath.Base(jar), "zookeeper") {
			return jars, nil
		}
	}
	return nil, fmt.Errorf("%s has no zookeeper jar in it or in its lib", home)
}

// glob is filepath.Glob for patterns that are known to be well formed.
func glob(parts ...string) []string {
	names, _ := filepath.Glob(filepath.Join(parts...))
	return names
}

// command returns the command that runs a server on a configuration file. conf is the
// directory with the loggers' configuration.
func (in Installation) command(c Config, conf, file string) *exec.Cmd {
	path := append([]string{conf}, in.ClassPath...)
	// A small heap and a quick start matter more here than throughput.
	cmd := exec.Command(in.java, append(slices.Clone(java.QuickStart),
		"-cp", strings.Join(path, string(os.PathListSeparator)),
		"-Djava.net.preferIPv4Stack=true",
		"-Dzookeeper.jmx.log4j.disable=true",
		"-Dzookeeper.forceSync=no",
		"-Dzookeeper.preAllocSize=64", // KB; 64 MB a log file otherwise
		"-Dzookeeper.extendedTypesEnabled=true",
		fmt.Sprintf("-Dznode.container.checkIntervalMs=%d", c.ContainerCheck.Milliseconds()),
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", file)...)
	cmd.Env = append(os.Environ(), c.Environ...)
	return cmd
}
