package gateway

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"agentsquad/internal/git"
)

// update is one ref that a push wants to move.
type update struct{ old, sha, ref string }

// pushRequest is the list that stands before the pack.
type pushRequest struct {
	updates []update
	caps    map[string]bool
}

const maxUpdates = 64

// readPush reads the commands of a push. What follows in r is the pack.
func readPush(r io.Reader) (pushRequest, error) {
	q := pushRequest{caps: map[string]bool{}}
	for {
		data, err := git.ReadPacket(r)
		if errors.Is(err, io.EOF) && len(q.updates) == 0 {
			return q, nil
		}
		if err != nil {
			return q, git.ErrProtocol
		}
		if data == nil {
			return q, nil
		}
		line := string(data)
		if strings.HasPrefix(line, "shallow ") || strings.HasPrefix(line, "push-cert") {
			return q, fmt.Errorf("%w: pushes from shallow clones and signed pushes are not taken", git.ErrProtocol)
		}
		if len(q.updates) == 0 {
			var caps string
			line, caps, _ = strings.Cut(line, "\x00")
			for _, c := range strings.Fields(caps) {
				q.caps[c] = true
			}
		}
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
		if len(parts) != 3 || !git.ValidSHA(parts[0]) || !git.ValidSHA(parts[1]) || len(parts[0]) != len(parts[1]) || len(q.updates) >= maxUpdates {
			return q, git.ErrProtocol
		}
		q.updates = append(q.updates, update{old: parts[0], sha: parts[1], ref: parts[2]})
	}
}

// sideband writes the answer to a push: the report on band 1, words for the person
// on band 2. Without the capability only the report is sent, bare.
type sideband struct {
	w      io.Writer
	banded bool
	flush  func()
}

func (s *sideband) send(band byte, text string) {
	const most = git.MaxPacket - 5
	for len(text) > 0 {
		n := min(len(text), most)
		fmt.Fprintf(s.w, "%04x%c%s", n+5, band, text[:n])
		text = text[n:]
	}
}

// say tells the person something; each line appears behind "remote:".
func (s *sideband) say(format string, args ...any) {
	if s.banded {
		s.send(2, strings.TrimRight(fmt.Sprintf(format, args...), "\n")+"\n")
		s.flush()
	}
}

// report ends the answer. reasons hold why a ref was refused, "" where it was taken.
func (s *sideband) report(unpack string, updates []update, reasons map[string]string) {
	var b strings.Builder
	b.WriteString(git.Packet("unpack " + oneLine(unpack) + "\n"))
	for _, u := range updates {
		if why := reasons[u.ref]; why != "" {
			b.WriteString(git.Packet("ng " + u.ref + " " + oneLine(why) + "\n"))
		} else {
			b.WriteString(git.Packet("ok " + u.ref + "\n"))
		}
	}
	b.WriteString(git.Flush)
	if s.banded {
		s.send(1, b.String())
		io.WriteString(s.w, git.Flush) //nolint:errcheck // the client is gone
	} else {
		io.WriteString(s.w, b.String()) //nolint:errcheck // the client is gone
	}
	s.flush()
}

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 1000 {
		s = strings.ToValidUTF8(s[:1000], "") + "…"
	}
	return s
}
