// Package api is the HTTP door of the house: routes under /api/v1 with an
// OpenAPI 3.1 document made from the Go types, who may pass (sessions, tokens,
// roles), the event streams, and errors turned into problem JSON.
//
// It promises that an unknown thing and a forbidden one look the same, that a
// change names its actor in the audit log, that an edit with a stale ETag does
// nothing, and that a create with the same Idempotency-Key happens once. It
// keeps no state besides the sign-in limiter; everything else is in the store.
//
// Verbs that belong to rooms further in (sandboxes, executions, forges, the
// gateway) are reached through the small interfaces of ports.go. Where one is
// not given the route still exists and answers 503.
//
// Each open event stream has goroutines of its own, which sleep while the event
// log writes to it; they end with the request or when the server stops.
package api
