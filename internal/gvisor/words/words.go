// Package words is what the program that makes sandboxes and the process that becomes
// gVisor say to each other. It imports nothing, so that neither brings the other along.
package words

// SelfExe is how runsc names its own program when it starts its helpers.
const SelfExe = "/proc/self/exe"

// CgroupEnv tells a runsc which cgroups it enters before it does anything, so
// that all it starts is born inside. Folders, separated by colons.
const CgroupEnv = "SQUAD_CGROUPS"

// ExitCgroup is the exit status of a runsc that could not enter its cgroups.
const ExitCgroup = 120

// BootNote is the name of the file in a bundle that tells the gVisor process of a
// sandbox how large a machine to show: processors and bytes of memory.
const BootNote = "boot.args"
