package api

import (
	"context"
	"encoding/base64"
	"regexp"
	"slices"
	"strings"

	"agentsquad"
)

// Paging is the part of a list request that every list shares.
type Paging struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"5000" default:"100" doc:"Most items of one page"`
	After  string `query:"after" maxLength:"200" doc:"The next of the page before"`
	Newest bool   `query:"newest" doc:"Newest first"`
}

// Page is one page of a list.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty" doc:"Pass as after for the next page; absent on the last"`
}

// List is the answer of a list.
type List[T any] struct{ Body Page[T] }

// ByID names one thing.
type ByID struct {
	ID string `path:"id" minLength:"1" maxLength:"100"`
}

// Once makes a create safe to send again.
type Once struct {
	Key string `header:"Idempotency-Key" maxLength:"200" doc:"Sent again with the same body, the create happens once and answers the same"`
}

// Matching makes an edit safe against others.
type Matching struct {
	IfMatch string `header:"If-Match" maxLength:"200" doc:"ETag of the version that the edit is based on"`
}

// One is the answer with one thing.
type One[T any] struct {
	ETag string `header:"ETag"`
	Body T
}

// Nothing is the answer without a body.
type Nothing struct{}

// cursorForm is what identifiers look like; the empty one begins a list.
var cursorForm = regexp.MustCompile(`^[0-9a-z-]*$`)

// cursor makes an identifier opaque, so that nobody builds cursors by hand.
func cursor(id string) string { return base64.RawURLEncoding.EncodeToString([]byte(id)) }

// parseCursor reads back what cursor wrote.
func parseCursor(text string) (string, error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) > 100 || !cursorForm.Match(raw) {
		return "", squad.Invalid("after", "is no cursor of this list; send the next of an earlier page")
	}
	return string(raw), nil
}

// paged turns up to limit+1 rows into a page.
func paged[T any](rows []T, limit int, id func(T) string) Page[T] {
	p := Page[T]{Items: rows}
	if len(rows) > limit {
		p.Items = rows[:limit]
		p.Next = cursor(id(p.Items[limit-1]))
	}
	if p.Items == nil {
		p.Items = []T{}
	}
	return p
}

// whole is the page of a list that has no second one.
func whole[T any](rows []T) *List[T] {
	if rows == nil {
		rows = []T{}
	}
	return &List[T]{Page[T]{Items: rows}}
}

// span is one read of a list: of one squad, or of all where SquadID is empty.
type span struct {
	SquadID string
	Limit   int
	After   string
	Newest  bool
}

// across lists what the actor may see: in the squad that was asked for, or in
// all of theirs. Rows are ordered by id over all squads, so that pages of
// several squads can be merged.
func across[T any](ctx context.Context, squadID string, p Paging, id func(T) string, read func(context.Context, span) ([]T, error)) (Page[T], error) {
	a := actorOf(ctx)
	after, err := parseCursor(p.After)
	if err != nil {
		return Page[T]{}, err
	}
	squads, err := visibleSquads(a, squadID)
	if err != nil {
		return Page[T]{}, err
	}
	var rows []T
	for _, one := range squads {
		found, err := read(ctx, span{SquadID: one, Limit: p.Limit + 1, After: after, Newest: p.Newest})
		if err != nil {
			return Page[T]{}, err
		}
		rows = append(rows, found...)
	}
	if len(squads) > 1 {
		slices.SortFunc(rows, func(x, y T) int {
			if p.Newest {
				x, y = y, x
			}
			return strings.Compare(id(x), id(y))
		})
	}
	return paged(rows, p.Limit, id), nil
}

// visibleSquads is where a list reads; [""] means everywhere.
func visibleSquads(a squad.Actor, asked string) ([]string, error) {
	switch {
	case asked != "":
		if !seesSquad(a, asked) {
			return nil, squad.NotFound("squad", asked)
		}
		return []string{asked}, nil
	case a.IsAgent():
		return []string{a.SquadID}, nil
	case a.Admin:
		return []string{""}, nil
	}
	var squads []string
	for id := range a.Roles {
		if a.May(id, squad.RoleViewer) {
			squads = append(squads, id)
		}
	}
	return squads, nil
}

// keep drops the rows that the actor may not see; the cursor stays true, since
// it was made before.
func keep[T any](p Page[T], sees func(T) bool) Page[T] {
	p.Items = slices.DeleteFunc(p.Items, func(row T) bool { return !sees(row) })
	return p
}
