package lockz

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// maxRefresh bounds the parameter refresh, in seconds.
const maxRefresh = 3600

// Handler returns a handler for a page that shows what the locks of the managers hold and wait for.
// It begins to record when it is called: call it before the first lock. If it is called again for a
// manager, both pages show the same.
//
// The page is HTML, or JSON if the request has the header "Accept: application/json" or
// the parameter format=json. The fields of the JSON are in docs/lockz.md. The handler writes it piece by piece, so a process
// with many locks needs little memory for it. With the parameter refresh=n, the browser loads the HTML page again
// every n seconds, 1 to 3600. The handler answers GET and HEAD. It answers other methods with 405,
// and parameters that it does not know or understand with 400.
//
// A request of the page sends nothing to ZooKeeper and waits for no server, so it is answered during
// an outage too. The handler can be used by any number of goroutines at once. It asks nobody for a
// password: mount it where only operators can reach it.
//
// Handler panics without managers, and if one of them is nil or was not made by session.Connect. It
// shows a manager that is given twice once.
func Handler(managers ...*session.Manager) http.Handler {
	if len(managers) == 0 {
		panic("lockz: Handler of no managers")
	}
	h := new(handler)
	for _, m := range managers {
		if m == nil {
			panic("lockz: Handler of a nil Manager")
		}
		if !slices.Contains(h.managers, m) {
			h.managers = append(h.managers, m)
			h.recorders = append(h.recorders, recorderOf(m))
		}
	}
	return h
}

type handler struct {
	managers  []*session.Manager
	recorders []*recorder // of the managers
}

// page is what a handler shows. The managers of pageJSON are empty.
type page struct {
	pageJSON
	snapshots []*snapshot
}

// page returns the page as it is now.
func (h *handler) page() *page {
	p := &page{pageJSON: pageJSON{ID: queue.Identity(), Time: time.Now(), Managers: []managerJSON{}}}
	here := liveSessions()
	for i, m := range h.managers {
		p.snapshots = append(p.snapshots, snapshotOf(m, h.recorders[i], here))
	}
	return p
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Vary", "Accept")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "lockz: the methods are GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	how, err := viewOf(r)
	if err != nil {
		http.Error(w, "lockz: "+err.Error(), http.StatusBadRequest)
		return
	}
	header.Set("X-Content-Type-Options", "nosniff")
	if how.json {
		header.Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			_ = h.page().writeJSON(w) // fails if the client has gone away
		}
		return
	}
	var body bytes.Buffer
	if err := h.page().writeHTML(&body, how.refresh); err != nil { // a buffer cannot fail
		http.Error(w, "lockz: "+err.Error(), http.StatusInternalServerError)
		return
	}
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", contentPolicy)
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Content-Length", strconv.Itoa(body.Len()))
	if r.Method == http.MethodGet {
		_, _ = w.Write(body.Bytes()) // fails if the client has gone away
	}
}

// view says how a request wants the page.
type view struct {
	json    bool
	refresh int // seconds; 0 for never
}

func viewOf(r *http.Request) (view, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return view{}, err
	}
	for name, values := range query {
		if name != "format" && name != "refresh" {
			return view{}, fmt.Errorf("unknown parameter %q: want format or refresh", name)
		}
		if len(values) > 1 {
			return view{}, fmt.Errorf("%d values of %s: want one", len(values), name)
		}
	}
	var v view
	switch format := query.Get("format"); format {
	case "":
		v.json = wantsJSON(r.Header.Values("Accept"))
	case "json":
		v.json = true
	case "html":
	default:
		return view{}, fmt.Errorf("format=%q: want json or html", format)
	}
	if n := query.Get("refresh"); n != "" {
		v.refresh, err = strconv.Atoi(n)
		if err != nil || v.refresh < 1 || v.refresh > maxRefresh {
			return view{}, fmt.Errorf("refresh=%q: want a number of seconds from 1 to %d", n, maxRefresh)
		}
	}
	return v, nil
}

// wantsJSON reports whether an Accept header prefers JSON to HTML.
func wantsJSON(accept []string) bool {
	var asJSON, asHTML float64
	for item := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		kind, parameters, err := mime.ParseMediaType(item)
		if err != nil {
			continue
		}
		quality := 1.0
		if q, ok := parameters["q"]; ok {
			if quality, err = strconv.ParseFloat(q, 64); err != nil {
				continue
			}
		}
		switch kind {
		case "application/json":
			asJSON = quality
		case "text/html", "application/xhtml+xml":
			asHTML = max(asHTML, quality)
		}
	}
	return asJSON > asHTML
}
