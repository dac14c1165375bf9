package forge_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentsquad/internal/forge"
)

func openVault(t *testing.T, path string) *forge.Vault {
	t.Helper()
	v, err := forge.OpenVault(path)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVault_OpensWhatItSealed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	sealed, err := openVault(t, path).Seal("cred-1", []byte("hunter2"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(sealed), "hunter2") {
		t.Fatal("the sealed value shows the secret")
	}
	again := openVault(t, path) // a restart
	secret, err := again.Open("cred-1", sealed)
	if err != nil || string(secret) != "hunter2" {
		t.Fatalf("open: %q, %v", secret, err)
	}
}

func TestVault_SecretIsBoundToItsRow(t *testing.T) {
	t.Parallel()
	v := openVault(t, filepath.Join(t.TempDir(), "key"))
	sealed, _ := v.Seal("cred-1", []byte("hunter2"))
	if _, err := v.Open("cred-2", sealed); err == nil {
		t.Fatal("a secret sealed for one row opened for another")
	}
	sealed[len(sealed)-1] ^= 1
	if _, err := v.Open("cred-1", sealed); err == nil {
		t.Fatal("a changed value opened")
	}
}

func TestVault_RotationKeepsOldValuesReadable(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	v := openVault(t, path)
	old, _ := v.Seal("a", []byte("one"))
	if err := v.Rotate(); err != nil {
		t.Fatal(err)
	}
	fresh, _ := v.Seal("a", []byte("two"))
	if v.Current(old) || !v.Current(fresh) {
		t.Fatal("the newest key is not the one that seals")
	}
	again := openVault(t, path)
	for _, sealed := range [][]byte{old, fresh} {
		if _, err := again.Open("a", sealed); err != nil {
			t.Fatal(err)
		}
	}
}

func TestVault_RefusesAKeyFileOthersMayRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	openVault(t, path)
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Fatalf("key file has mode %o", info.Mode().Perm())
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := forge.OpenVault(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Fatalf("want an error with the remedy, got %v", err)
	}
}
