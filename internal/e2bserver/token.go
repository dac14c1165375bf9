package e2bserver

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// sandboxID is E2B's form of an identifier.
var sandboxID = regexp.MustCompile(`^[a-z0-9]{1,64}$`)

const idLetters = "0123456789abcdefghijklmnopqrstuvwxyz"

// newSandboxID returns "i" and 20 random letters and digits.
func newSandboxID() string { return "i" + randomLetters(20) }

func randomLetters(n int) string {
	var b strings.Builder
	raw := make([]byte, 2*n)
	for b.Len() < n {
		_, _ = rand.Read(raw)
		for _, c := range raw {
			// 252 is the largest multiple of 36 in a byte: no letter is likelier.
			if c < 252 && b.Len() < n {
				b.WriteByte(idLetters[c%36])
			}
		}
	}
	return b.String()
}

// bareID takes the old form "<id>-<client>" apart.
func bareID(id string) string {
	bare, _, _ := strings.Cut(id, "-")
	return bare
}

// seed is the secret from which all access tokens are made, so that they stay
// the same across pause, resume and restart without being stored.
type seed []byte

// loadSeed reads the seed file or makes it on the first start.
func loadSeed(dir string) (seed, error) {
	path := filepath.Join(dir, "seed")
	data, err := os.ReadFile(path)
	if err == nil && len(data) >= 32 {
		return data, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read token seed: %w", err)
	}
	data = make([]byte, 32)
	_, _ = rand.Read(data)
	if err := writeFile(path, data); err != nil {
		return nil, fmt.Errorf("write token seed: %w", err)
	}
	return data, nil
}

func (s seed) mac(purpose, id string) string {
	h := hmac.New(sha256.New, s)
	_, _ = h.Write([]byte(purpose + "\x00" + id))
	return hex.EncodeToString(h.Sum(nil))
}

// envd is the token that opens envd of a sandbox.
func (s seed) envd(id string) string { return s.mac("envd", id) }

// traffic is the token that opens the ports of a sandbox without public traffic.
func (s seed) traffic(id string) string { return s.mac("traffic", id) }

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// fileSignature is the signature of a /files address, by E2B's rule.
func fileSignature(path, operation, user, token, expiration string) string {
	text := path + ":" + operation + ":" + user + ":" + token
	if expiration != "" {
		text += ":" + expiration
	}
	sum := sha256.Sum256([]byte(text))
	return "v1_" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// uploadTag signs the address to which one layer of a build may be sent until
// the given time.
func (s seed) uploadTag(owner, hash string, until time.Time) string {
	return s.mac("upload", owner+"\x00"+hash+"\x00"+strconv.FormatInt(until.Unix(), 10))
}
