package squad

import (
	"errors"
	"fmt"
	"time"
)

// Code is the stable, machine-readable name of a kind of failure.
type Code string

// The codes, with the HTTP status each becomes.
const (
	CodeInvalid      Code = "invalid"        // 400: the request makes no sense
	CodeUnauthorized Code = "unauthorized"   // 401: no or bad credentials
	CodeForbidden    Code = "forbidden"      // 403: known, may see it, may not do it
	CodeNotFound     Code = "not_found"      // 404: unknown, or not yours to know
	CodeConflict     Code = "conflict"       // 409: wrong state for that
	CodeStale        Code = "stale"          // 412: changed since you read it
	CodeTooLarge     Code = "too_large"      // 413
	CodeRule         Code = "rule_broken"    // 422: a rule of the house refuses it
	CodeQuota        Code = "quota_exceeded" // 429: limit or budget reached
	CodeInternal     Code = "internal"       // 500: our fault; details in the log
	CodeProvider     Code = "provider"       // 502: sandbox provider, forge or model failed
	CodeUnavailable  Code = "unavailable"    // 503: try again later
	CodeTimeout      Code = "timeout"        // 504: a bound was reached
)

// Error is the only error whose message reaches users. Whatever else a room
// returns is shown as "internal" and written whole to the log.
type Error struct {
	Code    Code
	Message string // a sentence that names what is wrong and, where it can, the remedy
	Field   string // the request field at fault, if one is
	// RetryAfter is how long to wait before another try is worth it; 0 is unknown.
	RetryAfter time.Duration
	// Err is the cause, for the log and for errors.Is; users never see it.
	Err error
}

// Error returns the message and the cause.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an [Error] with a formatted message.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap makes an [Error] whose message users see and whose cause they do not.
func Wrap(code Code, cause error, format string, args ...any) *Error {
	e := Errorf(code, format, args...)
	e.Err = cause
	return e
}

// Invalid makes a [CodeInvalid] error about one field of a request.
func Invalid(field, format string, args ...any) *Error {
	e := Errorf(CodeInvalid, format, args...)
	e.Field = field
	return e
}

// NotFound makes the [CodeNotFound] error for a thing of the given kind. It is
// also the answer for things that exist and are not the caller's to see.
func NotFound(kind, id string) *Error {
	return &Error{Code: CodeNotFound, Message: fmt.Sprintf("%s %q does not exist or is not yours to see", kind, id)}
}

// CodeOf returns the code of the first [Error] in err's chain, [CodeInternal]
// for any other error, and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}
