package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zricethezav/gitleaks/v8/detect"

	squad "agentsquad"
	"agentsquad/internal/git"
)

// scanner looks for secrets with the rules of gitleaks. They are compiled once,
// when the first push comes.
type scanner struct {
	once     sync.Once
	detector *detect.Detector
	err      error
}

func (s *scanner) load() (*detect.Detector, error) {
	s.once.Do(func() {
		s.detector, s.err = detect.NewDetectorDefaultConfig()
		if s.err == nil {
			s.detector.IgnoreGitleaksAllow = true // the pusher does not excuse itself
			s.detector.Redact = 100
			s.detector.MaxDecodeDepth = 2
		}
	})
	return s.detector, s.err
}

// finding is a place with a secret, without the secret.
type finding struct {
	file string
	line int
	rule string
}

const (
	maxScanBytes = 256 << 20
	maxFindings  = 10
	scanTime     = 5 * time.Minute
)

// checkSecrets scans what the new commits add. What cannot be scanned is refused.
func (p *push) checkSecrets(ctx context.Context, u update) (string, error) {
	detector, err := p.g.scan.load()
	if err != nil {
		return "", fmt.Errorf("load rules for secrets: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, scanTime)
	defer cancel()
	pr, pw := io.Pipe()
	s := &diffScan{ctx: ctx, detector: detector}
	read := make(chan error, 1)
	go func() {
		err := s.read(pr)
		pr.CloseWithError(err)
		read <- err
	}()
	_, err = p.g.runner.Run(ctx, git.Call{
		Dir: p.t.mirror.Dir(), Env: p.scratch.Env(), Stdout: pw, Timeout: scanTime,
		Args: []string{"log", "-p", "-U0", "--remerge-diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--src-prefix=a/", "--dst-prefix=b/",
			"--format=%x01%H%n%B%x02", u.sha, "--not", "--branches", "--tags", "--"},
	})
	pw.Close()
	readErr := <-read
	if len(s.found) > 0 {
		return p.secretRefusal(s.found), nil
	}
	if s.bytes > maxScanBytes || ctx.Err() != nil {
		return "it is too large to be searched for secrets; push it in parts", nil
	}
	if err == nil {
		err = readErr
	}
	if err != nil {
		return "", fmt.Errorf("search for secrets: %w", err)
	}
	return "", nil
}

func (p *push) secretRefusal(found []finding) string {
	var places []string
	for _, f := range found {
		place := fmt.Sprintf("%s:%d (%s)", f.file, f.line, f.rule)
		places = append(places, place)
		p.out.say("secret found: %s", place)
	}
	p.out.say("Remove it from the commits (git commit --amend, or git rebase -i) and push again. If it is real, it must be revoked.")
	return "it holds secrets: " + strings.Join(places, ", ")
}

// diffScan reads git log -p and hands each run of added lines to the detector.
type diffScan struct {
	ctx      context.Context // ends the scan between two fragments
	detector *detect.Detector
	found    []finding
	bytes    int64

	file  string
	start int
	left  int // lines still to come in the hunk
	text  strings.Builder
}

func (s *diffScan) read(r io.Reader) error {
	in := bufio.NewReaderSize(r, 256<<10)
	inMessage := false
	for {
		line, err := in.ReadString('\n')
		if s.bytes += int64(len(line)); s.bytes > maxScanBytes {
			return squad.Errorf(squad.CodeTooLarge, "too much to search")
		}
		if line != "" {
			inMessage = s.line(strings.TrimSuffix(line, "\n"), inMessage)
		}
		if err == io.EOF {
			s.end()
			return s.ctx.Err()
		}
		if err != nil {
			return err
		}
		if len(s.found) >= maxFindings || s.ctx.Err() != nil {
			return s.ctx.Err()
		}
	}
}

// line takes one line of the log and says whether the next one is still part of a
// commit's message, which is searched like a file.
func (s *diffScan) line(line string, inMessage bool) bool {
	switch {
	case s.left > 0:
		switch {
		case strings.HasPrefix(line, "+"):
			s.text.WriteString(line[1:] + "\n")
			s.left--
		case !strings.HasPrefix(line, "-") && !strings.HasPrefix(line, `\`):
			s.left--
		}
		return false
	case strings.HasPrefix(line, "\x01"):
		s.end()
		s.file, s.start = "commit message", 1
		return true
	case inMessage && strings.HasSuffix(line, "\x02"):
		s.text.WriteString(strings.TrimSuffix(line, "\x02") + "\n")
		s.end()
		return false
	case inMessage:
		s.text.WriteString(line + "\n")
		return true
	case strings.HasPrefix(line, "+++ "):
		s.end()
		s.file = diffName(line[4:])
	case strings.HasPrefix(line, "@@ "):
		s.end()
		s.start, s.left = hunkStart(line)
	}
	return false
}

// end searches what was collected.
func (s *diffScan) end() {
	raw := s.text.String()
	s.text.Reset()
	s.left = 0
	if strings.TrimSpace(raw) == "" {
		return
	}
	for _, f := range s.detector.DetectContext(s.ctx, detect.Fragment{Raw: raw, FilePath: s.file}) { //nolint:staticcheck // its successor is not released
		s.found = append(s.found, finding{file: s.file, line: s.start + f.StartLine, rule: f.RuleID})
	}
}

func diffName(s string) string {
	s = strings.TrimSuffix(s, "\t")
	if strings.HasPrefix(s, `"`) {
		if plain, err := strconv.Unquote(s); err == nil {
			s = plain
		}
	}
	return strings.TrimPrefix(s, "b/")
}

// hunkStart returns the first new line of a hunk and how many new lines it has.
func hunkStart(header string) (start, lines int) {
	for _, word := range strings.Fields(header) {
		if !strings.HasPrefix(word, "+") {
			continue
		}
		at, count, two := strings.Cut(word[1:], ",")
		start, _ = strconv.Atoi(at)
		lines = 1
		if two {
			lines, _ = strconv.Atoi(count)
		}
		return start, lines
	}
	return 0, 0
}
