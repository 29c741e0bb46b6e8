package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/cli"
	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/manual"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

// TestPackages builds the deb, the rpm and the archive of this machine, and installs them into directories.
func TestPackages(t *testing.T) {
	longtest.Only(t)
	if runtime.GOOS != "linux" {
		testserver.Missing(t, errors.New("debs and rpms are for Linux"))
	}
	dir := t.TempDir()
	build(t, filepath.Join(dir, "first"))
	build(t, filepath.Join(dir, "again"))
	p := built(t, filepath.Join(dir, "first"))
	if again := built(t, filepath.Join(dir, "again")); p.sums != again.sums {
		t.Errorf("built again, the files differ:\n%s%s", p.sums, again.sums)
	}
	t.Run("deb", p.deb)
	t.Run("rpm", p.rpm)
	t.Run("archive", p.archive)
	t.Run("sbom", p.sbom)
}

func build(t *testing.T, dir string) {
	t.Helper()
	run(t, "", filepath.Join("..", "..", ".ci", "packages"), "-o", dir, "linux/"+runtime.GOARCH)
}

// run runs a program, with more variables in its environment, and returns what it prints.
func run(t *testing.T, env, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		testserver.Missing(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), strings.Fields(env)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %q: %v\n%s%s", name, args, err, &stdout, &stderr)
	}
	return stdout.String()
}

// packages are the files that a build has made.
type packages struct {
	dir                                 string
	sums                                string
	debFile, rpmFile, tarFile, sbomFile string
}

// built checks the sums of a build.
func built(t *testing.T, dir string) (p packages) {
	t.Helper()
	p.dir = dir
	run(t, "", "sh", "-c", "cd '"+dir+"' && sha256sum --check --strict SHA256SUMS")
	sums, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	p.sums = string(sums)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 5 || strings.Count(p.sums, "\n") != 4 {
		t.Fatalf("files %q, %v; sums:\n%s", files, err, p.sums)
	}
	for _, file := range files {
		for suffix, at := range map[string]*string{
			".deb": &p.debFile, ".rpm": &p.rpmFile, ".tar.gz": &p.tarFile, ".cdx.json": &p.sbomFile,
		} {
			if strings.HasSuffix(file, suffix) {
				*at = file
			}
		}
	}
	return p
}

// version is what names of the archive have.
func (p packages) version() string {
	return strings.Split(filepath.Base(p.tarFile), "_")[1]
}

