package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// maxBody bounds the JSON of a request; files have a bound of their own.
const maxBody = 1 << 20

func operation(method, id, path, tag, summary string) huma.Operation {
	return huma.Operation{
		OperationID: id, Method: method, Path: Prefix + path, Summary: summary, Tags: []string{tag},
		MaxBodyBytes: maxBody, BodyReadTimeout: -1, // see patient
		Errors: []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusNotFound},
	}
}

func get(id, path, tag, summary string) huma.Operation {
	return operation(http.MethodGet, id, path, tag, summary)
}

func post(id, path, tag, summary string, status int) huma.Operation {
	op := operation(http.MethodPost, id, path, tag, summary)
	op.DefaultStatus = status
	op.Errors = append(op.Errors, http.StatusForbidden, http.StatusConflict, http.StatusUnprocessableEntity)
	return op
}

// verb is a post that acts on something that exists.
func verb(id, path, tag, summary string) huma.Operation {
	op := post(id, path, tag, summary, http.StatusOK)
	op.Errors = append(op.Errors, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable)
	return op
}

func put(id, path, tag, summary string) huma.Operation {
	op := operation(http.MethodPut, id, path, tag, summary)
	op.Errors = append(op.Errors, http.StatusForbidden)
	return op
}

func patch(id, path, tag, summary string) huma.Operation {
	op := operation(http.MethodPatch, id, path, tag, summary)
	op.Errors = append(op.Errors, http.StatusForbidden, http.StatusConflict, http.StatusPreconditionFailed)
	return op
}

func remove(id, path, tag, summary string) huma.Operation {
	op := operation(http.MethodDelete, id, path, tag, summary)
	op.DefaultStatus = http.StatusNoContent
	op.Errors = append(op.Errors, http.StatusForbidden, http.StatusConflict)
	return op
}

// given makes the list of one filter value, or none for the empty one.
func given[S ~string](v S) []S {
	if v == "" {
		return nil
	}
	return []S{v}
}
