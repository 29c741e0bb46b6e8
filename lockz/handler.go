package lockz

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Handler returns a handler for a page that shows what the locks of the managers hold and wait for.
// It begins to record when it is called: call it before the first lock. If it is called again for a
// manager, both pages show the same.
//
// The page is HTML, or JSON if the request has the header "Accept: application/json" without text/html, or the
// parameter format=json. The fields of the JSON are in docs/lockz.md. The handler answers GET and HEAD. It answers other
// methods with 405, and parameters that it does not know or understand with 400.
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

// page returns the page as it is now.
func (h *handler) page() *pageJSON {
	p := &pageJSON{ID: queue.Identity(), Time: time.Now()}
	here := make(map[int64]bool) // the sessions of the page's managers
	for _, m := range h.managers {
		if s := m.Status().Session; s != nil {
			here[s.ID()] = true
		}
	}
	for i, m := range h.managers {
		p.Managers = append(p.Managers, managerOf(m, h.recorders[i], here))
	}
	for _, m := range p.Managers {
		if m.State == session.Connected.String() {
			p.Totals.Connected++
		}
		p.Totals.Holds += len(m.Holds)
		p.Totals.Waits += len(m.Waits)
		p.Totals.Losses += m.LossCount
		for _, w := range m.Waits {
			p.Totals.LongestWait = max(p.Totals.LongestWait, w.Seconds)
		}
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
	asJSON, err := wantsJSON(r)
	if err != nil {
		http.Error(w, "lockz: "+err.Error(), http.StatusBadRequest)
		return
	}
	header.Set("X-Content-Type-Options", "nosniff")
	var body bytes.Buffer // which cannot fail
	if asJSON {
		header.Set("Content-Type", "application/json")
		e := json.NewEncoder(&body)
		e.SetIndent("", "  ")
		err = e.Encode(h.page())
	} else {
		header.Set("Content-Type", "text/html; charset=utf-8")
		header.Set("Content-Security-Policy", contentPolicy)
		header.Set("Referrer-Policy", "no-referrer")
		err = h.page().writeHTML(&body)
	}
	if err != nil {
		http.Error(w, "lockz: "+err.Error(), http.StatusInternalServerError)
		return
	}
	header.Set("Content-Length", strconv.Itoa(body.Len()))
	if r.Method == http.MethodGet {
		_, _ = w.Write(body.Bytes()) // fails if the client has gone away
	}
}

// wantsJSON reports whether a request is for JSON and not for HTML.
func wantsJSON(r *http.Request) (bool, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return false, err
	}
	for name, values := range query {
		if name != "format" || len(values) > 1 || values[0] != "json" && values[0] != "html" {
			return false, fmt.Errorf("%s=%q: want format=json or format=html", name, values)
		}
	}
	if query.Has("format") {
		return query.Get("format") == "json", nil
	}
	accept := strings.ToLower(strings.Join(r.Header.Values("Accept"), ","))
	return strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html"), nil
}
