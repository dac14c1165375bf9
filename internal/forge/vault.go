package forge

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Vault seals secrets with AES-256-GCM under keys that live in one file which
// only the server's user may read. Each sealed value is bound to the identifier
// it was sealed for, so that a row's secret cannot be moved to another row.
//
// The file holds one hex key a line. The first one seals; all of them open, so
// that a rotation needs no stop.
type Vault struct {
	path string

	mu   sync.RWMutex
	keys []vaultKey
}

type vaultKey struct {
	id   [4]byte // first bytes of the key's hash: says which key opens a value
	text string
	aead cipher.AEAD
}

// sealedVersion is the first byte of each sealed value.
const sealedVersion = 1

// OpenVault reads the key file, or makes it (mode 0600) where there is none. It
// refuses a file that others may read.
func OpenVault(path string) (*Vault, error) {
	v := &Vault{path: path}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return v, v.Rotate()
	}
	var err error
	v.keys, err = readKeys(path)
	return v, err
}

func readKeys(path string) (keys []vaultKey, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("stat key file: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("key file %s is readable by others (mode %04o): run chmod 600 %s", path, info.Mode().Perm(), path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read key file: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		key, err := parseVaultKey(line)
		if err != nil {
			return nil, fmt.Errorf("key file %s: %w", path, err)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("key file %s holds no key: restore it from a backup, or remove it to begin anew (sealed credentials are lost then)", path)
	}
	return keys, nil
}

// Rotate puts a new key in front of the file. Values sealed before still open;
// seal them again to retire the old key.
func (v *Vault) Rotate() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	raw := make([]byte, 32)
	rand.Read(raw) // never fails since Go 1.24
	key, err := parseVaultKey(hex.EncodeToString(raw))
	if err != nil {
		return err
	}
	keys := append([]vaultKey{key}, v.keys...)
	var text strings.Builder
	for _, k := range keys {
		text.WriteString(k.text + "\n")
	}
	if err := writeFileAtomic(v.path, []byte(text.String())); err != nil {
		return fmt.Errorf("write key file: %w", err)
	}
	v.keys = keys
	return nil
}

// Seal encrypts secret for the thing with this identifier.
func (v *Vault) Seal(id string, secret []byte) ([]byte, error) {
	v.mu.RLock()
	key := v.keys[0]
	v.mu.RUnlock()
	out := append([]byte{sealedVersion}, key.id[:]...)
	nonce := make([]byte, key.aead.NonceSize())
	rand.Read(nonce)
	out = append(out, nonce...)
	return key.aead.Seal(out, nonce, secret, []byte(id)), nil
}

// Open decrypts what Seal made for the same identifier.
func (v *Vault) Open(id string, sealed []byte) ([]byte, error) {
	if len(sealed) < 5 || sealed[0] != sealedVersion {
		return nil, errors.New("sealed value has an unknown form")
	}
	key, ok := v.key(sealed[1:5])
	if !ok {
		return nil, fmt.Errorf("sealed with key %x, which %s does not hold: restore the key file from a backup", sealed[1:5], v.path)
	}
	rest := sealed[5:]
	if len(rest) < key.aead.NonceSize() {
		return nil, errors.New("sealed value is cut short")
	}
	nonce, box := rest[:key.aead.NonceSize()], rest[key.aead.NonceSize():]
	secret, err := key.aead.Open(nil, nonce, box, []byte(id))
	if err != nil {
		return nil, fmt.Errorf("open sealed value of %s: %w", id, err)
	}
	return secret, nil
}

// Current says whether a value is sealed with the newest key.
func (v *Vault) Current(sealed []byte) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return len(sealed) >= 5 && bytes.Equal(sealed[1:5], v.keys[0].id[:])
}

// key finds the key of a sealed value. One that another node seals with already is in
// the file by then.
func (v *Vault) key(id []byte) (vaultKey, bool) {
	for _, again := range []bool{false, true} {
		if again {
			keys, err := readKeys(v.path)
			if err != nil {
				break
			}
			v.mu.Lock()
			v.keys = keys
			v.mu.Unlock()
		}
		v.mu.RLock()
		keys := v.keys
		v.mu.RUnlock()
		for _, k := range keys {
			if bytes.Equal(k.id[:], id) {
				return k, true
			}
		}
	}
	return vaultKey{}, false
}

func parseVaultKey(text string) (vaultKey, error) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != 32 {
		return vaultKey{}, errors.New("a key is not 64 hex digits") // never name the text
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return vaultKey{}, fmt.Errorf("make cipher: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return vaultKey{}, fmt.Errorf("make cipher mode: %w", err)
	}
	k := vaultKey{text: text, aead: aead}
	sum := sha256.Sum256(raw)
	copy(k.id[:], sum[:])
	return k, nil
}

// writeFileAtomic replaces a file so that a crash leaves the old or the new one,
// never half of either.
func writeFileAtomic(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".key-*") // CreateTemp makes it 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
