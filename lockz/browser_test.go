package lockz_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
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

// screenshot returns a picture of the document in the light or the dark scheme.
func (b browser) screenshot(tb testing.TB, address string, width, height int, dark bool) image.Image {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "page.png")
	scheme := "--blink-settings=preferredColorScheme=1"
	if dark {
		scheme = "--blink-settings=preferredColorScheme=0"
	}
	b.run(tb, address, scheme, fmt.Sprintf("--window-size=%d,%d", width, height), "--screenshot="+file)
	f, err := os.Open(file)
	must(tb, err)
	defer f.Close()
	picture, err := png.Decode(f)
	must(tb, err)
	return picture
}

// serve serves a document with the headers of a page.
func serve(tb testing.TB, document string, more ...http.HandlerFunc) (address string) {
	tb.Helper()
	headers := get(lockz.Handler(connect(tb)), "", "").Header()
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

// The page has a light and a dark scheme, with its style allowed by its own policy. With -write, the
// light one becomes the picture in the documentation.
func TestBrowserSchemes(t *testing.T) {
	longtest.Only(t)
	b := newBrowser(t)
	address := serve(t, firstOf(realistic(t)))
	for _, c := range []struct {
		dark  bool
		paper color.NRGBA
	}{
		{false, color.NRGBA{0xff, 0xff, 0xff, 0xff}},
		{true, color.NRGBA{0x0d, 0x11, 0x17, 0xff}},
	} {
		picture := b.screenshot(t, address, 1040, 930, c.dark)
		if got := color.NRGBAModel.Convert(picture.At(2, 2)); got != c.paper {
			t.Errorf("dark %v: the background is %v, want %v", c.dark, got, c.paper)
		}
		colours := frequent(picture)
		if len(colours) < 20 {
			t.Errorf("dark %v: only %d colours: where is the text?", c.dark, len(colours))
		}
		if *write && !c.dark {
			must(t, writePicture("../docs/lockz.png", picture, colours))
		}
	}
}

// frequent returns the colours of a picture, the most frequent first.
func frequent(p image.Image) color.Palette {
	count := make(map[color.Color]int)
	for y := range p.Bounds().Dy() {
		for x := range p.Bounds().Dx() {
			count[p.At(x, y)]++
		}
	}
	var all color.Palette
	for c := range count {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b color.Color) int { return count[b] - count[a] })
	return all
}

// writePicture writes a picture with at most 128 colours, which makes a small file.
func writePicture(file string, p image.Image, colours color.Palette) error {
	small := image.NewPaletted(p.Bounds(), colours[:min(128, len(colours))])
	for y := range p.Bounds().Dy() {
		for x := range p.Bounds().Dx() {
			small.Set(x, y, p.At(x, y))
		}
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, small); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o600)
}

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

// With ?refresh=1 a browser loads the page again and again, with the same parameters.
func TestBrowserRefreshes(t *testing.T) {
	longtest.Only(t)
	b := newBrowser(t)
	page := lockz.Handler(connect(t))
	var loaded atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "refresh=1" && loaded.Add(1) == 3 {
			r.URL.RawQuery = "" // the browser ends when the document stays
		}
		page.ServeHTTP(w, r)
	}))
	defer srv.Close()
	b.dom(t, srv.URL+"/debug/locks?refresh=1")
	if n := loaded.Load(); n != 3 {
		t.Errorf("the page was loaded %d times", n)
	}
}