// pages are the names of all manual pages.
func pages() (all []string) {
	for name := range manual.Pages(cli.Command(), manual.Source{}) {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// files returns the regular files below a directory, but not those of a package manager.
func files(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "usr"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.Contains(path, "/usr/lib/sysimage/") {
			all = append(all, strings.TrimPrefix(path, dir))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// installed checks a package that is installed below a directory, with some files that only its kind of package has.
func (p packages) installed(t *testing.T, root string, more ...string) {
	t.Helper()
	want := append(more, "/usr/bin/turnstile", "/usr/share/bash-completion/completions/turnstile",
		"/usr/share/fish/vendor_completions.d/turnstile.fish")
	for _, page := range pages() {
		want = append(want, "/usr/share/man/man1/"+page+".gz")
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, files(t, root)); diff != "" {
		t.Fatalf("files (-want +got):\n%s", diff)
	}
	says := run(t, "", filepath.Join(root, "usr/bin/turnstile"), "version")
	if !strings.HasPrefix(says, "turnstile v"+p.version()+",") {
		t.Errorf("the binary of %s says %q", p.version(), says)
	}
	for _, page := range pages() {
		readable(t, filepath.Join(root, "usr/share/man/man1", page+".gz"))
	}
	completes(t, root)
}

// readable checks a manual page as Debian's lintian does: groff has nothing to warn of, and whatis finds its line.
func readable(t *testing.T, page string) {
	t.Helper()
	name := strings.TrimSuffix(filepath.Base(page), ".1.gz")
	warnings := run(t, "MANWIDTH=80 MANROFFSEQ= LC_ALL=C.UTF-8",
		"sh", "-c", "man --warnings -E UTF-8 -l '"+page+"' 2>&1 >/dev/null")
	if warnings != "" {
		t.Errorf("%s: %s", name, warnings)
	}
	if line := run(t, "", "lexgrog", page); !strings.Contains(line, `"`+name+" - ") {
		t.Errorf("whatis: %s", line)
	}
}

// completes checks that bash finds the completion by itself, and that it completes.
func completes(t *testing.T, root string) {
	t.Helper()
	path := filepath.Join(root, "usr/bin") + ":" + os.Getenv("PATH")
	got := run(t, "PATH="+path+" XDG_DATA_DIRS="+filepath.Join(root, "usr/share"), "bash", "-c", `
		source /usr/share/bash-completion/bash_completion
		__load_completion turnstile || exit
		COMP_WORDS=(turnstile re) COMP_CWORD=1 COMP_LINE="turnstile re" COMP_POINT=12 COMP_TYPE=9
		__start_turnstile
		printf '%s\n' "${COMPREPLY[@]}"`)
	if strings.TrimSpace(got) != "resize" {
		t.Errorf("bash completes \"turnstile re\" as %q", got)
	}
}

// deb installs the package with dpkg. It has no scripts, so that needs no rights and no system in the directory.
func (p packages) deb(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"updates", "info"} {
		if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin", "dpkg", "--root="+root, "--log="+filepath.Join(root, "log"),
		"--force-not-root", "--path-include=/usr/*", "--install", p.debFile)
	p.installed(t, root, "/usr/share/zsh/vendor-completions/_turnstile", "/usr/share/doc/turnstile/copyright")
	if got := run(t, "", "dpkg-deb", "--field", p.debFile, "Package", "Section", "Homepage"); got !=
		"Package: turnstile\nSection: admin\nHomepage: https://github.com/turnstile-go/turnstile\n" {
		t.Errorf("fields:\n%s", got)
	}
	if scripts := run(t, "", "dpkg-deb", "--ctrl-tarfile", p.debFile); strings.Contains(scripts, "postinst") {
		t.Error("the package has a script")
	}
}

// rpm installs the package, which only root can.
func (p packages) rpm(t *testing.T) {
	root := t.TempDir()
	run(t, "", "rpm", "--checksig", "--nosignature", p.rpmFile)
	if got := run(t, "", "rpm", "-qp", "--queryformat", "%{NAME} %{LICENSE} %{BUILDHOST} %{URL}", p.rpmFile); got !=
		"turnstile Apache-2.0 localhost https://github.com/turnstile-go/turnstile" {
		t.Errorf("fields: %s", got)
	}
	if os.Geteuid() != 0 {
		testserver.Missing(t, errors.New("only root can install an rpm"))
	}
	run(t, "", "rpm", "--root", root, "--force-debian", "--install", p.rpmFile)
	p.installed(t, root, "/usr/share/zsh/site-functions/_turnstile", "/usr/share/licenses/turnstile/LICENSES")
}

// archive unpacks the archive, which has all files in one directory.
func (p packages) archive(t *testing.T) {
	root := t.TempDir()
	run(t, "", "tar", "-C", root, "-xzf", p.tarFile)
	top := filepath.Join(root, strings.TrimSuffix(filepath.Base(p.tarFile), ".tar.gz"))
	if says := run(t, "", filepath.Join(top, "turnstile"), "version"); !strings.Contains(says, p.version()) {
		t.Errorf("the binary of %s says %q", p.version(), says)
	}
	licenses, err := os.ReadFile(filepath.Join(top, "LICENSES"))
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []string{
		"Apache License", "==== github.com/go-zookeeper/zk\n", "==== github.com/spf13/cobra\n", "==== Go\n",
	} {
		if !bytes.Contains(licenses, []byte(of)) {
			t.Errorf("LICENSES lacks %q", of)
		}
	}
	want := []string{"completions/turnstile.bash", "completions/_turnstile", "completions/turnstile.fish"}
	for _, page := range pages() {
		want = append(want, "man/"+page)
	}
	for _, file := range want {
		if _, err := os.Stat(filepath.Join(top, file)); err != nil {
			t.Error(err)
		}
	}
}

// sbom checks the list of modules: it names those that are in the binary, and when it was made is not in it.
func (p packages) sbom(t *testing.T) {
	text, err := os.ReadFile(p.sbomFile)
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		BomFormat  string
		Components []struct{ Name, Version, Purl string }
		Metadata   struct {
			Timestamp string
			Component struct{ Name, Version string }
		}
	}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	m := list.Metadata
	if list.BomFormat != "CycloneDX" || m.Component.Name != "github.com/turnstile-go/turnstile/cmd/turnstile" ||
		m.Component.Version != "v"+p.version() || m.Timestamp != "" {
		t.Errorf("%s %+v", list.BomFormat, m)
	}
	var names []string
	for _, c := range list.Components {
		names = append(names, c.Name)
	}
	for _, name := range []string{
		"std", "github.com/turnstile-go/turnstile", "github.com/go-zookeeper/zk", "github.com/spf13/cobra",
	} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not among %q", name, names)
		}
	}
}
