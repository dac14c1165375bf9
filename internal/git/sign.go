package git

import (
	"context"
	"crypto/rand"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"

	squad "agentsquad"
)

// SSHSigner makes a [Signer] of an SSH private key (PEM, without passphrase), in
// the form that ssh-keygen -Y and the forges verify. The key stays in this process.
func SSHSigner(key []byte) (Signer, error) {
	signer, err := ssh.ParsePrivateKey(key)
	if err != nil {
		// The cause may quote the key.
		return nil, squad.Errorf(squad.CodeInvalid, "the signing key is not an SSH private key without passphrase")
	}
	return func(_ context.Context, payload []byte) (string, error) { return sshSign(signer, payload) }, nil
}

const (
	sshMagic     = "SSHSIG"
	sshNamespace = "git"
	sshHash      = "sha512"
)

func sshSign(signer ssh.Signer, payload []byte) (string, error) {
	sum := sha512.Sum512(payload)
	signed := append([]byte(sshMagic), ssh.Marshal(struct{ Namespace, Reserved, Hash, Sum string }{sshNamespace, "", sshHash, string(sum[:])})...)
	var sig *ssh.Signature
	var err error
	if rsa, ok := signer.(ssh.AlgorithmSigner); ok && signer.PublicKey().Type() == ssh.KeyAlgoRSA {
		sig, err = rsa.SignWithAlgorithm(rand.Reader, signed, ssh.KeyAlgoRSASHA512) // SHA-1 is refused by all
	} else {
		sig, err = signer.Sign(rand.Reader, signed)
	}
	if err != nil {
		return "", fmt.Errorf("sign with ssh key: %w", err)
	}
	blob := append([]byte(sshMagic), ssh.Marshal(struct {
		Version                                       uint32
		Key, Namespace, Reserved, Hash, SignatureBlob string
	}{1, string(signer.PublicKey().Marshal()), sshNamespace, "", sshHash, string(ssh.Marshal(sig))})...)
	text := base64.StdEncoding.EncodeToString(blob)
	var b strings.Builder
	b.WriteString("-----BEGIN SSH SIGNATURE-----\n")
	for len(text) > 0 {
		n := min(70, len(text))
		b.WriteString(text[:n] + "\n")
		text = text[n:]
	}
	b.WriteString("-----END SSH SIGNATURE-----")
	return b.String(), nil
}
