package lockz_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/lockz"
)

// browser is a headless Chromium, which reaches servers on loopback only.
type browser struct{ path string }

// runTime bounds one run of the browser.
const runTime = 2 * time.Minute

func newBrowser(tb testing.TB) browser {
	tb.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		testserver.Missing(tb, errors.New("there is no Chromium on this machine ('make deps' installs Debian's)"))
	}
	return browser{path}
}

// run loads an address and returns what the browser prints. Each run has a profile of its own.
func (b browser) run(tb testing.TB, address string, flags ...string) string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), runTime)
	defer cancel()
	args := append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
		"--disable-quic", "--disable-sync", "--disable-background-networking", "--disable-component-update",
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--user-data-dir=" + tb.TempDir(),
	}, flags...)
	cmd := exec.CommandContext(ctx, b.path, append(args, address)...)
	cmd.WaitDelay = testserver.Patience
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("%s: %v\n%s", b.path, err, stderr.String())
	}
	return string(out)
}

// dom returns the document as the browser has it a few seconds after it was loaded.
func (b browser) dom(tb testing.TB, address string) string {
	tb.Helper()
	return b.run(tb, address, "--virtual-time-budget=4000", "--dump-dom")
}

// serve serves a document with the headers of a page.
func serve(tb testing.TB, document string, more ...http.HandlerFunc) (address string) {
	tb.Helper()
	headers := get(lockz.Handler(idle(tb)), "", "").Header()
	headers.Del("Content-Length")
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		for name, values := range headers {
			w.Header()[name] = values
		}
		_, _ = w.Write([]byte(document))
	})
	for _, f := range more {
		mux.HandleFunc("/probe", f)
	}
	srv := httptest.NewServer(mux)
	tb.Cleanup(srv.Close)
	return srv.URL
}

var startTag = regexp.MustCompile(`<([a-z][a-z0-9]*)[ >]`)

// tags returns the names of the elements of a document, in order.
func tags(document string) []string {
	var all []string
	for _, m := range startTag.FindAllStringSubmatch(document, -1) {
		all = append(all, m[1])
	}
	return all
}

// A browser finds the elements that the page was written with: the HTML is valid, and the names of
// others become text.
func TestBrowserReadsPage(t *testing.T) {
	longtest.Only(t)
	b := newBrowser(t)
	for name, document := range map[string]string{"realistic": firstOf(realistic(t)), "hostile": hostile(t)} {
		got := b.dom(t, serve(t, document))
		if diff := cmp.Diff(tags(document), tags(got)); diff != "" {
			t.Errorf("%s: elements (-written +read):\n%s", name, diff)
		}
		if !strings.Contains(got, "<title>Locks of ") {
			t.Errorf("%s: the title is another: a script has run", name)
		}
	}
}

func firstOf(asHTML, _ string) string { return asHTML }

// probe is a document with the page in frames of several widths. It writes into its title what a script
// reads there.
const probe = `<!DOCTYPE html><title></title><iframe width=320 height=600></iframe><iframe width=390 height=600></iframe>
<iframe width=1200 height=600></iframe><script>
let open = 3, said = [];
document.querySelectorAll("iframe").forEach((frame, i) => {
	frame.onload = () => {
		const page = frame.contentDocument, root = page.documentElement;
		said[i] = frame.width + ": " + (root.scrollWidth <= root.clientWidth ? "fits" : "is too wide") + ", " +
			frame.contentWindow.getComputedStyle(page.querySelector("td")).display;
		if (--open == 0) document.title = said.join("; ");
	};
	frame.srcdoc = %q;
});
</script>`

// On a phone no part of the page is beyond the edge of the screen, and tables become lists.
func TestBrowserWidths(t *testing.T) {
	longtest.Only(t)
	b := newBrowser(t)
	for name, document := range map[string]string{"realistic": firstOf(realistic(t)), "hostile": hostile(t)} {
		got := b.dom(t, serve(t, "", func(w http.ResponseWriter, _ *http.Request) {
			quoted := strings.ReplaceAll(fmt.Sprintf("%+q", document), "</script", `<\/script`)
			_, _ = w.Write([]byte(strings.Replace(probe, "%q", quoted, 1)))
		})+"/probe")
		const want = "<title>320: fits, block; 390: fits, block; 1200: fits, table-cell</title>"
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", name, regexp.MustCompile("<title>.*?</title>").FindString(got), want)
		}
	}
}
