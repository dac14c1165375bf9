package githubtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// ExamplesVersion is that of the package whose payloads scripts/counterparts fetches.
const ExamplesVersion = "7.6.1"

// Example is a webhook delivery as GitHub sent it.
type Example struct {
	Event   string
	Payload json.RawMessage
}

// Examples are GitHub's own payloads of all events.
func Examples(t testing.TB) []Example {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip("SKIPPED, not tested with GitHub's payloads: " + err.Error())
	}
	text, err := os.ReadFile(filepath.Join(cache, "agentsquad", "github-webhooks-"+ExamplesVersion+".json"))
	if err != nil {
		t.Skip("SKIPPED, not tested with GitHub's payloads: they are not here: run scripts/counterparts (needs npm)")
	}
	var events []struct {
		Name     string            `json:"name"`
		Examples []json.RawMessage `json:"examples"`
	}
	if err := json.Unmarshal(text, &events); err != nil {
		t.Fatal(err)
	}
	var out []Example
	for _, e := range events {
		for _, payload := range e.Examples {
			out = append(out, Example{Event: e.Name, Payload: payload})
		}
	}
	return out
}
