package forge

import (
	"bytes"
	"container/list"
	"crypto/sha256"
	"io"
	"net/http"
	"sync"
)

// conditional asks with If-None-Match for what was read before. GitHub does not
// count an answer of 304 against the rate limit, so polling costs nothing while
// nothing changes.
func conditional(next http.RoundTripper) http.RoundTripper {
	return &etagCache{next: next, entries: map[string]*list.Element{}, order: list.New()}
}

const (
	maxCached     = 200
	maxCachedBody = 1 << 20
)

type etagCache struct {
	next http.RoundTripper

	mu      sync.Mutex
	entries map[string]*list.Element
	order   *list.List // newest first
}

type cachedAnswer struct {
	key, etag string
	header    http.Header
	body      []byte
}

func (c *etagCache) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet {
		return c.next.RoundTrip(req)
	}
	// What one credential may read, another may not: it is part of the key.
	who := sha256.Sum256([]byte(req.Header.Get("Authorization")))
	key := req.URL.String() + "\x00" + req.Header.Get("Accept") + "\x00" + string(who[:])
	old := c.get(key)
	if old != nil {
		req = req.Clone(req.Context())
		req.Header.Set("If-None-Match", old.etag)
	}
	resp, err := c.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusNotModified && old != nil {
		resp.Body.Close()
		header := resp.Header // of now: it has the rate
		for k, v := range old.header {
			if header.Get(k) == "" {
				header[k] = v
			}
		}
		resp.StatusCode, resp.Status, resp.Header = http.StatusOK, "200 OK", header
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(old.body)), int64(len(old.body))
		return resp, nil
	}
	etag := resp.Header.Get("ETag")
	if resp.StatusCode != http.StatusOK || etag == "" {
		return resp, nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxCachedBody+1))
	if err != nil {
		resp.Body.Close()
		return nil, err
	}
	if len(body) > maxCachedBody { // too large to keep: hand on what was read and the rest
		resp.Body = &joined{Reader: io.MultiReader(bytes.NewReader(body), resp.Body), Closer: resp.Body}
		return resp, nil
	}
	resp.Body.Close()
	c.put(&cachedAnswer{key: key, etag: etag, header: resp.Header.Clone(), body: body})
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

type joined struct {
	io.Reader
	io.Closer
}

func (c *etagCache) get(key string) *cachedAnswer {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[key]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cachedAnswer)
}

func (c *etagCache) put(a *cachedAnswer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[a.key]; e != nil {
		c.order.Remove(e)
	}
	c.entries[a.key] = c.order.PushFront(a)
	for c.order.Len() > maxCached {
		last := c.order.Back()
		delete(c.entries, c.order.Remove(last).(*cachedAnswer).key)
	}
}
