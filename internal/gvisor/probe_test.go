package gvisor_test

import (
	"testing"

	"agentsquad/internal/gvisor"
)

func TestProbe_SaysWhatThisMachineGets(t *testing.T) {
	t.Parallel()
	report := gvisor.Probe(t.Context())
	if !report.Usable || report.Isolation == "" {
		t.Errorf("report %+v", report)
	}
	for _, f := range report.Findings {
		if f.Detail == "" || (!f.OK && f.Remedy == "") {
			t.Errorf("a finding without a reason or remedy: %+v", f)
		}
		t.Logf("%-16s %-5t %s", f.Name, f.OK, f.Detail)
	}
}
