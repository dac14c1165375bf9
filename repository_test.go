package squad_test

import (
	"testing"

	squad "agentsquad"
)

func TestRepositoryPolicy_CheckoutHasAFolderOfItsOwn(t *testing.T) {
	t.Parallel()
	for path, ok := range map[string]bool{
		"": true, "/home/user/shop": true, "/home/user/work/the lib": true, "/workspace": true, "/tmp/x": true,
		"relative": false, "/": false, "/home/user": false, "/home/user/": false, "/home/user/../x": false, "/etc": false, "/etc/x": false,
		"/proc/1": false, "/usr/lib/x": false, "/run/squad": false, "/opt/squad/objects": false, "/a\nb": false,
	} {
		if err := (squad.RepositoryPolicy{Path: path}).Check(); (err == nil) != ok || err != nil && squad.CodeOf(err) != squad.CodeInvalid {
			t.Errorf("%q: %v", path, err)
		}
	}
	if (squad.RepositoryPolicy{MaxPushBytes: -1}).Check() == nil {
		t.Error("a negative limit passes")
	}
}
