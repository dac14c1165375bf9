package sandbox

import (
	"context"
	"path"
	"slices"
	"strings"

	squad "agentsquad"
)

// Policy says which commands may run: patterns of words, such as "git push *" or
// "curl". A pattern fits a command whose first words fit its words; "*" in a word
// stands for any characters, and a program fits by its name with or without its
// directory. Deny always wins, in whatever order the rules stand and whoever
// allows: the squad's denials hold for every role. In a rule that denies, flags
// fit wherever they stand in the command: "git push --force" also refuses
// "git push origin --force". Where Allow has patterns, every program of the
// command must fit one.
//
// The command is read as bash would read it, without being run: lists, pipes,
// substitutions and what wrappers (sudo, env, xargs, bash -c …) run are seen.
// What cannot be known before it runs (a program named by a variable) is refused
// where there is a policy. The policy keeps honest agents on the road and makes
// mistakes visible; it is the sandbox that holds those who want to leave it,
// since any program can run others.
type Policy struct {
	Allow, Deny []string
}

// Empty says that everything may run.
func (p Policy) Empty() bool { return len(p.Allow) == 0 && len(p.Deny) == 0 }

// Check returns a [squad.CodeRule] error that names the rule which refuses the
// command, or nil.
func (p Policy) Check(shell string) error {
	if p.Empty() {
		return nil
	}
	calls, err := parseCalls(shell)
	if err != nil {
		return squad.Wrap(squad.CodeRule, err, "command refused: it cannot be read as a bash command, so this squad's policy cannot be checked")
	}
	for _, call := range calls {
		if err := p.checkCall(call); err != nil {
			return err
		}
	}
	return nil
}

func (p Policy) checkCall(words []string) error {
	if words[0] == unknown {
		return squad.Errorf(squad.CodeRule, "command refused: this squad has a command policy, and a program whose name is only known when it runs cannot be checked against it")
	}
	name := strings.ReplaceAll(clip(strings.Join(words, " "), 120), unknown, "…")
	for _, rule := range p.Deny {
		if fits(rule, words, true) || fitsAnywhere(rule, words) {
			return squad.Errorf(squad.CodeRule, "command refused: %q is denied by the rule %q of this squad", name, rule)
		}
	}
	if len(p.Allow) == 0 {
		return nil
	}
	for _, rule := range p.Allow {
		if fits(rule, words, false) {
			return nil
		}
	}
	return squad.Errorf(squad.CodeRule, "command refused: %q fits no rule that this squad allows (%s)", name, strings.Join(p.Allow, ", "))
}

// fits says whether the first words of a command fit a pattern. A word that is
// unknown until it runs fits a pattern that forbids, and none that allows.
func fits(pattern string, words []string, forbids bool) bool {
	want := strings.Fields(pattern)
	if len(want) == 0 {
		return false
	}
	for i, w := range want {
		if i >= len(words) {
			return w == "*" && i == len(want)-1 // "git push *" is also plain "git push"
		}
		have := words[i]
		if strings.Contains(have, unknown) {
			if forbids || w == "*" {
				continue
			}
			return false
		}
		if glob(w, have) || i == 0 && glob(w, path.Base(have)) {
			continue
		}
		return false
	}
	return true
}

// fitsAnywhere is fits for rules that forbid, with the flags of rule and command
// taken out of the order of words.
func fitsAnywhere(pattern string, words []string) bool {
	isFlag := func(w string) bool { return strings.HasPrefix(strings.TrimLeft(w, "*"), "-") }
	var plain, rest []string
	var flags []string
	for _, w := range words {
		if isFlag(w) {
			flags = append(flags, w)
		} else {
			rest = append(rest, w)
		}
	}
	for _, w := range strings.Fields(pattern) {
		if !isFlag(w) {
			plain = append(plain, w)
			continue
		}
		if !slices.ContainsFunc(flags, func(have string) bool { return glob(w, have) }) {
			return false
		}
	}
	return len(plain) > 0 && fits(strings.Join(plain, " "), rest, true)
}

// glob matches "*" against any characters, "/" too.
func glob(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	if !strings.HasPrefix(text, parts[0]) {
		return false
	}
	text = text[len(parts[0]):]
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return strings.HasSuffix(text, last)
}

// policy is what holds in a sandbox: the squad's rules and those of the role of
// the member that owns it.
func (s *Service) policy(ctx context.Context, row squad.Sandbox) (Policy, error) {
	if row.SquadID == "" {
		return Policy{}, nil
	}
	sq, err := s.store.Squad(ctx, row.SquadID)
	if err != nil {
		return Policy{}, err
	}
	p := Policy{Allow: sq.Config.AllowCommands, Deny: sq.Config.DenyCommands}
	if row.AgentID == "" || len(sq.Config.RoleCommands) == 0 {
		return p, nil
	}
	m, err := s.store.Member(ctx, row.AgentID)
	if err != nil {
		return Policy{}, err
	}
	if own, ok := sq.Config.RoleCommands[m.Role]; ok {
		p.Deny = append(append([]string(nil), p.Deny...), own.Deny...)
		if len(own.Allow) > 0 {
			p.Allow = own.Allow
		}
	}
	return p, nil
}

// CheckCommand says whether a command may run in a sandbox: nil, or the rule
// that refuses it. The house's own commands are not bounded.
func (s *Service) CheckCommand(ctx context.Context, actor squad.Actor, row squad.Sandbox, shell string) error {
	if actor.String() == "system" && actor.Admin {
		return nil
	}
	p, err := s.policy(ctx, row)
	if err != nil {
		return err
	}
	return p.Check(shell)
}
