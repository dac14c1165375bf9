package e2b_test

import (
	"io"
	"testing"

	"agentsquad/e2b"
	"agentsquad/e2b/e2btest"
)

// BenchmarkOutput compares the codecs on the output of a command.
func BenchmarkOutput(b *testing.B) {
	for name, json := range map[string]bool{"proto": false, "json": true} {
		b.Run(name, func(b *testing.B) {
			s := e2btest.New(machine(b))
			defer s.Close()
			c, err := e2b.New(e2b.Config{APIKey: "k", APIURL: s.URL, SandboxURL: s.URL, JSON: json})
			if err != nil {
				b.Fatal(err)
			}
			sb, err := c.Create(b.Context(), e2b.CreateOptions{})
			if err != nil {
				b.Fatal(err)
			}
			const size = 64 << 20
			b.SetBytes(size)
			for b.Loop() {
				if _, err := sb.Commands.Run(b.Context(), "head -c 67108864 /dev/zero", e2b.CommandOptions{Stdout: io.Discard}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
