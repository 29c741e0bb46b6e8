package report

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Stamp says when figures were made, and from which code.
type Stamp struct {
	Day     string // in UTC, as in 2026-11-25
	Commit  string // a short hash
	Changed bool   // whether the work tree had changes to programs
}

// programs are the files whose changes make a work tree differ from its commit. The pages do not: a run that
// writes two sections has changed one of them by then.
var programs = []string{":(top)*.go", ":(top)*.mod", ":(top)*.sum", ":(top)*.java", ":(top)*.py"}

// Now returns the stamp of figures that are made now, from the repository that dir is in.
func Now(dir string) (Stamp, error) {
	commit, err := git(dir, "rev-parse", "--short=7", "HEAD")
	if err != nil {
		return Stamp{}, err
	}
	changes, err := git(dir, append([]string{"status", "--porcelain", "--"}, programs...)...)
	if err != nil {
		return Stamp{}, err
	}
	return Stamp{Day: time.Now().UTC().Format(time.DateOnly), Commit: commit, Changed: changes != ""}, nil
}

// git returns what a git command prints, without the last line break. The repository is the one that dir is in,
// also in a hook of another one, for which git sets these variables.
func git(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "GIT_DIR=") || strings.HasPrefix(v, "GIT_WORK_TREE=") || strings.HasPrefix(v, "GIT_INDEX_FILE=")
	})
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return "", fmt.Errorf("report: git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// String returns the stamp as it stands in a page.
func (s Stamp) String() string {
	text := s.Day + " at " + s.Commit
	if s.Changed {
		text += " with changes"
	}
	return text
}
