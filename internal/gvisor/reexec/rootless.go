package reexec

import (
	"fmt"
	"io"
	"os"
	"slices"

	"gvisor.dev/gvisor/pkg/log"
	"gvisor.dev/gvisor/runsc/config"
	"gvisor.dev/gvisor/runsc/container"
	"gvisor.dev/gvisor/runsc/flag"
	"gvisor.dev/gvisor/runsc/specutils"
)

// isRootlessRestore says whether this process is asked for the one thing that
// runsc's own command line refuses an ordinary user, although its libraries can:
// to restore a sandbox.
func isRootlessRestore(args []string) bool {
	return slices.Contains(args, "--rootless") && slices.Contains(args, "restore")
}

// rootlessRestore does what "runsc restore" does, after entering a user namespace
// the way "runsc run" does. It returns the exit status.
func rootlessRestore() int {
	config.RegisterFlags(flag.CommandLine)
	flag.Parse()
	log.SetTarget(log.GoogleEmitter{Writer: &log.Writer{Next: io.Discard}})
	conf, err := config.NewFromFlags(flag.CommandLine)
	if err != nil {
		return complain(nil, err)
	}
	if err := specutils.MaybeRunAsRoot(); err != nil { // becomes another process, if it must
		return complain(conf, err)
	}
	var bundle, pidFile, image string
	verb := flag.NewFlagSet("restore", flag.ContinueOnError)
	verb.StringVar(&bundle, "bundle", "", "")
	verb.StringVar(&pidFile, "pid-file", "", "")
	verb.StringVar(&image, "image-path", "", "")
	background := verb.Bool("background", false, "")
	_ = verb.Bool("detach", false, "")
	if err := verb.Parse(flag.CommandLine.Args()[1:]); err != nil {
		return complain(conf, err)
	}
	spec, err := specutils.ReadSpec(bundle, conf)
	if err != nil {
		return complain(conf, err)
	}
	if err := specutils.FixConfig(conf, spec); err != nil {
		return complain(conf, err)
	}
	c, err := container.New(conf, container.Args{ID: verb.Arg(0), Spec: spec, BundleDir: bundle, PIDFile: pidFile})
	if err != nil {
		return complain(conf, fmt.Errorf("creating container: %w", err))
	}
	if err := c.Restore(conf, image, false, *background, nil); err != nil {
		_ = c.Destroy()
		return complain(conf, fmt.Errorf("restoring container: %w", err))
	}
	return 0
}

// complain writes an error where runsc would, and returns its exit status.
func complain(conf *config.Config, err error) int {
	fmt.Fprintln(os.Stderr, err)
	if conf != nil && conf.LogFilename != "" {
		f, ferr := os.OpenFile(conf.LogFilename, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if ferr == nil {
			fmt.Fprintf(f, "{\"msg\":%q}", err.Error())
			_ = f.Close()
		}
	}
	return 128
}
