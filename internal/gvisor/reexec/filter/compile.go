package filter

import (
	"fmt"
	"maps"
	"os"
	"slices"
	_ "unsafe" // go:linkname

	"gvisor.dev/gvisor/pkg/seccomp"
	"gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"
	"gvisor.dev/gvisor/pkg/sentry/platform"
	_ "gvisor.dev/gvisor/pkg/sentry/platform/systrap" // the one we use
	kernelconfig "gvisor.dev/gvisor/runsc/boot/filter/config"
	filesconfig "gvisor.dev/gvisor/runsc/fsgofer/filter/config"
)

// gVisor's rules with names in place of what only a running process knows.
//
//go:linkname kernelRules gvisor.dev/gvisor/runsc/boot/filter/config.rules
func kernelRules(kernelconfig.Options, precompiledseccomp.Values) (allow, deny seccomp.SyscallRules)

//go:linkname fileRules gvisor.dev/gvisor/runsc/fsgofer/filter/config.rules
func fileRules(filesconfig.Options, precompiledseccomp.Values) (allow, deny seccomp.SyscallRules)

// Compile compiles the programs of the way in which we start sandboxes: systrap,
// no network of the host, files opened directly, no sockets.
func Compile() (set Set, err error) {
	systrap, err := platform.Lookup("systrap")
	if err != nil {
		return set, fmt.Errorf("compile seccomp programs: %w", err)
	}
	for _, info := range systrap.PrecompiledSeccompInfo() {
		opt := kernelconfig.Options{Platform: info, HostFilesystem: true}
		set.Kernel, err = compile(set.Kernel, opt.ConfigKey(), opt.Vars(), func(vars precompiledseccomp.Values) *seccomp.Program {
			return program(kernelconfig.SeccompOptions(opt), func() (allow, deny seccomp.SyscallRules) { return kernelRules(opt, vars) })
		})
		if err != nil {
			return set, err
		}
		if err := namePID(&set.Kernel[len(set.Kernel)-1]); err != nil {
			return set, err
		}
	}
	for _, needed := range []bool{false, true} { // which it is depends on the mounts
		opt := filesconfig.Options{DirectFS: true, LisafsNeeded: needed}
		set.Files, err = compile(set.Files, opt.ConfigKey(), opt.Vars(), func(vars precompiledseccomp.Values) *seccomp.Program {
			return program(seccomp.ProgramOptions{}, func() (allow, deny seccomp.SyscallRules) { return fileRules(opt, vars) })
		})
		if err != nil {
			return set, err
		}
	}
	return set, nil
}

// namePID puts a name where the rules of systrap have the number of the process
// that compiles: it is another one when a sandbox starts.
func namePID(p *precompiledseccomp.Program) error {
	const variable = "self_pid_low32bits"
	own, found := uint32(os.Getpid()), []int(nil)
	for i, word := range p.Bytecode32 {
		if i%2 == 1 && word == own { // the operand of an instruction
			found, p.Bytecode32[i] = append(found, i), 0
		}
	}
	if _, known := p.VarOffsets[variable]; !known || len(found) != 1 {
		return fmt.Errorf("compile seccomp program: %d places hold our process number, where one should", len(found))
	}
	p.VarOffsets[variable] = append(p.VarOffsets[variable], found...)
	return nil
}

func program(opts seccomp.ProgramOptions, rules func() (allow, deny seccomp.SyscallRules)) *seccomp.Program {
	allow, deny := rules()
	return &seccomp.Program{
		RuleSets: []seccomp.RuleSet{{Rules: deny.Copy()}, {Rules: allow.Copy(), Action: seccomp.Allow}},
		Options:  opts,
	}
}

func compile(
	to []precompiledseccomp.Program, name string, vars precompiledseccomp.Values, build func(precompiledseccomp.Values) *seccomp.Program,
) ([]precompiledseccomp.Program, error) {
	p, err := precompiledseccomp.Precompile(name, slices.Sorted(maps.Keys(vars)), build)
	if err != nil {
		return to, fmt.Errorf("compile seccomp program %s: %w", name, err)
	}
	return append(to, p), nil
}
