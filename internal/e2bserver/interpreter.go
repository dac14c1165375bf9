package e2bserver

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	squad "agentsquad"
)

// interpreterTemplate is what the SDK for code interpreters asks for: the base
// template with a server that runs code on port 49999.
const interpreterTemplate = "code-interpreter-v1"

const (
	interpreterPort = 49999
	interpreterDir  = "/opt/code-interpreter"
)

//go:embed interpreter
var interpreterFiles embed.FS

var interpreterNames = []string{"server.py", "kernel.py", "kernel.mjs"}

// interpreterImage is the host's name of the prepared template; another program
// has another name.
var interpreterImage = sync.OnceValue(func() string {
	h := sha256.New()
	for _, name := range interpreterNames {
		data, _ := interpreterFiles.ReadFile("interpreter/" + name)
		_, _ = h.Write(data)
	}
	return imagePrefix + "interpreter-" + hex.EncodeToString(h.Sum(nil)[:10])
})

// ensureInterpreter prepares the template on its first use: a sandbox of base
// with the server running, saved.
func (s *Server) ensureInterpreter(ctx context.Context) error {
	s.interpreting.Lock()
	defer s.interpreting.Unlock()
	names, err := s.host.Templates()
	if err != nil || slices.Contains(names, interpreterImage()) {
		return err
	}
	ctx, cancel := detach(ctx)
	defer cancel()
	b, err := s.start(ctx, record{
		ID: newSandboxID(), Owner: "", Template: interpreterTemplate, Image: baseTemplate, Timeout: changeTimeout, Build: true,
		CPU: s.cfg.CPU, MemoryMB: s.cfg.MemoryMB, DiskMB: s.cfg.DiskMB,
	})
	if err != nil {
		return err
	}
	defer func() {
		if err := s.kill(ctx, b, "the code interpreter is prepared"); err != nil {
			s.log.ErrorContext(ctx, "sandbox of the code interpreter not killed", "sandbox_id", b.id, "error", err)
		}
	}()
	if err := s.startInterpreter(ctx, b); err != nil {
		return squad.Wrap(squad.CodeInvalid, err, "The code interpreter does not start here; it needs python3 on this machine")
	}
	return b.machine.Snapshot(ctx, interpreterImage())
}

func (s *Server) startInterpreter(ctx context.Context, b *box) error {
	for _, name := range interpreterNames {
		f, err := interpreterFiles.Open("interpreter/" + name)
		if err != nil {
			return fmt.Errorf("open %s: %w", name, err)
		}
		err = s.writeInside(ctx, b, interpreterDir+"/"+name, "root", f)
		_ = f.Close()
		if err != nil {
			return err
		}
	}
	start := command{user: "user", cwd: "/home/user", line: "exec python3 " + interpreterDir + "/server.py", keep: true}
	if _, err := s.exec(ctx, b, start, func(bool, []byte) {}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		err := s.interpreterReady(ctx, b)
		if err == nil {
			return nil
		}
		if pauseFor(ctx, 50*time.Millisecond) != nil {
			return err
		}
	}
}

func (s *Server) interpreterReady(ctx context.Context, b *box) error {
	run := b.current()
	if run == nil {
		return errNoSandbox
	}
	url := fmt.Sprintf("http://%s:%d/health", b.id, interpreterPort)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("ask code interpreter: %w", err)
	}
	resp, err := run.ports.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("ask code interpreter: %w", err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("ask code interpreter: %s", resp.Status)
	}
	return nil
}
