// Package javaclient runs the Java programs of this module's tests: clients of ZooKeeper to share locks with, and
// to compare with.
package javaclient

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/turnstile-go/turnstile/internal/java"
)

// Program is a Java program that can be run.
type Program struct {
	java      string
	flags     []string
	classPath string
	class     string
}

// CompileCurator compiles the one Java file at source, which may use Curator's recipes,
// into dir. Curator is Debian's, or that of the directory CURATOR_HOME. The program runs with [java.QuickStart], or
// with other flags if any are given.
func CompileCurator(ctx context.Context, source, dir string, flags ...string) (*Program, error) {
	javac, err := java.Tool("javac")
	if err != nil {
		return nil, err
	}
	program, err := java.Tool("java")
	if err != nil {
		return nil, err
	}
	// It is read here, so that go test knows that its result depends on this file.
	if _, err := os.Stat(source); err != nil {
		return nil, fmt.Errorf("javaclient: %w", err)
	}
	jars, err := curatorJars()
	if err != nil {
		return nil, err
	}
	path := append([]string{dir}, jars...)
	p := &Program{
		java:      program,
		flags:     flags,
		classPath: strings.Join(path, string(os.PathListSeparator)),
		class:     strings.TrimSuffix(filepath.Base(source), ".java"),
	}
	if len(flags) == 0 {
		p.flags = java.QuickStart
	}
	out, err := exec.CommandContext(ctx, javac, "-J-XX:TieredStopAtLevel=1", "-cp", p.classPath, "-d", dir, source).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("javaclient: compile %s: %w\n%s", source, err, out)
	}
	return p, nil
}

// curatorHome returns the directory that the environment variable CURATOR_HOME names, or "". Curator's jars,
// and all that they need, are in its lib.
func curatorHome() string { return os.Getenv("CURATOR_HOME") }

// curatorJars returns the jars of CURATOR_HOME, or else Debian's.
func curatorJars() ([]string, error) {
	if home := curatorHome(); home != "" {
		// A directory that is named and has no Curator is not reported as missing: a skipped test
		// would hide that the name is wrong.
		if _, err := CuratorVersion(); err != nil {
			return nil, err
		}
		return filepath.Glob(filepath.Join(home, "lib", "*.jar"))
	}
	var jars []string
	for _, jar := range []string{"curator-recipes.jar", "slf4j-nop.jar"} {
		jar = filepath.Join(java.Jars, jar)
		if _, err := os.Stat(jar); err != nil {
			return nil, fmt.Errorf("%w: %s", java.ErrMissing, jar)
		}
		jars = append(jars, jar)
	}
	return jars, nil
}

// CuratorVersion returns the version in the name of the jar of Curator's recipes, such as 5.4.0.
func CuratorVersion() (string, error) {
	dir := java.Jars
	if home := curatorHome(); home != "" {
		dir = filepath.Join(home, "lib")
	}
	jars, err := filepath.Glob(filepath.Join(dir, "curator-recipes-*.jar"))
	if err == nil && len(jars) == 0 {
		err = fmt.Errorf("no curator-recipes-*.jar in %s", dir)
	}
	if err != nil {
		return "", err
	}
	name := strings.TrimPrefix(filepath.Base(jars[0]), "curator-recipes-")
	return strings.TrimSuffix(name, ".jar"), nil
}

// Command returns the command that runs the program.
func (p *Program) Command(ctx context.Context, args ...string) *exec.Cmd {
	all := slices.Concat(p.flags, []string{"-cp", p.classPath, p.class}, args)
	return exec.CommandContext(ctx, p.java, all...)
}
