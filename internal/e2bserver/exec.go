package e2bserver

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// command is one run of a shell command in a sandbox, by the host.
type command struct {
	user string
	cwd  string
	env  map[string]string
	line string
	// keep leaves the process running when the caller goes away.
	keep bool
}

// processEvent is a message of envd's process stream in its JSON form.
type processEvent struct {
	Event struct {
		Start *struct {
			PID uint32 `json:"pid"`
		} `json:"start"`
		Data *struct {
			Stdout []byte `json:"stdout"`
			Stderr []byte `json:"stderr"`
		} `json:"data"`
		End *struct {
			ExitCode int    `json:"exitCode"`
			Exited   bool   `json:"exited"`
			Status   string `json:"status"`
			Error    string `json:"error"`
		} `json:"end"`
	} `json:"event"`
}

// maxFrame bounds one message of a stream.
const maxFrame = 4 << 20

// exec runs a command through envd and hands on its output as it comes. With
// keep it returns once the process has started.
func (s *Server) exec(ctx context.Context, b *box, c command, output func(stderr bool, data []byte)) (exit int, err error) {
	body, err := s.startProcess(ctx, b, c)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	for {
		flags, frame, err := readFrame(body)
		if err != nil {
			return 0, fmt.Errorf("read output: %w", err)
		}
		if flags&2 != 0 {
			return 0, streamEnd(frame)
		}
		var m processEvent
		if err := json.Unmarshal(frame, &m); err != nil {
			return 0, fmt.Errorf("read output: %w", err)
		}
		switch e := m.Event; {
		case e.Start != nil && c.keep:
			return 0, nil
		case e.Data != nil && len(e.Data.Stdout) > 0:
			output(false, e.Data.Stdout)
		case e.Data != nil && len(e.Data.Stderr) > 0:
			output(true, e.Data.Stderr)
		case e.End != nil && e.End.Exited:
			return e.End.ExitCode, nil
		case e.End != nil:
			return -1, fmt.Errorf("command ended by %s", e.End.Status)
		}
	}
}

// loginShell runs a line as SDKs do, by bash, and by sh in images without it.
const loginShell = `if [ -x /bin/bash ]; then exec /bin/bash -l -c "$1"; fi; exec /bin/sh -l -c "$1"`

func (s *Server) startProcess(ctx context.Context, b *box, c command) (io.ReadCloser, error) {
	process := map[string]any{"cmd": "/bin/sh", "args": []string{"-c", loginShell, "sh", c.line}, "envs": c.env}
	if c.cwd != "" {
		process["cwd"] = c.cwd
	}
	message, err := json.Marshal(map[string]any{"process": process, "stdin": false})
	if err != nil {
		return nil, fmt.Errorf("encode command: %w", err)
	}
	var frame bytes.Buffer
	frame.WriteByte(0)
	_ = binary.Write(&frame, binary.BigEndian, uint32(len(message)))
	frame.Write(message)
	run := b.current()
	if run == nil {
		return nil, errors.New("the sandbox is not running")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+controlHost+"/process.Process/Start", &frame)
	if err != nil {
		return nil, fmt.Errorf("start command: %w", err)
	}
	req.Header.Set("Content-Type", "application/connect+json")
	req.Header.Set("Connect-Protocol-Version", "1")
	req.SetBasicAuth(c.user, "")
	resp, err := run.transport.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("start command: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
		return nil, fmt.Errorf("start command: %s: %s", resp.Status, text)
	}
	return resp.Body, nil
}

// readFrame reads one envelope of the Connect protocol.
func readFrame(r io.Reader) (flags byte, message []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxFrame {
		return 0, nil, fmt.Errorf("message of %d bytes", n)
	}
	message = make([]byte, n)
	_, err = io.ReadFull(r, message)
	return head[0], message, err
}

// streamEnd turns the last envelope of a stream into its error. A stream of a
// process that ends without an end event is one, too.
func streamEnd(frame []byte) error {
	var end struct {
		Error *struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(frame, &end); err != nil {
		return fmt.Errorf("read end of output: %w", err)
	}
	if end.Error != nil {
		return fmt.Errorf("%s: %s", end.Error.Code, end.Error.Message)
	}
	return io.ErrUnexpectedEOF
}

// writeInside writes a file in a sandbox as a user of it.
func (s *Server) writeInside(ctx context.Context, b *box, path, user string, content io.Reader) error {
	run := b.current()
	if run == nil {
		return errors.New("the sandbox is not running")
	}
	query := url.Values{"path": {path}, "username": {user}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+controlHost+"/files?"+query.Encode(), content)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	resp, err := run.transport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("write %s: %s: %s", path, resp.Status, text)
	}
	return nil
}
