package e2b

import "testing"

func TestSignature_MatchesTheOfficialVector(t *testing.T) {
	t.Parallel()
	got := signature("hello.txt", "read", "user", "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0", 0)
	if want := "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E"; got != want {
		t.Errorf("signature = %s, want %s", got, want)
	}
}

func TestMetadata_IsEscapedAsTheOfficialSDKDoes(t *testing.T) {
	t.Parallel()
	q := ListOptions{Metadata: map[string]string{"a b": "c&d"}}.query()
	if got, want := q.Encode(), "metadata=a%252520b%3Dc%252526d"; got != want {
		t.Errorf("query = %s, want %s", got, want)
	}
}

func TestVersions_AreComparedByNumber(t *testing.T) {
	t.Parallel()
	for have, want := range map[string]bool{"0.10.0": true, "0.5.7": true, "0.5.6": false, "0.3.9": false, "1.0.0-rc1": true, "": true} {
		if got := (&Sandbox{EnvdVersion: have}).atLeast("0.5.7"); got != want {
			t.Errorf("%q at least 0.5.7 = %v", have, got)
		}
	}
}
