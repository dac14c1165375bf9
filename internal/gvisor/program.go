package gvisor

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"agentsquad"
	"agentsquad/internal/gvisor/words"
)

// checkStatic refuses a program that needs a loader: gVisor starts itself again
// in an empty root, where there is none.
func checkStatic(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("read own program: %w", err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return squad.Errorf(squad.CodeUnavailable,
				"local sandboxes need a statically linked program: build it with CGO_ENABLED=0")
		}
	}
	return nil
}

// CheckProgram says whether this program can make sandboxes: it carries command
// runsc, or can be it.
func CheckProgram() error {
	if len(embeddedRunsc) > 0 {
		return nil
	}
	return checkStatic(words.SelfExe)
}

// maxRunsc bounds the unpacked program.
const maxRunsc = 512 << 20

// installRunsc decides which program is runsc, and unpacks the small one.
func (r *Runtime) installRunsc() error {
	packed := r.cfg.Runsc
	if len(packed) == 0 {
		packed = embeddedRunsc
	}
	if len(packed) == 0 {
		r.runsc.program = words.SelfExe
		return checkStatic(words.SelfExe)
	}
	sum := sha256.Sum256(packed)
	dir := filepath.Join(r.cfg.Dir, "bin")
	r.runsc.program = filepath.Join(dir, fmt.Sprintf("runsc-%x", sum[:12]))
	dropOld(dir, "runsc-*", r.runsc.program) // those that run have it open
	if _, err := os.Stat(r.runsc.program); err == nil {
		return nil
	}
	if err := unpackProgram(packed, r.runsc.program); err != nil {
		return fmt.Errorf("install runsc: %w", err)
	}
	return checkStatic(r.runsc.program)
}

func unpackProgram(packed []byte, path string) error {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".program-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := io.Copy(f, io.LimitReader(z, maxRunsc)); err != nil {
		return err
	}
	if err := f.Chmod(0o755); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
