package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
)

// script is what make release runs.
var script = filepath.Join("..", "..", "..", "..", ".ci", "release")

// modules are those beside the library. Users get the command and saslkrb5.
var modules = []string{"bench", "cmd/turnstile", "examples/a", "internal/t", "saslkrb5"}

// files are a repository that can be released as v0.2.0, when v0.1.0 is its last release. Its other modules need
// something that v0.1.0 does not have.
var files = withModules(map[string]string{
	"go.mod":       "module github.com/turnstile-go/turnstile\n\ngo 1.25.0\n",
	"go.work":      "go 1.25.0\n\nuse (\n\t.\n\t./cmd/turnstile\n)\n\nreplace github.com/turnstile-go/turnstile v0.2.0 => ./\n",
	"CHANGELOG.md": "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-11-25\n\n- New.\n\n## [0.1.0] - 2026-10-01\n\n- First.\n",
	"Makefile":     "lint:\n\t@echo checked $@\n",
	".ci/apidiff":  "#!/bin/sh\necho checked apidiff\n",
})

func withModules(files map[string]string) map[string]string {
	for _, m := range modules {
		files[m+"/go.mod"] = "module github.com/turnstile-go/turnstile/" + m +
			"\n\ngo 1.25.0\n\nrequire (\n\tgithub.com/turnstile-go/turnstile v0.2.0\n)\n"
	}
	return files
}

// repository is a repository on the branch main, with the tag v0.1.0 before its last commit.
type repository struct {
	*testing.T
	dir string
}

// ready makes the repository that the tests copy.
func ready(t *testing.T) repository {
	t.Helper()
	r := repository{t, t.TempDir()}
	// The configuration of the user does not matter.
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+who+"_NAME", "test")
		t.Setenv("GIT_"+who+"_EMAIL", "test@example.com")
	}
	r.git("init", "--quiet", "--initial-branch=main", "--template=")
	r.git("commit", "--quiet", "--allow-empty", "-m", "first")
	r.git("tag", "v0.1.0")
	// A pre-release is older than its release, and the command's tags are not the library's.
	r.git("tag", "v0.1.0-rc.1")
	r.git("tag", "cmd/turnstile/v0.3.0")
	for name, text := range files {
		r.write(name, text)
	}
	text, err := os.ReadFile(script)
	expect.NoError(t, err)
	r.write(".ci/release", string(text))
	r.commit()
	return r
}

func (r repository) copyFor(t *testing.T) repository {
	t.Helper()
	dir := t.TempDir()
	expect.NoError(t, os.CopyFS(dir, os.DirFS(r.dir)))
	return repository{t, dir}
}

func (r repository) git(args ...string) {
	r.Helper()
	cmd := exec.CommandContext(r.Context(), "git", args...)
	cmd.Dir = r.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		r.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func (r repository) write(name, text string) {
	r.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		r.Fatal(err)
	}
}

// replace replaces a text in a file, and commits that.
func (r repository) replace(name, before, after string) {
	r.Helper()
	text := strings.ReplaceAll(files[name], before, after)
	if text == files[name] {
		r.Fatalf("%s has no %q", name, before)
	}
	r.write(name, text)
	r.commit()
}

func (r repository) commit() {
	r.Helper()
	r.git("add", "--all")
	r.git("commit", "--quiet", "-m", "change")
}

