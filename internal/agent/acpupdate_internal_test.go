package agent

import "testing"

// What a signal or its time ended has no exit code, and is no success.
func TestExitOf_NullIsNoSuccess(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		output any
		want   *int
	}{
		"code":         {map[string]any{"exit_code": 3.0}, new(3)},
		"null":         {map[string]any{"output": "x", "metadata": map[string]any{"exit": nil}}, new(-1)},
		"nothing said": {map[string]any{"output": "x"}, nil},
		"no object":    {"x", nil},
	} {
		got := exitOf(c.output)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
