package envd

import (
	"net/url"
	"time"
)

// ResolvePath opens path resolution to the fuzzer.
func ResolvePath(path, home, workdir string) (string, error) {
	return resolvePath(path, &account{home: home}, workdir)
}

// CheckSignature opens signature checks to the fuzzer.
func CheckSignature(q url.Values, op, token string, now time.Time) error {
	return checkSignature(q, op, token, now)
}
