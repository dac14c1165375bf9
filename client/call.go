package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"agentsquad"
)

// Values are the filters of a list, as the API names them.
type Values map[string]string

func (v Values) encode() url.Values {
	q := url.Values{}
	for name, value := range v {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q
}

// pageSize is how many items a list reads at a time.
const pageSize = 500

// List reads any list of the API, page after page, for example "/tasks". The
// typed methods are made of it.
func List[T any](ctx context.Context, c *Client, path string, filter Values) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		q := filter.encode()
		if q.Get("limit") == "" {
			q.Set("limit", strconv.Itoa(pageSize))
		}
		for {
			var page struct {
				Items []T    `json:"items"`
				Next  string `json:"next"`
			}
			if err := c.do(ctx, call{method: http.MethodGet, path: path, query: q, out: &page}); err != nil {
				var zero T
				yield(zero, err)
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			q.Set("after", page.Next)
		}
	}
}

// Collect reads an iterator to its end, or to its first error.
func Collect[T any](seq iter.Seq2[T, error]) ([]T, error) {
	items := []T{}
	for item, err := range seq {
		if err != nil {
			return items, err
		}
		items = append(items, item)
	}
	return items, nil
}

func get[T any](ctx context.Context, c *Client, path string) (T, error) {
	var out T
	err := c.do(ctx, call{method: http.MethodGet, path: path, out: &out})
	return out, err
}

// create posts with an idempotency key of its own.
func create[T any](ctx context.Context, c *Client, path string, body any) (T, error) {
	var out T
	err := c.do(ctx, call{method: http.MethodPost, path: path, body: body, key: squad.NewID(), out: &out})
	return out, err
}

// act posts a verb, which is not repeated.
func act[T any](ctx context.Context, c *Client, path string, body any) (T, error) {
	var out T
	if body == nil {
		body = struct{}{}
	}
	err := c.do(ctx, call{method: http.MethodPost, path: path, body: body, out: &out})
	return out, err
}

func edit[T any](ctx context.Context, c *Client, path, match string, body any) (T, error) {
	var out T
	err := c.do(ctx, call{method: http.MethodPatch, path: path, body: body, match: match, out: &out})
	return out, err
}

func (c *Client) remove(ctx context.Context, path string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: path})
}

// at joins a path with an escaped identifier and what follows it.
func at(noun, id string, rest ...string) string {
	path := "/" + noun + "/" + url.PathEscape(id)
	for _, r := range rest {
		path += "/" + r
	}
	return path
}
