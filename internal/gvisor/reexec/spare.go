package reexec

import (
	"runtime/debug"
	"sync"
	"time"
	_ "unsafe" // go:linkname

	_ "gvisor.dev/gvisor/pkg/sentry/seccheck"
)

// startsFor is how long a process of a sandbox counts as starting.
const startsFor = 30 * time.Second

// spare leaves out of a start what nobody needs: to look for garbage,
// of which there is little yet, and to describe the points at which system calls
// can be traced, which only "runsc trace" reads.
func spare() {
	debug.SetGCPercent(400)
	time.AfterFunc(startsFor, func() { debug.SetGCPercent(100) })
	tracePoints.Do(func() {})
}

//go:linkname tracePoints gvisor.dev/gvisor/pkg/sentry/seccheck.initOnce
var tracePoints sync.Once
