package sandbox

import (
	"context"
	"errors"
	"time"

	squad "agentsquad"
	"agentsquad/e2b"
)

// quotaWait is how long an execution waits before it asks again for a sandbox
// that a limit refused, where the provider does not say.
const quotaWait = 15 * time.Second

// translate makes the house's error of a provider's. op is what was attempted,
// such as "create sandbox".
func translate(err error, provider, op string) error {
	var house *squad.Error
	if err == nil || errors.As(err, &house) {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	var e *e2b.Error
	errors.As(err, &e)
	switch {
	case errors.Is(err, e2b.ErrQuota), errors.Is(err, e2b.ErrRateLimited):
		q := squad.Wrap(squad.CodeQuota, err, "sandbox provider %s allows no more now (%s)", provider, message(e))
		q.RetryAfter = quotaWait
		if e != nil && e.RetryAfter > 0 {
			q.RetryAfter = e.RetryAfter
		}
		return q
	case errors.Is(err, e2b.ErrUnauthorized):
		return squad.Wrap(squad.CodeProvider, err, "%s: provider %s refuses our key; check E2B_API_KEY", op, provider)
	case errors.Is(err, e2b.ErrSandboxGone):
		return squad.Wrap(squad.CodeConflict, err, "%s: the sandbox does not run any more", op)
	case errors.Is(err, e2b.ErrPortClosed):
		return squad.Wrap(squad.CodeConflict, err, "%s: nothing listens on that port in the sandbox", op)
	case errors.Is(err, e2b.ErrNotFound):
		return squad.Wrap(squad.CodeNotFound, err, "%s: %s", op, message(e))
	case errors.Is(err, e2b.ErrInvalid):
		return squad.Wrap(squad.CodeInvalid, err, "%s: %s", op, message(e))
	case errors.Is(err, e2b.ErrConflict), errors.Is(err, e2b.ErrExists):
		return squad.Wrap(squad.CodeConflict, err, "%s: %s", op, message(e))
	case errors.Is(err, e2b.ErrNoSpace):
		return squad.Wrap(squad.CodeTooLarge, err, "%s: the sandbox has no space left", op)
	case errors.Is(err, e2b.ErrTimeout):
		return squad.Wrap(squad.CodeTimeout, err, "%s: provider %s did not answer in time", op, provider)
	case errors.Is(err, e2b.ErrBusy):
		return squad.Wrap(squad.CodeUnavailable, err, "%s: provider %s is busy", op, provider)
	}
	return squad.Wrap(squad.CodeProvider, err, "%s: provider %s failed", op, provider)
}

func message(e *e2b.Error) string {
	if e == nil {
		return "no details"
	}
	if e.Message == "" && e.Kind != nil {
		return e.Kind.Error()
	}
	return e.Message
}

// kindOf is the failure in one word, for metrics.
func kindOf(err error) string {
	for kind, word := range map[error]string{
		e2b.ErrQuota: "quota", e2b.ErrRateLimited: "rate_limited", e2b.ErrTimeout: "timeout", e2b.ErrUnauthorized: "unauthorized",
		e2b.ErrNotFound: "not_found", e2b.ErrSandboxGone: "gone", e2b.ErrBusy: "busy", e2b.ErrInvalid: "invalid", e2b.ErrConflict: "conflict",
	} {
		var e *e2b.Error
		if errors.As(err, &e) && errors.Is(e.Kind, kind) {
			return word
		}
	}
	return "other"
}
