package zktest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/turnstile-go/turnstile/internal/javaclient"
)

// ErrNoZooKeeper is returned by [NewReal] when there is no Java on this
// machine, or neither ZOOKEEPER_HOME nor ZooKeeper in Debian's place for it.
// Match it with [errors.Is].
var ErrNoZooKeeper = errors.New("zktest: no ZooKeeper on this machine")

// installation is a ZooKeeper that can be run.
type installation struct {
	java      string   // the program
	classPath []string // jars
}

// findInstallation looks for Java in JAVA_HOME, then PATH, and for ZooKeeper
// in ZOOKEEPER_HOME or else where Debian has it.
func findInstallation() (installation, error) {
	java, err := javaclient.Tool("java")
	if err != nil {
		return installation{}, fmt.Errorf("%w: %w", ErrNoZooKeeper, err)
	}
	jars, err := findJars()
	if err != nil {
		return installation{}, err
	}
	return installation{java: java, classPath: jars}, nil
}

func findJars() ([]string, error) {
	if home := os.Getenv("ZOOKEEPER_HOME"); home != "" {
		jars := append(glob(home, "*.jar"), glob(home, "lib", "*.jar")...)
		for _, jar := range jars {
			if strings.HasPrefix(filepath.Base(jar), "zookeeper") {
				return jars, nil
			}
		}
		// Not ErrNoZooKeeper: somebody asked for this one, and a test that
		// was skipped would hide that it is not there.
		return nil, fmt.Errorf("zktest: ZOOKEEPER_HOME=%s has no zookeeper jar in it or in its lib", home)
	}
	zookeeper := filepath.Join(javaclient.Jars, "zookeeper.jar")
	if _, err := os.Stat(zookeeper); err != nil {
		return nil, fmt.Errorf("%w: ZOOKEEPER_HOME is not set and %s is not there", ErrNoZooKeeper, zookeeper)
	}
	jars := []string{zookeeper}
	// The second and third are Netty's, which Debian's zookeeper.jar does not name among
	// those it needs: see [SecurePort].
	for _, name := range []string{"slf4j-simple.jar", "netty-codec.jar", "netty-resolver.jar"} {
		jars = append(jars, glob(javaclient.Jars, name)...)
	}
	return jars, nil
}

// glob is filepath.Glob for patterns that are known to be well formed.
func glob(parts ...string) []string {
	names, _ := filepath.Glob(filepath.Join(parts...))
	return names
}

// command returns the arguments that run a server on a configuration file.
// Conf is a directory with the loggers' configuration.
func (in installation) command(c realConfig, conf, file string) *exec.Cmd {
	path := append([]string{conf}, in.classPath...)
	// A small heap and a quick start matter more here than throughput.
	return exec.Command(in.java, append(slices.Clone(javaclient.QuickStart),
		"-cp", strings.Join(path, string(os.PathListSeparator)),
		"-Djava.net.preferIPv4Stack=true",
		"-Dzookeeper.jmx.log4j.disable=true",
		"-Dzookeeper.forceSync=no",
		"-Dzookeeper.preAllocSize=64", // KB; 64 MB a log file otherwise
		"-Dzookeeper.extendedTypesEnabled=true",
		fmt.Sprintf("-Dznode.container.checkIntervalMs=%d", c.containerCheck.Milliseconds()),
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", file)...)
}
