package e2bserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	squad "agentsquad"
)

// maxBody bounds the JSON bodies of the control plane.
const maxBody = 1 << 20

// handler answers one request of the control plane; what it returns as an error
// becomes E2B's error body.
type handler func(w http.ResponseWriter, r *http.Request, owner string) error

// statusOf is the HTTP status that each code becomes.
var statusOf = map[squad.Code]int{
	squad.CodeInvalid:      http.StatusBadRequest,
	squad.CodeUnauthorized: http.StatusUnauthorized,
	squad.CodeForbidden:    http.StatusForbidden,
	squad.CodeNotFound:     http.StatusNotFound,
	squad.CodeConflict:     http.StatusConflict,
	squad.CodeStale:        http.StatusConflict,
	squad.CodeTooLarge:     http.StatusRequestEntityTooLarge,
	squad.CodeRule:         http.StatusBadRequest,
	squad.CodeQuota:        http.StatusTooManyRequests,
	squad.CodeProvider:     http.StatusBadGateway,
	squad.CodeUnavailable:  http.StatusServiceUnavailable,
	squad.CodeTimeout:      http.StatusGatewayTimeout,
}

// errorBody is E2B's form of an error. SDKs read its integer code, not only the
// status of the answer.
type errorBody struct {
	Code      int    `json:"code"`
	Message   string `json:"message"`
	ErrorCode string `json:"error_code,omitempty"`
}

func bodyOf(err error) errorBody {
	var e *squad.Error
	if errors.As(err, &e) {
		if status, ok := statusOf[e.Code]; ok {
			return errorBody{Code: status, Message: e.Message}
		}
	}
	return errorBody{
		Code: http.StatusInternalServerError, Message: "Internal error; the server's log says more",
		ErrorCode: "internal_server_error",
	}
}

func (s *Server) writeError(w http.ResponseWriter, r *http.Request, err error) {
	body := bodyOf(err)
	if body.Code >= http.StatusInternalServerError {
		s.log.ErrorContext(r.Context(), "request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	var e *squad.Error
	if errors.As(err, &e) && e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((e.RetryAfter+time.Second-1)/time.Second)))
	}
	writeJSON(w, body.Code, body)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"code":500,"message":"Internal error"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	_, _ = w.Write(data)
}

// decode reads a JSON object of at most [maxBody] bytes into v. Unknown fields
// are ignored, as SDKs send more than they need. An empty body is an error
// unless optional.
func decode(w http.ResponseWriter, r *http.Request, v any, optional bool) error {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return squad.Errorf(squad.CodeTooLarge, "Request body is larger than %d bytes", maxBody)
		}
		return squad.Wrap(squad.CodeInvalid, err, "Request body could not be read")
	}
	if len(data) == 0 {
		if optional {
			return nil
		}
		return squad.Errorf(squad.CodeInvalid, "Error when parsing request: the body is empty")
	}
	if err := json.Unmarshal(data, v); err != nil {
		return squad.Errorf(squad.CodeInvalid, "Error when parsing request: %s", jsonFault(err))
	}
	return nil
}

// jsonFault says what is wrong with a body without naming Go types.
func jsonFault(err error) string {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fmt.Sprintf("field %q may not be a %s", kind.Field, kind.Value)
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Sprintf("not valid JSON at byte %d", syntax.Offset)
	}
	return "not valid JSON"
}

// noContent answers 204.
func noContent(w http.ResponseWriter) error {
	w.WriteHeader(http.StatusNoContent)
	return nil
}
