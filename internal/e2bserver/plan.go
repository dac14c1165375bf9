package e2bserver

import (
	"os"
	"path"
	"regexp"
	"strings"

	squad "agentsquad"
)

// buildPlan is how a template is made.
type buildPlan struct {
	FromImage    string    `json:"fromImage"`
	FromTemplate string    `json:"fromTemplate"`
	Registry     *registry `json:"fromImageRegistry"`
	Steps        []step    `json:"steps"`
	StartCmd     string    `json:"startCmd"`
	ReadyCmd     string    `json:"readyCmd"`
}

type registry struct {
	Type     string `json:"type"`
	Username string `json:"username"`
	Password string `json:"password"`
}

// step is one instruction of a plan.
type step struct {
	Type      string   `json:"type"`
	Args      []string `json:"args"`
	FilesHash string   `json:"filesHash"`
}

// String is the step as people read it.
func (t step) String() string { return t.Type + " " + strings.Join(t.Args, " ") }

var (
	userName = regexp.MustCompile(`^[a-z_][a-z0-9_.-]{0,31}(:[a-z_][a-z0-9_.-]{0,31})?$`)
	fileMode = regexp.MustCompile(`^[0-7]{3,4}$`)
	envName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// baseImages are the names by which SDKs mean the base template.
func isBaseImage(ref string) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(ref, "docker.io/"), ":")
	return name == "e2bdev/base" || ref == baseTemplate
}

// checkPlan refuses a plan that cannot be carried out, before anything is done.
func (s *Server) checkPlan(owner string, p *buildPlan) error {
	switch {
	case (p.FromImage == "") == (p.FromTemplate == ""):
		return squad.Invalid("fromImage", "A build starts from one of fromImage and fromTemplate")
	case len(p.Steps) > 500:
		return squad.Invalid("steps", "A build may have at most 500 steps")
	case p.Registry != nil && p.Registry.Type != "registry":
		return squad.Invalid("fromImageRegistry", "This server signs in to registries by user name and password only")
	case len(p.FromImage) > 512 || strings.ContainsAny(p.FromImage, " \t\r\n\x00"):
		return squad.Invalid("fromImage", "%.100q is not the name of an image", p.FromImage)
	}
	if p.FromTemplate != "" {
		if _, err := s.library.resolve(owner, p.FromTemplate); err != nil {
			return err
		}
	}
	for i, t := range p.Steps {
		if err := s.checkStep(owner, t); err != nil {
			return squad.Invalid("steps", "Step %d (%s): %s", i+1, t.Type, squadMessage(err))
		}
	}
	return nil
}

func (s *Server) checkStep(owner string, t step) error {
	arg := func(i int) string {
		if i < len(t.Args) {
			return t.Args[i]
		}
		return ""
	}
	for _, a := range t.Args {
		if strings.ContainsRune(a, 0) {
			return squad.Invalid("args", "arguments may not hold a zero byte")
		}
	}
	switch t.Type {
	case "RUN":
		return checkAll(arg(0) != "", "RUN needs a command", arg(1) == "" || userName.MatchString(arg(1)), "not a user name")
	case "ENV":
		ok := len(t.Args)%2 == 0 && len(t.Args) > 0
		for i := 0; ok && i < len(t.Args); i += 2 {
			ok = envName.MatchString(t.Args[i])
		}
		return checkAll(ok, "ENV needs pairs of name and value")
	case "WORKDIR":
		return checkAll(arg(0) != "", "WORKDIR needs a path")
	case "USER":
		return checkAll(userName.MatchString(arg(0)), "USER needs a user name")
	case "COPY":
		if err := checkAll(arg(0) != "" && inside(arg(0)), "the source must lie inside the context",
			arg(1) != "", "COPY needs a destination", arg(2) == "" || userName.MatchString(arg(2)), "not a user name",
			arg(3) == "" || fileMode.MatchString(arg(3)), "not a file mode", layerHash.MatchString(t.FilesHash), "filesHash is missing"); err != nil {
			return err
		}
		_, err := os.Stat(s.layerPath(owner, t.FilesHash))
		return checkAll(err == nil, "its files were not uploaded")
	}
	return squad.Invalid("type", "unknown type %q", t.Type)
}

// checkAll takes pairs of a condition and what is wrong when it does not hold.
func checkAll(pairs ...any) error {
	for i := 0; i < len(pairs); i += 2 {
		if !pairs[i].(bool) {
			return squad.Invalid("steps", "%s", pairs[i+1].(string))
		}
	}
	return nil
}

// absolute puts a path below a working directory unless it is absolute.
func absolute(workdir, p string) string {
	if path.IsAbs(p) {
		return p
	}
	return path.Join(workdir, p)
}
