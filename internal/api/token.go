package api

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"agentsquad"
	"agentsquad/internal/store"
)

// SignInLifetime is how long a sign-in link may be used, once.
const SignInLifetime = 15 * time.Minute

// Mint makes a token: it fills in the secret's hash and prefix, writes the row,
// and returns it with the secret, which exists nowhere else.
func Mint(ctx context.Context, tx *store.Tx, t squad.APIToken) (squad.CreatedToken, error) {
	secret := newSecret(t.Kind)
	t.Hash = HashSecret(secret)
	t.Prefix = secret[:10]
	if t.Scopes == nil {
		t.Scopes = []string{}
	}
	if err := tx.CreateAPIToken(ctx, &t); err != nil {
		return squad.CreatedToken{}, fmt.Errorf("mint %s token: %w", t.Kind, err)
	}
	return squad.CreatedToken{APIToken: t, Secret: secret}, nil
}

// HashSecret is what is stored of a token's secret. A plain hash is enough,
// since secrets are random and long: there is nothing to guess from a list.
func HashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// newSecret makes at least 160 random bits. E2B's SDKs want their own form.
func newSecret(kind squad.TokenKind) string {
	size, prefix := 24, "squad_"
	switch kind {
	case squad.TokenE2B:
		size, prefix = 20, "e2b_"
	case squad.TokenAgent:
		prefix = "agent_"
	case squad.TokenSession:
		size, prefix = 32, "session_"
	case squad.TokenSignIn:
		prefix = "signin_"
	}
	b := make([]byte, size)
	_, _ = rand.Read(b) // never fails: crypto/rand aborts the program instead
	return prefix + hex.EncodeToString(b)
}

// SignIn makes the secret of a one-time sign-in link for a user.
func SignIn(ctx context.Context, tx *store.Tx, userID string) (squad.CreatedToken, error) {
	return Mint(ctx, tx, squad.APIToken{
		UserID: userID, Kind: squad.TokenSignIn, Name: "sign-in link", ExpiresAt: tx.Now.Add(SignInLifetime),
	})
}
