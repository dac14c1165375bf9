package forge_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	squad "agentsquad"
	"agentsquad/internal/forge"
	"agentsquad/internal/store"
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

// A new line at the head of the key file is the new key: at the next start everything
// is sealed with it, another node that runs on still reads, and the old line may go.
func TestCredentials_ResealRetiresTheOldKey(t *testing.T) {
	t.Parallel()
	ctx, path, db := t.Context(), filepath.Join(t.TempDir(), "key"), emptyStore(t)
	running := openVault(t, path)
	cred := squad.Credential{Name: "forge", Kind: squad.CredentialToken, Provider: "gitea"}
	if err := db.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.CreateCredential(ctx, &cred); err != nil {
			return err
		}
		sealed, err := running.Seal(cred.ID, []byte("hunter2"))
		if err != nil {
			return err
		}
		return tx.SetSealedCredential(ctx, cred.ID, sealed)
	}); err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fresh := strings.Repeat("5e", 32) + "\n"
	if err := os.WriteFile(path, append([]byte(fresh), old...), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{1, 0} {
		if n, err := forge.NewCredentials(db, openVault(t, path), nil).Reseal(ctx); n != want || err != nil {
			t.Errorf("%d sealed again, want %d: %v", n, want, err)
		}
	}
	sealed, err := db.SealedCredential(ctx, cred.ID)
	if err != nil {
		t.Fatal(err)
	}
	if secret, err := running.Open(cred.ID, sealed); err != nil || string(secret) != "hunter2" {
		t.Errorf("a node that runs on: %q, %v", secret, err)
	}
	if err := os.WriteFile(path, []byte(fresh), 0o600); err != nil {
		t.Fatal(err)
	}
	if secret, err := openVault(t, path).Open(cred.ID, sealed); err != nil || string(secret) != "hunter2" {
		t.Errorf("without the old key: %q, %v", secret, err)
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
