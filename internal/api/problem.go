package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"agentsquad"
)

// Problem is an error on the wire: RFC 9457 with a stable code.
type Problem struct {
	Type       string       `json:"type" doc:"Always about:blank; read the code"`
	Title      string       `json:"title"`
	Status     int          `json:"status"`
	Code       squad.Code   `json:"code" doc:"Stable name of the kind of failure"`
	Detail     string       `json:"detail" doc:"What is wrong and, where it can be said, the remedy"`
	Field      string       `json:"field,omitempty" doc:"The request field at fault"`
	Errors     []FieldError `json:"errors,omitempty" doc:"All fields at fault, where there are several"`
	RequestID  string       `json:"request_id,omitempty" doc:"Names this request in the server's log"`
	RetryAfter int          `json:"retry_after,omitempty" doc:"Seconds after which another try is worth it"`
}

// FieldError is one field at fault.
type FieldError struct {
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

// Error returns the detail.
func (p *Problem) Error() string { return p.Detail }

// GetStatus returns the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType names problem JSON.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// StatusOf is the HTTP status of a code.
func StatusOf(code squad.Code) int {
	switch code {
	case squad.CodeInvalid:
		return http.StatusBadRequest
	case squad.CodeUnauthorized:
		return http.StatusUnauthorized
	case squad.CodeForbidden:
		return http.StatusForbidden
	case squad.CodeNotFound:
		return http.StatusNotFound
	case squad.CodeConflict:
		return http.StatusConflict
	case squad.CodeStale:
		return http.StatusPreconditionFailed
	case squad.CodeTooLarge:
		return http.StatusRequestEntityTooLarge
	case squad.CodeRule:
		return http.StatusUnprocessableEntity
	case squad.CodeQuota:
		return http.StatusTooManyRequests
	case squad.CodeProvider:
		return http.StatusBadGateway
	case squad.CodeUnavailable:
		return http.StatusServiceUnavailable
	case squad.CodeTimeout:
		return http.StatusGatewayTimeout
	default:
		return http.StatusInternalServerError
	}
}

// codeOfStatus is for errors that the router makes by itself.
func codeOfStatus(status int) squad.Code {
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusUnsupportedMediaType,
		http.StatusNotAcceptable, http.StatusMethodNotAllowed, http.StatusRequestTimeout:
		return squad.CodeInvalid
	case http.StatusUnauthorized:
		return squad.CodeUnauthorized
	case http.StatusForbidden:
		return squad.CodeForbidden
	case http.StatusNotFound:
		return squad.CodeNotFound
	case http.StatusConflict:
		return squad.CodeConflict
	case http.StatusPreconditionFailed:
		return squad.CodeStale
	case http.StatusRequestEntityTooLarge:
		return squad.CodeTooLarge
	case http.StatusTooManyRequests:
		return squad.CodeQuota
	default:
		return squad.CodeInternal
	}
}

// problemOf turns any error into what the caller sees. Only a [squad.Error]
// shows its message; everything else is written whole to the log.
func problemOf(ctx context.Context, err error) *Problem {
	var known *squad.Error
	switch {
	case errors.As(err, &known):
	case errors.Is(err, context.DeadlineExceeded):
		known = squad.Wrap(squad.CodeTimeout, err, "the request took too long")
	case errors.Is(err, context.Canceled):
		known = squad.Wrap(squad.CodeUnavailable, err, "the request was given up")
	default:
		known = squad.Wrap(squad.CodeInternal, err, "something went wrong on the server; its log has the details")
	}
	info := infoOf(ctx)
	if known.Code == squad.CodeInternal || known.Code == squad.CodeProvider {
		info.log.ErrorContext(ctx, "request failed", "code", known.Code, "error", err)
	}
	status := StatusOf(known.Code)
	p := &Problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status,
		Code: known.Code, Detail: known.Message, Field: known.Field, RequestID: info.id,
	}
	if known.RetryAfter > 0 {
		p.RetryAfter = max(1, int(known.RetryAfter.Seconds()))
	}
	return p
}

// writeProblem answers a request that no operation handles.
func writeProblem(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(r.Context(), err)
	h := w.Header()
	h.Set("Content-Type", p.ContentType(""))
	h.Set("Cache-Control", "no-store")
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="squad"`)
	}
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		_ = json.NewEncoder(w).Encode(p) // the client has gone: nobody to tell
	}
}

// The router has one place for the shape of errors, and it is a variable of its
// package. Set here once, before any API exists, so that validation errors have
// our shape and status too.
func init() {
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		return routerProblem(status, msg, errs)
	}
	huma.NewErrorWithContext = func(hctx huma.Context, status int, msg string, errs ...error) huma.StatusError {
		var p *Problem
		if status >= http.StatusInternalServerError && len(errs) == 1 {
			p = problemOf(hctx.Context(), errs[0])
		} else {
			p = routerProblem(status, msg, errs)
			p.RequestID = infoOf(hctx.Context()).id
		}
		if p.RetryAfter > 0 {
			hctx.SetHeader("Retry-After", strconv.Itoa(p.RetryAfter))
		}
		return p
	}
}

// routerProblem shapes what the router found wrong. Validation is 400 here, for
// 422 is kept for rules of the house. Values are not echoed: they may be secret.
func routerProblem(status int, msg string, errs []error) *Problem {
	if status == http.StatusUnprocessableEntity {
		status = http.StatusBadRequest
	}
	p := &Problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status,
		Code: codeOfStatus(status), Detail: msg,
	}
	for _, err := range errs {
		if err == nil {
			continue
		}
		fe := FieldError{Detail: err.Error()}
		var d huma.ErrorDetailer
		if errors.As(err, &d) {
			detail := d.ErrorDetail()
			fe = FieldError{Field: fieldName(detail.Location), Detail: detail.Message}
		}
		p.Errors = append(p.Errors, fe)
	}
	if len(p.Errors) > 0 {
		p.Field = p.Errors[0].Field
		p.Detail = strings.TrimPrefix(p.Field+": "+p.Errors[0].Detail, ": ")
	}
	return p
}

// fieldName drops the part of a location that says where in the request it was,
// and names a missing property itself instead of the object that lacks it.
func fieldName(location string) string {
	_, name, found := strings.Cut(location, ".")
	if !found {
		return location
	}
	return name
}
