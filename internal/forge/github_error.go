package forge

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-github/v92/github"

	squad "agentsquad"
)

// status is the HTTP status of an answer that refused, 0 for any other error.
func status(err error) int {
	var e *github.ErrorResponse
	if errors.As(err, &e) && e.Response != nil {
		return e.Response.StatusCode
	}
	return 0
}

func isForbidden(err error) bool {
	return status(err) == http.StatusForbidden || status(err) == http.StatusNotFound
}

func isNotProtected(err error) bool { return errors.Is(err, github.ErrBranchNotProtected) }

// isRefused says that a small addition was refused while the rest is well.
func isRefused(err error) bool {
	return isForbidden(err) || status(err) == http.StatusUnprocessableEntity
}

// gitHubError translates an answer of GitHub into ours. nil stays nil.
func gitHubError(err error, doing string) error {
	if err == nil {
		return nil
	}
	var rate *github.RateLimitError
	var abuse *github.AbuseRateLimitError
	switch {
	case errors.As(err, &rate):
		e := squad.Wrap(squad.CodeQuota, err, "%s: GitHub's rate limit is used up until %s", doing, rate.Rate.Reset.Format(time.TimeOnly))
		e.RetryAfter = time.Until(rate.Rate.Reset.Time)
		return e
	case errors.As(err, &abuse):
		e := squad.Wrap(squad.CodeQuota, err, "%s: GitHub asks us to slow down", doing)
		if e.RetryAfter = time.Minute; abuse.RetryAfter != nil {
			e.RetryAfter = *abuse.RetryAfter
		}
		return e
	}
	var answer *github.ErrorResponse
	if !errors.As(err, &answer) || answer.Response == nil {
		return remoteError(0, err, "GitHub", doing)
	}
	if wait := retryAfter(answer.Response); wait > 0 { // whatever the words: the client knows some of them
		e := squad.Wrap(squad.CodeQuota, err, "%s: GitHub says %q", doing, detail(answer))
		e.RetryAfter = wait
		return e
	}
	return squad.Wrap(codeOfStatus(answer.Response.StatusCode, answer.Message+fmt.Sprint(answer.Errors)), err, "%s: GitHub says %q", doing, detail(answer))
}

func detail(e *github.ErrorResponse) string {
	text := e.Message
	for _, d := range e.Errors {
		if d.Message != "" {
			text += "; " + d.Message
		}
	}
	return truncate(text, 300)
}

// codeOfStatus maps what a forge answered. 422 says both "exists already" and "no".
func codeOfStatus(status int, text string) squad.Code {
	switch {
	case status == http.StatusUnauthorized:
		return squad.CodeUnauthorized
	case status == http.StatusForbidden:
		return squad.CodeForbidden
	case status == http.StatusNotFound:
		return squad.CodeNotFound
	case status == http.StatusConflict, strings.Contains(text, "already exists"):
		return squad.CodeConflict
	case status == http.StatusTooManyRequests:
		return squad.CodeQuota
	case status == http.StatusUnprocessableEntity, status == http.StatusMethodNotAllowed, status == http.StatusBadRequest:
		return squad.CodeRule
	}
	return squad.CodeProvider
}
