package gateway

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	squad "agentsquad"
)

var statusOf = map[squad.Code]int{
	squad.CodeInvalid: 400, squad.CodeUnauthorized: 401, squad.CodeForbidden: 403, squad.CodeNotFound: 404, squad.CodeConflict: 409,
	squad.CodeStale: 412, squad.CodeTooLarge: 413, squad.CodeRule: 422, squad.CodeQuota: 429, squad.CodeInternal: 500,
	squad.CodeProvider: 502, squad.CodeUnavailable: 503, squad.CodeTimeout: 504,
}

// message is the sentence that the caller may read.
func message(err error) string {
	var e *squad.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return "the gateway failed; the server's log says why"
}

// fail answers with an error in the form that the client shows: git prints plain
// text, model SDKs read the providers' error objects.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	status := statusOf[squad.CodeOf(err)]
	if status == 0 {
		status = http.StatusInternalServerError
	}
	var e *squad.Error
	if errors.As(err, &e) && e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(e.RetryAfter.Seconds()+1)))
	}
	w.Header().Set("Cache-Control", "no-store")
	if part, rest := cutPath(r.URL.Path); part == "llm" {
		failModel(w, rest, status, err)
		return
	}
	http.Error(w, message(err), status)
}

func failModel(w http.ResponseWriter, rest string, status int, err error) {
	if squad.CodeOf(err) == squad.CodeQuota {
		// 429 would make SDKs try again and again; a spent budget does not heal.
		status = http.StatusForbidden
		w.Header().Set("X-Should-Retry", "false")
	}
	var body any
	if strings.HasPrefix(rest, "anthropic") {
		kind := "api_error"
		if status < 500 {
			kind = "permission_error"
		}
		body = map[string]any{"type": "error", "error": map[string]string{"type": kind, "message": message(err)}}
	} else {
		body = map[string]any{"error": map[string]string{"message": message(err), "type": "squad_gateway", "code": string(squad.CodeOf(err))}}
	}
	text, jsonErr := json.Marshal(body)
	if jsonErr != nil {
		text = []byte(`{}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(text) //nolint:errcheck // the client is gone
}

// cutPath splits "/part/rest".
func cutPath(path string) (part, rest string) {
	part, rest, _ = strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return part, rest
}
