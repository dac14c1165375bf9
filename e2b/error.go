package e2b

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
)

// Kinds of failure, for errors.Is. Each error that a server or the way to it
// causes is an [*Error] with one of these as its Kind; other errors (a refused
// connection, say) have none.
var (
	ErrInvalid      = errors.New("invalid argument")
	ErrUnauthorized = errors.New("unauthorized")
	ErrForbidden    = errors.New("forbidden")
	ErrNotFound     = errors.New("not found")
	ErrExists       = errors.New("already exists")
	ErrConflict     = errors.New("wrong state")
	ErrQuota        = errors.New("quota exceeded")
	ErrRateLimited  = errors.New("rate limited")
	ErrTimeout      = errors.New("timeout")
	ErrBusy         = errors.New("service busy")
	ErrNoSpace      = errors.New("no space left in sandbox")
	ErrPortClosed   = errors.New("port not open")
	// ErrSandboxGone says that the sandbox does not exist or does not run. Where
	// the control plane says so it is [ErrNotFound] as well.
	ErrSandboxGone = errors.New("sandbox gone")
)

// Error is a failure that the server reported, or a bound that was reached.
type Error struct {
	// Op is what was attempted, such as "create sandbox".
	Op string
	// Kind is one of the Err variables, nil where the answer fits none of them.
	Kind error
	// Status is the HTTP status; 0 where there was no HTTP answer or a stream
	// failed after it began.
	Status int
	// Code is the server's own word for it, where it has one: an error_code of
	// the control plane or a Connect code of the data plane.
	Code string
	// Message is the server's sentence.
	Message string
	// RetryAfter is how long the server asks to wait; 0 where it does not.
	RetryAfter time.Duration
	// Err is the cause, such as a broken connection.
	Err error
}

// Error tells what was attempted and why it failed.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("e2b: " + e.Op)
	if e.Kind != nil {
		b.WriteString(": " + e.Kind.Error())
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	if e.Status != 0 {
		fmt.Fprintf(&b, " (status %d)", e.Status)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is matches the error's kind.
func (e *Error) Is(target error) bool {
	if e.Kind == nil {
		return false
	}
	return target == e.Kind || (target == ErrNotFound && e.Kind == ErrSandboxGone && e.Status == http.StatusNotFound)
}

// CommandExitError says that a command ended with a code other than 0, or by a
// signal (ExitCode -1).
type CommandExitError struct {
	ExitCode int
	// Reason is the sandbox's word for it, such as "exit status 1".
	Reason string
	// Stdout and Stderr are what was collected; empty where writers got it.
	Stdout, Stderr string
}

// Error tells the exit code and the last line of the error output.
func (e *CommandExitError) Error() string {
	text := fmt.Sprintf("e2b: command exited with code %d", e.ExitCode)
	if e.ExitCode < 0 && e.Reason != "" {
		text = "e2b: command ended by " + e.Reason
	}
	lines := strings.Split(strings.TrimSpace(e.Stderr), "\n")
	if last := lines[len(lines)-1]; last != "" {
		text += ": " + last
	}
	return text
}

// wireError is the body of an error answer on both planes.
type wireError struct {
	Code      json.RawMessage `json:"code"`
	Message   string          `json:"message"`
	ErrorCode string          `json:"error_code"`
	SandboxID string          `json:"sandboxId"`
	Port      int             `json:"port"`
}

// httpError makes an error of an HTTP answer.
func httpError(op string, status int, header http.Header, body []byte) *Error {
	var wire wireError
	if json.Unmarshal(body, &wire) != nil {
		wire.Message = strings.TrimSpace(string(body[:min(len(body), 300)]))
	}
	e := &Error{Op: op, Status: status, Code: wire.ErrorCode, Message: wire.Message, RetryAfter: retryAfter(header)}
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusNotAcceptable:
		e.Kind = ErrInvalid
	case http.StatusUnauthorized:
		e.Kind = ErrUnauthorized
	case http.StatusForbidden:
		e.Kind = ErrForbidden
	case http.StatusNotFound, http.StatusGone:
		e.Kind = ErrNotFound
	case http.StatusConflict:
		e.Kind = ErrConflict
	case http.StatusTooManyRequests:
		e.Kind = tooMany(e)
	case http.StatusBadGateway:
		e.Kind = ErrBusy
		if wire.SandboxID != "" {
			e.Kind = ErrSandboxGone
			if wire.Port != 0 {
				e.Kind = ErrPortClosed
			}
		}
	case http.StatusServiceUnavailable:
		e.Kind = ErrBusy
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		e.Kind = ErrTimeout
	case http.StatusInsufficientStorage:
		e.Kind = ErrNoSpace
	}
	return e
}

// tooMany tells a limit on what may exist, which waiting a second does not
// cure, from a limit on the rate of asking, which it does.
func tooMany(e *Error) error {
	text := strings.ToLower(e.Message)
	for _, word := range []string{"concurrent", "maximum number", "quota", "limit reached"} {
		if strings.Contains(text, word) {
			return ErrQuota
		}
	}
	if e.RetryAfter > 0 || strings.Contains(text, "rate") {
		return ErrRateLimited
	}
	return ErrQuota
}

func retryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if v == "" {
		return 0
	}
	if s, err := strconv.Atoi(v); err == nil && s >= 0 {
		return time.Duration(s) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// rpcError makes an error of what a Connect call returned.
func rpcError(op string, err error) error {
	if err == nil {
		return nil
	}
	var own *Error
	if errors.As(err, &own) { // from our transport, which saw the HTTP answer
		e := *own
		e.Op = op
		return &e
	}
	var exit *CommandExitError
	if errors.As(err, &exit) {
		return err
	}
	var ce *connect.Error
	if !errors.As(err, &ce) {
		return netError(op, err)
	}
	if errors.Is(err, context.Canceled) {
		return netError(op, context.Canceled)
	}
	e := &Error{Op: op, Code: ce.Code().String(), Message: ce.Message()}
	switch ce.Code() {
	case connect.CodeInvalidArgument, connect.CodeOutOfRange:
		e.Kind = ErrInvalid
	case connect.CodeUnauthenticated:
		e.Kind = ErrUnauthorized
	case connect.CodePermissionDenied:
		e.Kind = ErrForbidden
	case connect.CodeNotFound:
		e.Kind = ErrNotFound
	case connect.CodeAlreadyExists:
		e.Kind = ErrExists
	case connect.CodeFailedPrecondition, connect.CodeAborted:
		e.Kind = ErrConflict
	case connect.CodeResourceExhausted:
		e.Kind = ErrRateLimited
	case connect.CodeDeadlineExceeded:
		e.Kind = ErrTimeout
		if errors.Is(err, context.DeadlineExceeded) {
			e.Err = context.DeadlineExceeded
		}
	case connect.CodeUnavailable:
		e.Kind, e.Err = ErrBusy, ce.Unwrap()
	}
	return e
}

// netError makes an error of a call that got no answer. A bound that was
// reached is [ErrTimeout] and context.DeadlineExceeded; an end that the caller
// wished stays context.Canceled.
func netError(op string, err error) error {
	var own *Error
	if errors.As(err, &own) {
		return err
	}
	e := &Error{Op: op, Err: err}
	if errors.Is(err, context.DeadlineExceeded) {
		e.Kind = ErrTimeout
	}
	return e
}
