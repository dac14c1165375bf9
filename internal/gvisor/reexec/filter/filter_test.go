package filter_test

import (
	"reflect"
	"runtime"
	"testing"

	"gvisor.dev/gvisor/pkg/seccomp"
	"gvisor.dev/gvisor/pkg/sentry/platform"
	kernel "gvisor.dev/gvisor/runsc/boot/filter"
	"gvisor.dev/gvisor/runsc/boot/filter/config"
	files "gvisor.dev/gvisor/runsc/fsgofer/filter"

	"agentsquad/internal/gvisor/reexec/filter"
)

func TestKnown_AreOfThisGVisor(t *testing.T) {
	t.Parallel()
	known, err := filter.Known()
	if err != nil {
		t.Fatal(err)
	}
	if len(known.Kernel) == 0 {
		t.Skipf("SKIPPED: no programs are built in for %s; run go generate on such a machine to have them", runtime.GOARCH)
	}
	fresh, err := filter.Compile()
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(known, fresh) {
		t.Error("the seccomp programs are not those of this version of gVisor: run go generate ./internal/gvisor/reexec/filter")
	}
}

// TestKnown_AreWhatGVisorWouldCompileHere holds for this very process, with its
// number in the rules.
func TestKnown_AreWhatGVisorWouldCompileHere(t *testing.T) {
	t.Parallel()
	known, err := filter.Known()
	if err != nil {
		t.Fatal(err)
	}
	systrap, err := platform.Lookup("systrap")
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range systrap.PrecompiledSeccompInfo() {
		opt := config.Options{Platform: info, HostFilesystem: true, ControllerFD: 17}
		allow, deny := config.Rules(opt)
		program := seccomp.Program{
			RuleSets: []seccomp.RuleSet{{Rules: deny}, {Rules: allow, Action: seccomp.Allow}}, Options: config.SeccompOptions(opt),
		}
		want, _, err := program.Build()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range known.Kernel {
			got, err := p.RenderInstructions(opt.Vars())
			if err != nil || p.Name != opt.ConfigKey() || !reflect.DeepEqual(got, want) {
				t.Errorf("program %s is not what gVisor compiles here (%v)", p.Name, err)
			}
		}
	}
}

func TestRegister_GVisorFindsThem(t *testing.T) {
	t.Parallel()
	known, err := filter.Known()
	if err != nil {
		t.Fatal(err)
	}
	if err := filter.Register(); err != nil {
		t.Fatal(err)
	}
	for _, p := range known.Kernel {
		if _, found := kernel.GetPrecompiled(p.Name); !found {
			t.Errorf("gVisor's kernel does not find %s", p.Name)
		}
	}
	for _, p := range known.Files {
		if _, found := files.GetPrecompiled(p.Name); !found {
			t.Errorf("gVisor's file process does not find %s", p.Name)
		}
	}
}
