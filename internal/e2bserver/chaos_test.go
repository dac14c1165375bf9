package e2bserver_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// TestChaos_AnyOrderOfVerbsLeavesNothingBehind lets many callers do everything to
// the same sandboxes at once.
func TestChaos_AnyOrderOfVerbsLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	host := newFakeHost()
	r := newRig(t, host)
	var ids sync.Map
	for range 6 {
		ids.Store(r.create(alice, `{"templateID":"base","autoPause":true,"autoResume":{"enabled":true}}`).SandboxID, true)
	}
	verbs := []struct{ method, path, body string }{
		{"POST", "/sandboxes/%s/pause", ""},
		{"POST", "/v2/sandboxes/%s/connect", `{"timeout":60}`},
		{"POST", "/sandboxes/%s/resume", `{"timeout":60}`},
		{"POST", "/sandboxes/%s/timeout", `{"timeout":600}`},
		{"POST", "/sandboxes/%s/snapshots", ""},
		{"PUT", "/sandboxes/%s/network", `{"denyOut":["0.0.0.0/0"]}`},
		{"GET", "/sandboxes/%s", ""},
		{"GET", "/sandboxes/%s/metrics", ""},
		{"DELETE", "/sandboxes/%s", ""},
	}
	allowed := map[int]bool{200: true, 201: true, 204: true, 404: true, 409: true, 502: true}
	var wg sync.WaitGroup
	for worker := range 16 {
		rng := rand.New(rand.NewPCG(1, uint64(worker)))
		wg.Go(func() {
			for range 60 {
				var all []string
				ids.Range(func(k, _ any) bool { all = append(all, k.(string)); return true })
				id := all[rng.IntN(len(all))]
				n := rng.IntN(len(verbs) + 3)
				if n >= len(verbs) { // traffic
					w := httptest.NewRecorder()
					r.server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://8080-"+id+".localhost:7777/", nil))
					if !allowed[w.Code] {
						t.Errorf("traffic: status %d %s", w.Code, w.Body)
					}
					continue
				}
				v := verbs[n]
				if v.method == http.MethodDelete && rng.IntN(4) != 0 {
					continue
				}
				if w := r.call(alice, v.method, fmt.Sprintf(v.path, id), v.body); !allowed[w.Code] {
					t.Errorf("%s %s: status %d %s", v.method, v.path, w.Code, w.Body)
				}
			}
		})
	}
	wg.Wait()
	r.clear()
	if n := host.count(); n != 0 {
		t.Errorf("%d machines left", n)
	}
}
