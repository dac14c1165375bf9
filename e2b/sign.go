package e2b

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"time"
)

// URLOptions bound a signed address.
type URLOptions struct {
	// Expires is how long the address is good; 0 is as long as the sandbox is.
	Expires time.Duration
}

// DownloadURL returns an address from which anyone who has it can GET the file,
// without a key. It makes no request.
func (f *Files) DownloadURL(path string, opts URLOptions) string {
	return f.signed(path, "read", opts)
}

// UploadURL returns an address to which anyone who has it can POST the file,
// as multipart form with one part named "file" or as application/octet-stream.
func (f *Files) UploadURL(path string, opts URLOptions) string {
	return f.signed(path, "write", opts)
}

func (f *Files) signed(path, operation string, opts URLOptions) string {
	base := f.sb.client.cfg.SandboxURL
	if base == "" {
		base = "https://" + f.sb.Host(EnvdPort)
	}
	q := f.query(path)
	if token := f.sb.accessToken; token != "" {
		var until int64
		if opts.Expires > 0 {
			until = time.Now().Add(opts.Expires).Unix()
			q.Set("signature_expiration", strconv.FormatInt(until, 10))
		}
		q.Set("signature", signature(path, operation, f.username(), token, until))
	}
	return base + "/files?" + q.Encode()
}

// signature is E2B's: a hash over what may be done to what by whom until when.
func signature(path, operation, user, token string, until int64) string {
	text := path + ":" + operation + ":" + user + ":" + token
	if until > 0 {
		text += ":" + strconv.FormatInt(until, 10)
	}
	sum := sha256.Sum256([]byte(text))
	return "v1_" + base64.RawStdEncoding.EncodeToString(sum[:])
}