// release returns the output and the error of the script.
func (r repository) release(version string) (string, error) {
	cmd := exec.CommandContext(r.Context(), "bash", filepath.Join(r.dir, ".ci", "release"), version)
	cmd.Dir = r.dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func nothing(repository) {}

// A repository that is ready is checked by .ci/apidiff and make lint. The tags are printed in the order in which
// they are pushed, and none is made.
func TestReady(t *testing.T) {
	longtest.Only(t)
	original := ready(t)
	for name, c := range map[string]struct {
		version string
		change  func(r repository)
	}{
		"minor":       {"v0.2.0", nothing},
		"pre-release": {"v0.2.0-rc.1", func(r repository) { rename(r, "0.2.0-rc.1") }},
		"after a pre-release": {"v0.2.0", func(r repository) {
			r.git("tag", "v0.2.0-rc.1")
		}},
		"the other modules need nothing new": {"v0.2.0", func(r repository) {
			r.replace("go.work", "\nreplace github.com/turnstile-go/turnstile v0.2.0 => ./\n", "")
			for _, m := range modules {
				r.replace(m+"/go.mod", "v0.2.0", "v0.1.0")
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := original.copyFor(t)
			c.change(r)
			out, err := r.release(c.version)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			rest := out
			for _, want := range []string{
				"checked apidiff\n", "checked lint\n",
				"git push origin " + c.version + "\n",
				"(cd cmd/turnstile && ", "(cd saslkrb5 && ", "require " + c.version + "\"\n",
				"git tag -a cmd/turnstile/" + c.version + " ", "git tag -a saslkrb5/" + c.version + " ",
				"git push origin main cmd/turnstile/" + c.version + " saslkrb5/" + c.version + "\n",
			} {
				_, after, ok := strings.Cut(rest, want)
				if !ok {
					t.Fatalf("no %q at its place in:\n%s", want, out)
				}
				rest = after
			}
			if tag := exec.CommandContext(t.Context(), "git", "-C", r.dir, "rev-parse", "--verify", "--quiet", "refs/tags/"+c.version); tag.Run() == nil {
				t.Error("the script has made the tag")
			}
		})
	}
}

// rename makes another version of the one that is to be released.
func rename(r repository, version string) {
	for name := range files {
		r.write(name, strings.ReplaceAll(files[name], "0.2.0", version))
	}
	r.commit()
}

// A repository that is not ready is refused, with the reason.
func TestNotReady(t *testing.T) {
	longtest.Only(t)
	original := ready(t)
	for name, c := range map[string]struct {
		version string
		change  func(r repository)
		want    string
	}{
		"no version":        {"", nothing, "is no version"},
		"no v":              {"0.2.0", nothing, "is no version"},
		"two numbers":       {"v0.2", nothing, "is no version"},
		"leading zero":      {"v0.02.0", nothing, "is no version"},
		"released":          {"v0.1.0", nothing, "is released already"},
		"older":             {"v0.0.9", nothing, "is not newer than v0.1.0"},
		"older pre-release": {"v0.1.0-rc.2", nothing, "is not newer than v0.1.0"},
		"major":             {"v2.0.0", func(r repository) { rename(r, "2.0.0") }, "ends in /v2"},
		"not committed":     {"v0.2.0", func(r repository) { r.write("new.txt", "") }, "not committed"},
		"another branch":    {"v0.2.0", func(r repository) { r.git("checkout", "--quiet", "-b", "work") }, "this is work, and not main"},
		"no branch":         {"v0.2.0", func(r repository) { r.git("checkout", "--quiet", "--detach") }, "this is no branch"},
		"no section":        {"v0.2.1", nothing, `no section "## [0.2.1] - `},
		"no date":           {"v0.2.0", func(r repository) { r.replace("CHANGELOG.md", " - 2026-11-25", "") }, "has no date"},
		"another replace":   {"v0.2.0", func(r repository) { r.replace("go.work", "v0.2.0", "v0.3.0") }, "go.work replaces v0.3.0"},
		"no replace": {"v0.2.0", func(r repository) {
			r.replace("go.work", "\nreplace github.com/turnstile-go/turnstile v0.2.0 => ./\n", "")
		}, "which go.work does not replace"},
		"another requirement": {"v0.2.0", func(r repository) {
			r.replace("cmd/turnstile/go.mod", "v0.2.0", "v0.0.5")
		}, "cmd/turnstile/go.mod requires v0.0.5"},
		"the API": {"v0.2.0", func(r repository) { r.replace(".ci/apidiff", "echo", "test -z") }, "API changes more than v0.2.0 may"},
		"lint":    {"v0.2.0", func(r repository) { r.replace("Makefile", "@echo", "@test -z") }, "make lint fails"},
	} {
		t.Run(name, func(t *testing.T) {
			r := original.copyFor(t)
			c.change(r)
			out, err := r.release(c.version)
			if err == nil || !strings.Contains(out, c.want) || strings.Contains(out, "git push") {
				t.Errorf("%v, want %q:\n%s", err, c.want, out)
			}
		})
	}
}
