package store

import (
	"database/sql"
	"errors"
	"strings"

	squad "agentsquad"
)

// fault is a kind of database error that somebody outside can cause.
type fault int

const (
	faultNone fault = iota
	faultUnique
	faultReference
	faultRule
	faultRace
)

func faultOf(err error) (kind fault, detail string) {
	if k := sqliteFault(err); k != faultNone {
		_, detail, _ := strings.Cut(err.Error(), "constraint failed: ")
		detail, _, _ = strings.Cut(detail, " (")
		return k, detail
	}
	return postgresFault(err)
}

// isRace says whether the same transaction may succeed when run again.
func isRace(err error) bool {
	kind, _ := faultOf(err)
	return kind == faultRace
}

// translate turns an error that the caller caused into a *squad.Error about a
// thing of the given kind, and leaves others alone.
func translate(err error, kind string) error {
	k, detail := faultOf(err)
	if detail != "" {
		detail = " (" + detail + ")"
	}
	switch k {
	case faultUnique:
		return squad.Wrap(squad.CodeConflict, err, "another %s like this exists already%s", kind, detail)
	case faultReference:
		return squad.Wrap(squad.CodeInvalid, err, "the %s names something that does not exist%s", kind, detail)
	case faultRule:
		return squad.Wrap(squad.CodeInvalid, err, "the %s breaks a rule of the database%s", kind, detail)
	}
	return err
}

// missing turns "no rows" into the error for a thing that is not there.
func missing(err error, kind, id string) error {
	if errors.Is(err, sql.ErrNoRows) {
		return squad.NotFound(kind, id)
	}
	return err
}

// errBadJSON is the answer to a raw message that is no JSON.
var errBadJSON = squad.Errorf(squad.CodeInvalid, "the payload is not valid JSON")

// missingRow is the error for a row that an update or delete did not find.
func missingRow(kind string, id any) error {
	s, _ := id.(string)
	return squad.NotFound(kind, s)
}
