package envd

import (
	"net/url"
	"time"

	"agentsquad/internal/envdpb/process"
)

// ResolvePath opens path resolution to the fuzzer.
func ResolvePath(path, home, workdir string) (string, error) {
	return resolvePath(path, &account{home: home}, workdir)
}

// CheckSignature opens signature checks to the fuzzer.
func CheckSignature(q url.Values, op, token string, now time.Time) error {
	return checkSignature(q, op, token, now)
}

// Retired is a command that is over, and tells whether it can still be found.
func Retired(pid int) (found func() bool) {
	r := &running{pid: pid, done: make(chan struct{})}
	close(r.done)
	s := &processes{byPID: map[int]*running{pid: r}}
	s.retire(r)
	return func() bool {
		_, err := s.find(&process.ProcessSelector{Selector: &process.ProcessSelector_Pid{Pid: uint32(pid)}})
		return err == nil
	}
}
